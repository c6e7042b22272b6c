"""Proves what goldens of kinds other than f32 rest on, with a control for each claim that shows it can fail.

rounding    R holds what the original holds when it loads itself in 16 bit, float32 where it stays float32
nf4         Linear4bit in float32 is a plain linear on the values of its codes; codes and scales are read off rightly
routers     a choice near a tie is marked, one that falls otherwise as well, and none that is clear
nudge       weights are one unit off while it lasts, and the same bits after
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import Lfm2MoeConfig, Lfm2MoeForCausalLM

import half
import loading
import nf4
import nudge
import routers
from failure import RecordError
from loading import Manifest
from routers import Choice

_TOKENS = torch.tensor([[(5 * index * index + index) % 48 for index in range(30)]])


@contextmanager
def exported(model: torch.nn.Module) -> Iterator[Manifest]:
    """The model in a folder, with the manifest that `assay export` would write beside it."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        weights = load_file(Path(folder) / "model.safetensors")
        described = {
            name: {"shape": list(value.shape), "sha256": loading.digest(value)} for name, value in weights.items()
        }
        yield Manifest(Path(folder), type(model).__name__, described, {}, [])


def routed() -> torch.nn.Module:
    """A random model with routers, a selection bias that stays float32, and linears that 64 does not divide."""
    config = Lfm2MoeConfig(
        vocab_size=48,
        hidden_size=24,
        intermediate_size=28,
        moe_intermediate_size=10,
        num_hidden_layers=3,
        num_dense_layers=1,
        layer_types=["conv", "full_attention", "conv"],
        num_attention_heads=4,
        num_key_value_heads=2,
        num_experts=6,
        num_experts_per_tok=2,
        use_expert_bias=True,
        attn_implementation="eager",
        experts_implementation="eager",
    )
    model = Lfm2MoeForCausalLM(config)
    generator = torch.Generator().manual_seed(3)
    for tensor in model.state_dict(keep_vars=True).values():
        noise = torch.rand(tensor.shape, generator=generator) * 2 - 1
        tensor.data.copy_(noise * 3 / tensor.shape[-1] ** 0.5)
    return model.eval()


def _said(action: Callable[[], object]) -> str:
    try:
        action()
    except RecordError as error:
        return str(error)
    return ""


def rounding_faults() -> list[str]:
    """The float32 list, the values, and that a weight rounded otherwise, or rounded though it stays, is refused."""
    faults = []
    with exported(routed()) as manifest:
        biases = sorted(name for name in manifest.weights if name.endswith("expert_bias"))
        for dtype in half.DTYPES.values():
            model, rounded = loading.load_original(manifest), half.load_rounded(manifest, dtype)
            kept = half.round_like(model, rounded, dtype, manifest)
            if sorted(kept) != biases or not biases:
                faults.append(f"{dtype} keeps {kept} in float32, expected {biases}")
            held = model.state_dict()
            if any(not torch.equal(value.float(), held[name]) for name, value in rounded.state_dict().items()):
                faults.append(f"{dtype}: the float32 model does not hold the rounded values")
            if torch.equal(held[biases[0]], held[biases[0]].to(dtype).float()):
                faults.append(f"{dtype}: rounding the selection bias changes nothing: the control shows nothing")

            plain, bias = loading.load_original(manifest), rounded.get_buffer(biases[0])
            bias.copy_(bias.to(dtype))
            if biases[0] not in _said(lambda: half.round_like(plain, rounded, dtype, manifest)):
                faults.append(f"{dtype}: a float32 weight that was rounded is not seen")
            other = half.load_rounded(manifest, dtype)
            weight = other.model.embed_tokens.weight
            weight.data.copy_(torch.nextafter(weight.data, torch.full_like(weight.data, torch.inf)))
            if "embed_tokens" not in _said(lambda: half.round_like(plain, other, dtype, manifest)):
                faults.append(f"{dtype}: a weight rounded another way is not seen")
    print("rounding: R holds what the original holds in 16 bit" if not faults else faults)
    return faults


def nf4_faults() -> list[str]:
    """Equal in float32 to the plain model, and no longer with one scale off."""
    faults = []
    with exported(routed()) as manifest:
        for kind in nf4.KINDS:
            model = loading.load_original(manifest)
            quantized = nf4.load_quantized(manifest, model, kind, [], torch.float32)
            weights = nf4.dequantize_into(model, quantized, manifest)
            skipped = nf4.load_quantized(manifest, model, kind, ["out_proj"], torch.float32)
            if set(nf4.modules_of(quantized)) - set(nf4.modules_of(skipped)) != {
                name for name in nf4.modules_of(quantized) if name.endswith("out_proj")
            }:
                faults.append(f"{kind}: leaving out_proj out leaves other modules out")
            if any("experts" in name or "gate" in name or "embed" in name for name in weights) or len(weights) < 10:
                faults.append(f"{kind}: quantises {sorted(weights)}")
            if any(module.support_avx512bf16_for_cpu for module in nf4.modules_of(quantized).values()):
                faults.append(f"{kind}: the processor's own path is on")
            right = model(_TOKENS, use_cache=False).logits
            apart = float((quantized(_TOKENS, use_cache=False).logits - right).abs().max())
            module = next(iter(nf4.modules_of(quantized).values()))
            state = module.weight.quant_state
            scale = state.state2.absmax if state.nested else state.absmax
            scale[0] *= 1.01
            wrong = float((quantized(_TOKENS, use_cache=False).logits - right).abs().max())
            print(f"nf4: {kind} differs from the plain model by {apart:.1e}, by {wrong:.1e} with one scale off")
            if not apart < 1e-6:
                faults.append(f"{kind}: Linear4bit in float32 differs from the plain model by {apart:.1e}")
            if not wrong > 1e-4:
                faults.append(f"{kind}: a wrong scale moves the logits by {wrong:.1e} only: the control shows nothing")
    return faults + own_path_faults() + description_faults()


def own_path_faults() -> list[str]:
    """The path that `portable` switches off is another one: with it the answer differs, or there is none here."""
    import bitsandbytes

    module = bitsandbytes.nn.Linear4bit(128, 64, bias=False, quant_type="nf4", compute_dtype=torch.float32)
    generator = torch.Generator().manual_seed(4)
    module.weight.data.copy_(torch.rand((64, 128), generator=generator) * 2 - 1)
    module = module.to("cpu").eval()
    given = torch.rand((1, 7, 128), generator=generator)
    plain = torch.nn.functional.linear(given, nf4.dequantize(module))
    module.support_avx512bf16_for_cpu = True
    nf4.portable(module)
    faults = []
    if not torch.equal(module(given), plain):
        faults.append("a Linear4bit that was made portable is not a plain linear")
    module.support_avx512bf16_for_cpu = True
    try:
        apart = float((module(given) - plain).abs().max())
        found = f"differs by {apart:.1e}"
    except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:
        apart, found = float("inf"), f"does not run here ({type(error).__name__})"
    print(f"nf4: the processor's own path {found}")
    return faults if apart > 0 else [*faults, "the processor's own path is the portable one: the control shows nothing"]


def description_faults() -> list[str]:
    """Codes and scales of a weight whose quantisation is plain: rows of one value, 80 elements, so a block and a quarter."""
    import bitsandbytes

    faults = []
    for nested in (False, True):
        module = bitsandbytes.nn.Linear4bit(80, 1, bias=False, quant_type="nf4", compress_statistics=nested)
        module.weight.data.copy_(torch.tensor([[0.5] * 64 + [-2.0] * 16]))
        parts = nf4.describe(module.to("cpu"))
        # The level 1.0 has the last code and -1.0 the first; the second block is cut short.
        expected = [hashlib.sha256(packed).hexdigest()[:8] for packed in (b"\xff" * 32, b"\x00" * 8)]
        if parts["codes"] != expected:
            faults.append(f"codes {parts['codes']}, expected {expected}")
        if nested:
            # The mean of 0.5 and 2 is taken off; what is left is as far above as below.
            right = parts["offset"] == 1.25 and parts["nested_absmax"] == [0.75] and len(parts["absmax_codes"]) == 2
        else:
            right = parts["absmax"] == [0.5, 2.0]
        if not right:
            faults.append(f"the scales of a known weight are {json.dumps(parts)}")
    print("nf4: codes and scales of a known weight are read off rightly" if not faults else faults)
    return faults


def router_faults() -> list[str]:
    """Which positions of hand-made choices are marked, and that a model's routers are heard."""
    faults = []

    def choice(*rows: list[float]) -> Choice:
        scores = torch.tensor(rows)
        return Choice(scores, torch.topk(scores, 1).indices)

    # Margins 0.5, 0.03 and 0.125; rounding of at most 0.02.
    exact = choice([1, 0.5], [0.5, 0.53], [0.625, 0.5])
    for rounded, expected, what in (
        (choice([1.0, 0.5], [0.5, 0.53], [0.625, 0.5]), [], "equal runs"),
        (choice([1.0, 0.52], [0.5, 0.53], [0.625, 0.5]), [1], "a margin below twice the rounding"),
        (choice([1.0, 0.51], [0.5, 0.53], [0.625, 0.5]), [], "a margin above twice the rounding"),
        (choice([1.0, 0.5], [0.54, 0.53], [0.625, 0.5]), [1], "another choice"),
    ):
        if (found := routers.marked([exact], [rounded])) != expected:
            faults.append(f"{what}: {found} are marked, expected {expected}")
    # After another choice in an earlier layer scores differ by more than rounding, and that is no measure of it.
    moved = [choice([1, 0.5], [0.54, 0.53], [0.625, 0.5]), choice([1, 0.5], [0.8, 0.53], [0.9, 0.5])]
    second = choice([1, 0.5], [0.7, 0.53], [0.625, 0.5])
    if (found := routers.marked([exact, second], moved)) != [1]:
        faults.append(f"after another choice: {found} are marked, expected [1]")

    model = routed()
    with routers.Choices(model) as choices:
        model(_TOKENS, use_cache=False)
    shapes = [(tuple(made.scores.shape), tuple(made.chosen.shape)) for made in choices.made]
    if shapes != [((30, 6), (30, 2))] * 2:
        faults.append(f"the routers' choices are {shapes}")
    if not all(bool((made.margin() > 0).all()) for made in choices.made):
        faults.append("what a router chose has not the best scores: the selection bias is not in them")
    print("routers: ties and other choices are marked, clear ones are not" if not faults else faults)
    return faults


def nudge_faults() -> list[str]:
    """Every weight but zeros moves by one unit in the last place and comes back."""
    model = routed()
    model.model.embed_tokens.weight.data[0, 0] = 0
    before = [parameter.detach().clone() for parameter in model.parameters()]
    faults = []
    with nudge.nudged(model, 1):
        for parameter, value in zip(model.parameters(), before, strict=True):
            up = torch.nextafter(value, torch.full_like(value, torch.inf))
            down = torch.nextafter(value, torch.full_like(value, -torch.inf))
            if not bool(((parameter == up) | (parameter == down) | ((value == 0) & (parameter == 0))).all()):
                faults.append("a nudged weight is not a neighbour")
        if all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True)):
            faults.append("nothing is nudged")
    if not all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True)):
        faults.append("weights are not what they were before the nudge")
    print("nudge: weights move by one unit and come back" if not faults else faults)
    return faults


def faults() -> list[str]:
    """What is wrong, after a line of output a check."""
    return rounding_faults() + nf4_faults() + router_faults() + nudge_faults()
