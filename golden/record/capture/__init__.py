"""Catches the named tensors of one pass of an original: forward hooks where a module's output is a probe
(`modules.py`), wrapped functions where the original computes inside one (`functions.py`), and the states in its cache
(`states.py`). `families.py` says where each family keeps its parts."""

from capture.core import Capture
from capture.states import states

__all__ = ["Capture", "states"]
