"""Kinds nf4 and nf4dq: the original quantised by bitsandbytes as it loads, and the plain original on the values that its
codes stand for.

Linear4bit has two paths on a CPU. The one for processors with AVX512-BF16 computes in bfloat16 whatever was asked for
and is wrong on strided input, so it is switched off in every module.
"""

import hashlib
from typing import Any

import bitsandbytes
import torch
import transformers
from transformers.quantizers.base import get_keys_to_not_convert

import loading
from failure import RecordError
from loading import Manifest

KINDS = ("nf4", "nf4dq")
_BLOCK = 64


def load_quantized(
    manifest: Manifest, plain: torch.nn.Module, kind: str, unquantized: list[str], compute: torch.dtype
) -> torch.nn.Module:
    """The original with every linear in NF4 but those that it leaves out by itself and those named, the rest and all
    arithmetic in `compute`."""
    settings = transformers.BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=kind == "nf4dq",
        bnb_4bit_compute_dtype=compute,
        # A list replaces the original's own, so its own comes first.
        llm_int8_skip_modules=[*get_keys_to_not_convert(plain), *unquantized],
    )
    model = loading.load(manifest, dtype=compute, quantization_config=settings)
    portable(model)
    return model


def portable(model: torch.nn.Module) -> None:
    """Switches the processor's own path off."""
    for module in modules_of(model).values():
        module.support_avx512bf16_for_cpu = False


def modules_of(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """Every quantised module by its name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, bitsandbytes.nn.Linear4bit)}


def share_codes(model: torch.nn.Module, source: torch.nn.Module) -> None:
    """Gives a model loaded in another precision the codes of the source: its own are those of rounded weights."""
    others = modules_of(source)
    for name, module in modules_of(model).items():
        module.weight = others[name].weight
        module.quant_state = others[name].quant_state


def dequantize(module: torch.nn.Module) -> torch.Tensor:
    """The values [out, in] that the module's codes stand for, float32."""
    return bitsandbytes.functional.dequantize_4bit(module.weight.data, module.weight.quant_state).float()


def dequantize_into(model: torch.nn.Module, quantized: torch.nn.Module, manifest: Manifest) -> dict[str, Any]:
    """Gives the plain float32 model the dequantised values; the parts of every quantised weight by manifest name."""
    held = model.state_dict(keep_vars=True)
    modules = modules_of(quantized)
    described = {}
    for name, place in loading.places(held, manifest).items():
        if place.cut is None and (module := modules.pop(place.name.removesuffix(".weight"), None)) is not None:
            described[name] = describe(module)
            with torch.no_grad():
                held[place.name].copy_(dequantize(module))
    if modules:
        raise RecordError(f"quantised, but no weight of the manifest by itself: {', '.join(modules)}")
    return described


def describe(module: torch.nn.Module) -> dict[str, Any]:
    """Digests of the packed codes of each block, and the scales."""
    state = module.weight.quant_state
    count = state.shape[0] * state.shape[1]
    packed = module.weight.data.flatten().view(torch.uint8).numpy().tobytes()
    blocks = -(-count // _BLOCK)
    if state.blocksize != _BLOCK or state.quant_type != "nf4" or len(packed) != -(-count // 2):
        raise RecordError(f"{len(packed)} bytes of {state.quant_type}, blocks of {state.blocksize}, for {count} elements")
    step = _BLOCK // 2
    parts: dict[str, Any] = {
        "codes": [hashlib.sha256(packed[b * step : (b + 1) * step]).hexdigest()[:8] for b in range(blocks)]
    }
    if state.nested:
        parts["absmax_codes"] = state.absmax.tolist()
        parts["nested_absmax"] = state.state2.absmax.float().tolist()
        parts["offset"] = float(state.offset)
    else:
        parts["absmax"] = state.absmax.float().tolist()
    if len(parts["absmax_codes" if state.nested else "absmax"]) != blocks:
        raise RecordError(f"other than {blocks} scales for {count} elements")
    return parts
