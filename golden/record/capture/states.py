"""The states that a cache of the original holds after a prefill."""

from collections.abc import Iterable
from typing import Any

import torch

from failure import RecordError


def states(cache: Any, expected: Iterable[str]) -> dict[str, torch.Tensor]:
    """Batch row 0 of every expected state, by its name in the probe table ("layers.2.mixer.conv_state")."""
    found: dict[str, torch.Tensor] = {}
    for name in expected:
        _, index, rest = name.split(".", 2)
        layer = int(index)
        if rest == "mixer.conv_state":
            state = cache.get_conv_state(layer)
        elif rest in ("mixer.ssm_state", "mixer.delta_state"):
            state = cache.get_recurrent_state(layer)
        else:
            raise RecordError(f"state {name}: the recorder does not know where the original keeps it")
        if state is None:
            raise RecordError(f"state {name}: the original's cache holds none after a prefill")
        found[name] = state[0].clone()
    return found
