"""Probes that are what a module takes or gives."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from capture.families import find

if TYPE_CHECKING:
    from capture.core import Capture

# Modules inside a recurrent mixer whose output is the probe of the same name. The norms of mamba's selection are caught
# as parts of one probe.
_MIXER = (
    "in_proj",
    "in_proj_qkvz",
    "in_proj_ba",
    "in_proj_qkv",
    "in_proj_z",
    "in_proj_b",
    "in_proj_a",
    "x_proj",
    "out_proj",
)
_SELECTION = ("dt_layernorm", "b_layernorm", "c_layernorm")


def attach(capture: "Capture") -> None:
    """Hooks every module of the model that a probe is read from."""
    parts = capture.parts
    config = capture.model.config
    backbone = getattr(capture.model, parts.backbone)
    scale = getattr(config, parts.embedding_multiplier, 1.0) if parts.embedding_multiplier else 1.0
    _output(capture, backbone.get_submodule(parts.embedding), lambda value: capture.take("embed", value * scale))
    hooked: set[tuple[int, str]] = set()
    for index, layer in enumerate(backbone.layers):
        _attach_layer(capture, layer, f"layers.{index}", hooked)
    _output(capture, backbone.get_submodule(parts.final_norm), lambda value: capture.take("norm_f", value))
    factor = getattr(config, parts.logits_multiplier, 1.0) if parts.logits_multiplier else 1.0
    divisor = getattr(config, parts.logits_divisor, 1.0) if parts.logits_divisor else 1.0
    _output(capture, capture.model.lm_head, lambda value: capture.take("logits", value * factor / divisor))


def _attach_layer(capture: "Capture", layer: torch.nn.Module, name: str, hooked: set[tuple[int, str]]) -> None:
    parts = capture.parts

    def enter(*_: Any) -> None:
        capture.layer = name

    capture.undo_later(layer.register_forward_pre_hook(enter).remove)
    _output(capture, layer, lambda value: capture.take(f"{name}.out", value))

    def once(path: str, what: str) -> torch.nn.Module | None:
        """The module at the path, if it is there and not hooked for this yet (layers share some)."""
        module = find(layer, path)
        if module is None or (id(module), what) in hooked:
            return None
        hooked.add((id(module), what))
        return module

    def keep(suffix: str) -> Callable[[torch.Tensor], None]:
        return lambda value: capture.take(f"{capture.layer}.{suffix}", value)

    def keep_rows(suffix: str) -> Callable[[torch.Tensor], None]:
        """Of a module that sees [B L, width]."""
        return lambda value: capture.take_flat(f"{capture.layer}.{suffix}", value.reshape(-1, value.shape[-1]))

    if module := once(parts.norm, "norm"):
        _output(capture, module, keep("norm"))
    if parts.ff_norm and (module := once(parts.ff_norm, "ff_norm")):
        _output(capture, module, keep("ff_norm"))
        if parts.has_mixed:
            _input(capture, module, keep("mixed"))
    for path, suffix in parts.others.items():
        if module := once(path, suffix):
            _output(capture, module, keep_rows(suffix) if suffix.startswith("ff.") else keep(suffix))
    for path in parts.mixer:
        _attach_mixer(capture, path, once, keep)
    for path in parts.attention:
        for projection in ("o_proj", "out_proj"):
            if find(layer, f"{path}.q_proj") and (module := once(f"{path}.{projection}", "attention")):
                _input(capture, module, lambda value: _take_gated(capture, value))
                _output(capture, module, keep("attn.out_proj"))
    for path in parts.dense:
        if module := once(f"{path}.{parts.down}", "dense"):
            _input(capture, module, keep("ff.act"))
            # After the part's own multiplier, so the part's output and not the projection's.
            _output(capture, find(layer, path), keep("ff.down_proj"))
    for path in parts.shared:
        if module := once(f"{path}.{parts.down}", "shared"):
            _input(capture, module, keep_rows("ff.shared.act"))
            _output(capture, module, keep_rows("ff.shared.down_proj"))
    for path in parts.routed:
        if module := once(f"{path}.experts", "experts"):
            _attach_routed(capture, find(layer, path), module, keep_rows)
    for path in parts.ff_out:
        if find(layer, f"{path}.experts") and (module := once(path, "ff_out")):
            _output(capture, module, keep("ff.out"))


def _attach_mixer(capture: "Capture", path: str, once: Callable, keep: Callable) -> None:
    for part in _MIXER:
        if part == "out_proj" and once(f"{path}.q_proj", "not a mixer"):
            continue
        if module := once(f"{path}.{part}", part):
            _output(capture, module, keep(f"mixer.{part}"))
            if part == "out_proj":
                _input(capture, module, lambda value: _take_gate(capture, value))
    for part in _SELECTION:
        if module := once(f"{path}.{part}", part):
            _output(capture, module, lambda value: _take_selection(capture, value))
    if module := once(f"{path}.norm", "gated norm"):
        _output(capture, module, lambda value: _take_mixer_norm(capture, value))


def _attach_routed(capture: "Capture", part: torch.nn.Module, experts: torch.nn.Module, keep_rows: Callable) -> None:
    router = getattr(part, "router", None) or part.gate

    def keep_choice(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        logits, weights, chosen = output
        capture.take_flat(f"{capture.layer}.ff.router", logits)
        # By expert and not by rank: the order of equals among the chosen says nothing.
        routing = torch.zeros_like(logits, dtype=weights.dtype).scatter(-1, chosen, weights)
        capture.take_flat(f"{capture.layer}.ff.routing", routing)

    capture.undo_later(router.register_forward_hook(keep_choice).remove)
    latent = getattr(part, "fc2_latent_proj", None)
    _output(capture, experts if latent is None else latent, keep_rows("ff.experts"))


def _take_gated(capture: "Capture", value: torch.Tensor) -> None:
    """The input of an attention's output projection [B, L, nq hd], where the attention has an output gate."""
    name = f"{capture.layer}.attn.gated"
    if not capture.wants(name):
        return
    heads = capture.probes[f"{capture.layer}.attn.attention"].shape[-2]
    capture.take(name, value.unflatten(-1, (heads, -1)))


def _take_gate(capture: "Capture", value: torch.Tensor) -> None:
    """The input of a mixer's out_proj, where the gate is the last thing before it and no function returned it."""
    name = f"{capture.layer}.mixer.gate"
    if name not in capture.probes:
        capture.take(name, value)


def _take_selection(capture: "Capture", value: torch.Tensor) -> None:
    """dt, B and C after their norms, in this order of computation: one probe."""
    parts = capture.pending.setdefault("selection", [])
    parts.append(value)
    if len(parts) == len(_SELECTION):
        capture.take(f"{capture.layer}.mixer.selection", torch.cat(parts, dim=-1))
        parts.clear()


def _take_mixer_norm(capture: "Capture", value: torch.Tensor) -> None:
    """A gated norm [B, L, I]; of the delta rule, which folds all but the head's width, [B L Hv, dv]."""
    name = f"{capture.layer}.mixer.norm"
    if not capture.wants(name):
        return
    if value.dim() == 2:
        heads = capture.probes[f"{capture.layer}.mixer.delta"].shape[-2]
        capture.take_flat(name, value.reshape(-1, heads, value.shape[-1]))
    else:
        capture.take(name, value)


def _output(capture: "Capture", module: torch.nn.Module, keep: Callable[[torch.Tensor], None]) -> None:
    def hook(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        keep(output[0] if isinstance(output, tuple) else output)

    capture.undo_later(module.register_forward_hook(hook).remove)


def _input(capture: "Capture", module: torch.nn.Module, keep: Callable[[torch.Tensor], None]) -> None:
    def hook(_module: torch.nn.Module, inputs: tuple[Any, ...]) -> None:
        keep(inputs[0])

    capture.undo_later(module.register_forward_pre_hook(hook).remove)
