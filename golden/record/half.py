"""Kinds f16 and bf16: the original loaded in 16 bit, and what it makes of the weights.

The right answer is the original in float32 on the very values that it holds when loaded in 16 bit; how far it moves when
it computes in 16 bit as well is recorded beside it.
"""

import torch

import loading
from failure import RecordError
from loading import Manifest

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


def load_rounded(manifest: Manifest, dtype: torch.dtype) -> torch.nn.Module:
    """The original as it loads itself in `dtype`."""
    return loading.load(manifest, dtype=dtype)


def round_like(model: torch.nn.Module, half: torch.nn.Module, dtype: torch.dtype, manifest: Manifest) -> list[str]:
    """Gives the float32 model the values that `half` holds; the weights, by manifest name, that are float32 there.

    RecordError for a weight that is neither kept as it is nor rounded to the nearest: no subject could know it.
    """
    own, rounded = model.state_dict(keep_vars=True), half.state_dict(keep_vars=True)
    kept = []
    for name, place in loading.places(own, manifest).items():
        if place.name not in rounded:
            raise RecordError(f"{name}: {place.name} is not there when the original is loaded in {dtype}")
        given, held = place.of(own).detach(), place.of(rounded).detach()
        if held.dtype == torch.float32:
            kept.append(name)
        elif held.dtype != dtype:
            raise RecordError(f"{name}: the original loaded in {dtype} holds it in {held.dtype}")
        if not torch.equal(given.to(held.dtype), held):
            raise RecordError(f"{name}: the original loaded in {dtype} holds other values than those rounded to it")
    with torch.no_grad():
        for name, tensor in own.items():
            # Tied weights come twice; what was rounded stays what it is.
            tensor.copy_(rounded[name].float())
    return kept
