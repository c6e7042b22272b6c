"""Where an original holds a tensor of the released checkpoint: under another name, or as a part of a fused one.

transformers renames and stacks on the way in (models.md part 6); the manifest has the names of the checkpoint. Each
tensor is looked up under its own name first, so a family that keeps its names needs nothing here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch

_EXPERT = re.compile(r"(?P<part>.*\.experts)\.(?P<number>\d+)\.(?P<which>gate_proj|up_proj|down_proj|w1|w2|w3)\.weight")
_GATE, _UP = ("gate_proj", "w1"), ("up_proj", "w3")

# Whole names, tried in this order on what is not held under its own name.
_RENAMES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^backbone\."), "model."),
    (re.compile(r"^model\.language_model\."), "model."),
    (re.compile(r"\.block_sparse_moe\.input_linear\.weight$"), ".block_sparse_moe.experts.gate_up_proj"),
    (re.compile(r"\.block_sparse_moe\.output_linear\.weight$"), ".block_sparse_moe.experts.down_proj"),
    (re.compile(r"\.block_sparse_moe\.router\.layer\.weight$"), ".block_sparse_moe.router.weight"),
)


@dataclass(frozen=True)
class Held:
    """The tensor `name` of the original, or the part of it that `cut` takes."""

    name: str
    cut: Callable[[torch.Tensor], torch.Tensor] | None = None

    def of(self, held: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The checkpoint's tensor as the original holds it."""
        tensor = held[self.name]
        return tensor if self.cut is None else self.cut(tensor)


def locate(name: str, held: Mapping[str, torch.Tensor]) -> Held | None:
    """Where the checkpoint's tensor `name` is among the original's; None if it is nowhere."""
    if name in held:
        return Held(name)
    for pattern, replacement in _RENAMES:
        name = pattern.sub(replacement, name)
        if name in held:
            return Held(name)
    match = _EXPERT.fullmatch(name)
    return _expert(match, held) if match else None


def _expert(match: re.Match[str], held: Mapping[str, torch.Tensor]) -> Held | None:
    part, number, which = match["part"], int(match["number"]), match["which"]
    fused = f"{part}.gate_up_proj"
    if which in _GATE and fused in held:
        return Held(fused, lambda tensor: tensor[number].chunk(2)[0])
    if which in _UP and fused in held:
        return Held(fused, lambda tensor: tensor[number].chunk(2)[1])
    stacked = f"{part}.up_proj" if which in _UP else f"{part}.down_proj"
    return Held(stacked, lambda tensor: tensor[number]) if stacked in held else None
