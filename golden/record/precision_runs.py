"""What a kind other than f32 adds to a recording: the weights of the right answer, and the original's own runs in
another precision on them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

import half
import nf4
import routers
import runs
from failure import RecordError
from loading import Input, Manifest

_ROUNDING = 1e-6  # of float32, on the logits of a few layers

KINDS = ("f32", *half.DTYPES, *nf4.KINDS)


@dataclass
class Other:
    """One run of the original in the precision `compute`."""

    compute: str
    logits: torch.Tensor  # [L, V] float32
    marked: list[int]


class Precision:
    """Prepares a float32 model for a kind, in place, and runs its other precisions."""

    def __init__(self, model: torch.nn.Module, manifest: Manifest, kind: str, unquantized: list[str]) -> None:
        self.facts: dict[str, Any] = {}
        self._others: dict[str, torch.nn.Module] = {}
        if kind in half.DTYPES:
            dtype = half.DTYPES[kind]
            rounded = half.load_rounded(manifest, dtype)
            self.facts["float32_weights"] = half.round_like(model, rounded, dtype, manifest)
            self._others = {_name(dtype): rounded}
        elif kind in nf4.KINDS:
            quantized, low = (
                nf4.load_quantized(manifest, model, kind, unquantized, dtype)
                for dtype in (torch.float32, torch.bfloat16)
            )
            nf4.share_codes(low, quantized)
            weights = nf4.dequantize_into(model, quantized, manifest)
            self.facts["quantization"] = {"unquantized": unquantized, "weights": weights}
            self._others = {"float32": quantized, "bfloat16": low}

    def run(self, model: torch.nn.Module, inputs: dict[str, tuple[Input, list[int]]]) -> Iterator[tuple[str, Other]]:
        """Every input once in every other precision, beside the model itself; lets go of each when it has run."""
        exact = {name: self._choices(model, tokens) for name, (_, tokens) in inputs.items()} if self._others else {}
        while self._others:
            compute = next(iter(self._others))
            other = self._others.pop(compute)
            for name, (given, tokens) in inputs.items():
                try:
                    logits, made = self._choices(other, tokens)
                except RuntimeError as error:
                    raise RecordError(
                        f"input {given.name}: the original does not run in {compute} with these weights ({error}); "
                        "a quantised module whose weight it reads by itself belongs in the cases' \"unquantized\""
                    ) from error
                right, choices = exact[name]
                apart = float((logits - right).abs().max())
                # Module for module equal bit for bit, and as a rule whole; but outputs may be laid out otherwise, and
                # what follows sums them in another order then.
                if compute == "float32" and not apart <= _ROUNDING * float(right.abs().max()):
                    raise RecordError(
                        f"input {given.name}: quantised modules in float32 and plain ones on the values of their codes "
                        f"differ by {apart:.1e} at a logit"
                    )
                yield name, Other(compute, logits, routers.marked(choices, made))

    @staticmethod
    def _choices(model: torch.nn.Module, tokens: list[int]) -> tuple[torch.Tensor, list[routers.Choice]]:
        with routers.Choices(model) as choices:
            logits = runs.plain_logits(model, tokens)
        return logits.float(), choices.made


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
