"""Capture: the context in which passes of a model fill `probes`."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch

from capture import functions, modules
from capture.families import parts_of
from failure import RecordError


class Capture:
    """Context in which the forward passes of `model` fill `probes`, name -> tensor of batch row 0, in order.

    `expected`: names to keep; every other one that the original offers is left out. None keeps all.
    """

    def __init__(self, model: torch.nn.Module, expected: Iterable[str] | None = None) -> None:
        self.model = model
        self.parts = parts_of(model)
        self.probes: dict[str, torch.Tensor] = {}
        self.layer = ""  # "layers.2" while layer 2 computes
        self.pending: dict[str, list[torch.Tensor]] = {}  # parts of a probe that is computed in several calls
        self._expected = None if expected is None else set(expected)
        self._undo: list[Callable[[], Any]] = []

    def wants(self, name: str) -> bool:
        """Whether a value of this name would be kept."""
        return self._expected is None or name in self._expected

    def take(self, name: str, value: torch.Tensor) -> None:
        """Keeps a copy of batch row 0 [L, ...]; a second value for a name means that the pass was not one pass."""
        self.take_flat(name, value[0])

    def take_flat(self, name: str, value: torch.Tensor) -> None:
        """The same of a tensor that has no batch dimension: the original folded its one row into the positions."""
        if not self.wants(name):
            return
        if name in self.probes:
            raise RecordError(f"probe {name} was computed twice in one pass")
        self.probes[name] = value.detach().clone()

    def __enter__(self) -> "Capture":
        try:
            modules.attach(self)
            functions.attach(self, sys.modules[type(self.model).__module__])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *failure: Any) -> None:
        while self._undo:
            self._undo.pop()()

    def undo_later(self, undo: Callable[[], Any]) -> None:
        """Called when the context is left, in reverse order."""
        self._undo.append(undo)
