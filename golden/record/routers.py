"""Where the choice of experts hangs on rounding: what each router chose among in two runs, and which positions are near
enough to a tie for a precision to choose otherwise.

A choice is a `topk` over one row of scores a position, inside a router's forward. So selection biases are in the scores,
and where groups are chosen before experts both are choices, the second among the groups that the first left.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from capture.families import find, parts_of
from failure import RecordError


@dataclass
class Choice:
    """The scores [L, n] of one topk and the indices [L, k] it took."""

    scores: torch.Tensor
    chosen: torch.Tensor

    def mask(self) -> torch.Tensor:
        """True where an element was chosen [L, n]."""
        return torch.zeros_like(self.scores, dtype=torch.bool).scatter(-1, self.chosen, True)

    def margin(self) -> torch.Tensor:
        """The least chosen score less the greatest other one [L]; infinite where nothing or all is left to choose."""
        chosen = self.mask()
        least = self.scores.masked_fill(~chosen, torch.inf).amin(-1)
        return least - self.scores.masked_fill(chosen, -torch.inf).amax(-1)


class Choices(TorchFunctionMode):
    """Context in which every choice that the model's routers make is added to `made`, in order of computation."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.made: list[Choice] = []
        self._routers = routers_of(model)
        self._is_choosing = False
        self._hooks: list[Any] = []

    def __enter__(self) -> "Choices":
        for router in self._routers:
            self._hooks.append(router.register_forward_pre_hook(lambda *_: self._choose(True)))
            self._hooks.append(router.register_forward_hook(lambda *_: self._choose(False)))
        return super().__enter__()

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)
        while self._hooks:
            self._hooks.pop().remove()

    def _choose(self, is_choosing: bool) -> None:
        self._is_choosing = is_choosing

    def __torch_function__(self, func, types, args=(), kwargs=None):  # noqa: D105 - torch's name
        result = func(*args, **(kwargs or {}))
        if self._is_choosing and func in (torch.topk, torch.Tensor.topk):
            scores = args[0] if args else kwargs["input"]
            if scores.dim() == 2:
                self.made.append(Choice(scores.detach().float().clone(), result[1].clone()))
        return result


def routers_of(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Every router of the model, layer by layer."""
    parts = parts_of(model)
    found = []
    for layer in getattr(model, parts.backbone).layers:
        for path in parts.routed:
            if find(layer, f"{path}.experts") is not None:
                part = find(layer, path)
                found.append(getattr(part, "router", None) or part.gate)
    return found


def marked(exact: list[Choice], rounded: list[Choice]) -> list[int]:
    """Positions, ascending, at which some choice of the exact run is no further from a tie than twice the rounding of
    its scores, or fell otherwise in the rounded run.

    The rounding of a choice's scores is the largest difference over the positions at which both runs chose alike, here
    and in what was computed before: after another expert the scores differ by more than rounding.
    """
    if len(exact) != len(rounded):
        raise RecordError(f"the routers made {len(exact)} choices in one run and {len(rounded)} in the other")
    positions: set[int] = set()
    untouched = torch.ones(len(exact[0].scores) if exact else 0, dtype=torch.bool)
    for right, other in zip(exact, rounded, strict=True):
        alike = (right.mask() == other.mask()).all(-1)
        apart = (right.scores - other.scores).abs()
        # Elements that were not among those to choose from are infinitely far.
        apart = apart.where(torch.isfinite(right.scores) & torch.isfinite(other.scores), 0)
        apart = apart[untouched & alike] if bool((untouched & alike).any()) else apart[alike]
        noise = float(apart.max()) if apart.numel() else 0.0
        near = ~alike | (right.margin() <= 2 * noise)
        positions.update(near.nonzero()[:, 0].tolist())
        # The model is causal: a choice reaches its own position and the later ones of the layers after it.
        untouched &= torch.cumsum(~alike, 0) == 0
    return sorted(positions)
