"""Where each family keeps its parts: attribute paths below a decoder layer, by the part of the probe table they fill.

A path that a layer does not have is a part that this layer lacks (an attention layer has no mixer), so one table serves
every layer kind of a family. A module that several layers share is hooked once and names its probes by the layer that is
computing.
"""

from dataclasses import dataclass, field, replace

import torch

from failure import RecordError


@dataclass(frozen=True)
class Parts:
    """Paths of one family. Outside the layers: below the base model. The others: below a decoder layer."""

    backbone: str = "model"
    embedding: str = "embed_tokens"
    final_norm: str = "norm"
    norm: str = "input_layernorm"
    # The norm of the feed-forward part; where it reads the residual stream, its input is the probe `mixed`.
    ff_norm: str = ""
    has_mixed: bool = True
    mixer: tuple[str, ...] = ()  # a recurrent mixer
    attention: tuple[str, ...] = ()
    dense: tuple[str, ...] = ()  # dense feed-forward parts
    routed: tuple[str, ...] = ()  # routed ones
    shared: tuple[str, ...] = ()  # a shared expert beside them
    ff_out: tuple[str, ...] = ()  # whose output is the sum of both
    others: dict[str, str] = field(default_factory=dict)  # path -> probe
    down: str = "down_proj"  # the last projection of a dense part
    embedding_multiplier: str = ""  # config field: the embedding is recorded after it
    logits_multiplier: str = ""  # config field: the head's output is not yet the logits
    logits_divisor: str = ""


_PURE = Parts(backbone="backbone", embedding="embeddings", final_norm="norm_f", norm="norm", mixer=("mixer",))
_HYBRID = Parts(
    final_norm="final_layernorm",
    ff_norm="pre_ff_layernorm",
    mixer=("mamba",),
    attention=("self_attn",),
    dense=("feed_forward",),
)
_LFM2 = Parts(
    final_norm="embedding_norm",
    norm="operator_norm",
    ff_norm="ffn_norm",
    mixer=("conv",),
    attention=("self_attn",),
    dense=("feed_forward",),
    down="w2",
)
_QWEN = Parts(
    ff_norm="post_attention_layernorm",
    mixer=("linear_attn",),
    attention=("self_attn",),
    dense=("mlp",),
    routed=("mlp",),
    shared=("mlp.shared_expert",),
    ff_out=("mlp",),
    others={"mlp.shared_expert_gate": "ff.shared.gate"},
)

_FAMILIES = {
    "mamba": _PURE,
    "mamba2": _PURE,
    "falcon_mamba": _PURE,
    "bamba": _HYBRID,
    "falcon_h1": replace(
        _HYBRID,
        embedding_multiplier="embedding_multiplier",
        logits_multiplier="lm_head_multiplier",
    ),
    "granitemoehybrid": Parts(
        ff_norm="post_attention_layernorm",
        mixer=("mamba",),
        attention=("self_attn",),
        routed=("block_sparse_moe",),
        shared=("shared_mlp",),
        embedding_multiplier="embedding_multiplier",
        logits_divisor="logits_scaling",
        down="output_linear",
    ),
    "jamba": replace(_HYBRID, routed=("feed_forward",)),
    "lfm2": _LFM2,
    "lfm2_moe": replace(_LFM2, routed=("feed_forward",)),
    "nemotron_h": Parts(
        embedding="embeddings",
        final_norm="norm_f",
        norm="norm",
        mixer=("mixer",),
        attention=("mixer",),
        dense=("mixer",),
        routed=("mixer",),
        shared=("mixer.shared_experts",),
        ff_out=("mixer",),
    ),
    "qwen3_next": _QWEN,
    "qwen3_5_text": _QWEN,
    "qwen3_5_moe_text": _QWEN,
    "zamba": Parts(
        final_norm="final_layernorm",
        norm="mamba_decoder.input_layernorm",
        ff_norm="shared_transf.pre_ff_layernorm",
        has_mixed=False,
        mixer=("mamba", "mamba_decoder.mamba"),
        attention=("shared_transf.self_attn",),
        dense=("shared_transf.feed_forward",),
        others={
            "input_layernorm": "norm",
            "shared_transf.input_layernorm": "shared_norm",
            "linear": "shared_out",
        },
    ),
    "zamba2": Parts(
        final_norm="final_layernorm",
        norm="mamba_decoder.input_layernorm",
        ff_norm="shared_transformer.pre_ff_layernorm",
        has_mixed=False,
        mixer=("mamba", "mamba_decoder.mamba"),
        attention=("shared_transformer.self_attn",),
        dense=("shared_transformer.feed_forward",),
        others={
            "input_layernorm": "norm",
            "shared_transformer.input_layernorm": "shared_norm",
            "linear": "shared_out",
        },
    ),
}


def parts_of(model: torch.nn.Module) -> Parts:
    """The family's row; RecordError if there is none."""
    family = model.config.model_type
    if family not in _FAMILIES:
        raise RecordError(f"model type {family}: the recorder does not know where it keeps its parts")
    return _FAMILIES[family]


def find(module: torch.nn.Module, path: str) -> torch.nn.Module | None:
    """The submodule at a dotted path; None where there is none."""
    for name in path.split("."):
        module = getattr(module, name, None)
        if not isinstance(module, torch.nn.Module):
            return None
    return module
