"""Proves on tiny random models what every golden rests on, with a control for each claim that shows it can fail.

float64     the answer of mamba2 does not depend on its chunk size once nothing is float32 (and does after
            `model.double()` alone, so the check can tell the two apart)
wrappers    a captured pass returns the very bits of an uncaught one, in both families and both precisions
prefill     a chunked sequence form and the recurrence agree: cached steps give the whole pass's logits
beams       the original's beam search is the plain one, and its scores are sums over the number of generated tokens
loading     a file that lacks a tensor, and a manifest that lies about one, are refused by name

selfcheck_kinds.py has those of rounded and quantised weights.
"""

import copy
import json
import sys
import tempfile
from pathlib import Path

import torch
from transformers import DynamicCache, Mamba2Config, Mamba2ForCausalLM, MambaConfig, MambaForCausalLM

import beams
import loading
import runs
import selfcheck_kinds
from capture import Capture
from failure import RecordError
from loading import Input, Manifest, Probe
from precision import TrueFloat64

_TOKENS = [(7 * index * index + 3 * index + 1) % 48 for index in range(41)]
_WHOLE = 1e-12  # float64 on logits of about 10; float32 rounding anywhere would show as 1e-6


def _randomise(model: torch.nn.Module) -> torch.nn.Module:
    generator = torch.Generator().manual_seed(20)
    for name, parameter in model.named_parameters():
        noise = torch.rand(parameter.shape, generator=generator) * 2 - 1
        if name.endswith("A_log"):
            value = noise * 1.5 - 1
        elif name.endswith(("norm.weight", "norm_f.weight")):
            value = 1 + 0.3 * noise
        elif "bias" in name or name.endswith(".D"):
            value = noise
        else:
            value = noise * 2 / parameter.shape[-1] ** 0.5
        parameter.data.copy_(value)
    return model.eval()


def tiny(family: str, chunk_size: int = 8) -> torch.nn.Module:
    """A random model of the family, the same weights whatever the chunk size."""
    shared = dict(vocab_size=48, hidden_size=24, num_hidden_layers=2, state_size=8, conv_kernel=4)
    if family == "mamba":
        return _randomise(MambaForCausalLM(MambaConfig(**shared, time_step_rank=3)))
    config = Mamba2Config(
        **shared,
        num_heads=6,
        head_dim=8,
        n_groups=2,
        chunk_size=chunk_size,
        time_step_limit=(0.05, 1.5),
        tie_word_embeddings=False,
    )
    return _randomise(Mamba2ForCausalLM(config))


def _logits(model: torch.nn.Module) -> torch.Tensor:
    return model(torch.tensor([_TOKENS]), use_cache=False).logits[0]


def _true_logits(model: torch.nn.Module) -> torch.Tensor:
    with TrueFloat64():
        return _logits(model)


def float64_faults() -> list[str]:
    """Largest difference between chunk sizes 5, 8 and 16, in true float64 and after double() alone."""
    models = [tiny("mamba2", chunk).double() for chunk in (5, 8, 16)]
    true = [_true_logits(model) for model in models]
    apart = max(float((true[0] - other).abs().max()) for other in true[1:])
    naive = [_logits(model) for model in models]
    control = max(float((naive[0] - other).abs().max()) for other in naive[1:])
    print(f"float64: chunk sizes differ by {apart:.1e} in true float64, by {control:.1e} after double() alone")
    faults = []
    if not apart <= _WHOLE:
        faults.append(f"true float64 still depends on the chunk size by {apart:.1e}")
    if not control > 1e-8:
        faults.append("double() alone is as good: the control shows nothing")
    return faults


def wrapper_faults(family: str) -> list[str]:
    """Differences between a captured pass and a plain one."""
    faults = []
    narrow = tiny(family)
    for precision, model in (("float32", narrow), ("float64", copy.deepcopy(narrow).double())):
        bare = _logits(model) if precision == "float32" else _true_logits(model)
        with Capture(model) as capture:
            caught = _logits(model) if precision == "float32" else _true_logits(model)
        scan = "scan" if family == "mamba" else "ssd"
        if not torch.equal(bare, caught):
            faults.append(f"{family} {precision}: capturing changes the logits by {(bare - caught).abs().max():.1e}")
        wanted = {f"layers.1.mixer.{part}" for part in ("in_proj", "conv1d", "dt", scan, "out_proj")}
        if not wanted <= set(capture.probes):
            faults.append(f"{family} {precision}: not captured: {sorted(wanted - set(capture.probes))}")
    print(f"wrappers: {family} captured and plain passes are equal bit for bit" if not faults else faults)
    return faults


def prefill_faults(family: str) -> list[str]:
    """Cached steps against the whole pass, where no known defect of the original comes between (no dt limits)."""
    model = tiny(family).double()
    if family == "mamba2":
        for layer in model.backbone.layers:
            layer.mixer.time_step_limit = (0.0, float("inf"))
    with TrueFloat64():
        whole = _logits(model)
        cache = DynamicCache(config=model.config)
        steps = [model(torch.tensor([[token]]), cache=cache, use_cache=True).logits[0, 0] for token in _TOKENS]
    apart = float((torch.stack(steps) - whole).abs().max())
    print(f"prefill: {family} token by token differs from the whole pass by {apart:.1e}")
    return [] if apart <= _WHOLE else [f"{family}: cached steps differ from the whole pass by {apart:.1e}"]


def short_state_faults() -> list[str]:
    """After a prefill shorter than the convolution its state is K columns wide and zero on the left."""
    model = tiny("mamba2")
    layers = range(model.config.num_hidden_layers)
    expected = [Probe(f"layers.{l}.mixer.conv_state", (80, 4), True) for l in layers]
    expected += [Probe(f"layers.{l}.mixer.ssm_state", (6, 8, 8), True) for l in layers]
    state = runs.states_after(model, _TOKENS[:2], expected)["layers.0.mixer.conv_state"]
    right = bool((state[:, :2] == 0).all()) and bool((state[:, 2:] != 0).any())
    print("states: a conv_state of 2 tokens is 4 columns wide, the first 2 zero" if right else "states: wrong")
    return [] if right else ["the conv_state after 2 tokens is not left filled with zeros"]


def beam_faults(family: str) -> list[str]:
    """The original's search against the plainest one: whole runs of every kept sequence, all candidates sorted."""
    model = tiny(family)
    given = Input("beams", _TOKENS[:5], 0, [], True, 3, 4)
    found = beams.search(model, given)
    kept = [(0.0, [])]
    faults = []
    for step in range(given.beam_steps):
        candidates = []
        for total, sequence in kept:
            logits = model(torch.tensor([given.tokens + sequence]), use_cache=False).logits[0, -1]
            log_probs = torch.log_softmax(logits.double(), 0).tolist()
            candidates += [(total + log_prob, sequence + [token]) for token, log_prob in enumerate(log_probs)]
        candidates.sort(key=lambda candidate: -candidate[0])
        kept = candidates[: given.beam_width]
        sums = [total for total, _ in candidates[: given.beam_width + 1]]
        apart = max(abs(a - b) for a, b in zip(sums, found["steps"][step]["log_probs"], strict=True))
        if not apart < 1e-4:
            faults.append(f"{family}: the sums of step {step} of a beam search differ by {apart:.1e}")
    if [sequence for _, sequence in kept] != found["sequences"]:
        faults.append(f"{family}: the original's beams are not those of the plain search")
    scores = [total / given.beam_steps for total, _ in kept]
    if max(abs(a - b) for a, b in zip(scores, found["scores"], strict=True)) > 1e-4:
        faults.append(f"{family}: a score is not the sum over the number of generated tokens")
    print(f"beams: {family} finds what the plain search finds" if not faults else faults)
    return faults


def _refusal(model: torch.nn.Module, lose: str, lie_about: str) -> str:
    """What load_original says about a folder that lacks one tensor or whose manifest has another digest for one."""
    with tempfile.TemporaryDirectory() as folder:
        weights = dict(model.state_dict())
        described = {
            name: {"shape": list(value.shape), "sha256": loading.digest(value)} for name, value in weights.items()
        }
        if lie_about:
            described[lie_about]["sha256"] = "0" * 64
        weights.pop(lose, None)
        model.save_pretrained(folder, state_dict=weights)
        manifest = Manifest(Path(folder), type(model).__name__, described, {}, [])
        try:
            loading.load_original(manifest)
        except RecordError as error:
            return str(error)
    return ""


def loading_faults() -> list[str]:
    """A missing tensor and a wrong value must be refused by name, a right folder must not."""
    model = tiny("mamba2")
    name = "backbone.layers.1.mixer.dt_bias"
    faults = []
    if said := _refusal(model, "", ""):
        faults.append(f"a right folder is refused: {said}")
    for lose, lie_about in ((name, ""), ("", name)):
        if name not in _refusal(model, lose, lie_about):
            faults.append(f"{'a missing tensor' if lose else 'a wrong value'} is not refused by name")
    print("loading: a missing tensor and a wrong value are refused by name" if not faults else faults)
    return faults


def main() -> int:
    """Prints a line a check and returns 0, or 1 if any failed."""
    faults = float64_faults()
    for family in ("mamba", "mamba2"):
        faults += wrapper_faults(family) + prefill_faults(family) + beam_faults(family)
    faults += short_state_faults() + loading_faults() + selfcheck_kinds.faults()
    for fault in faults:
        print(f"FAULT {json.dumps(fault)}", file=sys.stderr)
    print("selfcheck: all right" if not faults else f"selfcheck: {len(faults)} faults")
    return 1 if faults else 0
