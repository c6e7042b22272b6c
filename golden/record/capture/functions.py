"""Probes that the original computes inside a function of its modeling module.

Those functions are globals, looked up at each call, and a decorator may have replaced them with a package's. The wrappers
call the undecorated torch function (`__wrapped__`), so a captured pass is a pass of the plain torch path.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F

from failure import RecordError

if TYPE_CHECKING:
    from capture.core import Capture


def attach(capture: "Capture", module: Any) -> None:
    """Wraps every function of the family's modeling module that a probe is read from."""
    wrappers = {
        "causal_conv1d_fn": _convolution,
        "mamba_selective_scan": _selective_scan,
        "mamba2_chunk_scan": _chunk_scan,
        "torch_chunk_gated_delta_rule": _delta_rule,
    }
    for name, wrapper in wrappers.items():
        if hasattr(module, name):
            _wrap(capture, module, name, wrapper, is_decorated=True)
    if hasattr(module, "eager_attention_forward"):
        _wrap(capture, module, "eager_attention_forward", _attention, is_decorated=False)


def _wrap(capture: "Capture", module: Any, name: str, wrapper: Callable[..., Any], is_decorated: bool) -> None:
    found = getattr(module, name)
    plain = getattr(found, "__wrapped__", None) if is_decorated else found
    if plain is None:
        raise RecordError(f"{module.__name__}.{name} is not the decorated function this recorder was written for")
    capture.undo_later(lambda: setattr(module, name, found))
    setattr(module, name, lambda *args, **kwargs: wrapper(capture, plain, *args, **kwargs))


def _convolution(capture: "Capture", plain: Callable[..., torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
    output = plain(*args, **kwargs)  # [B, C, L], activation included
    capture.take(f"{capture.layer}.mixer.conv1d", output.transpose(1, 2))
    return output


def _selective_scan(
    capture: "Capture",
    plain: Callable[..., Any],
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    *args: Any,
    z: torch.Tensor,
    delta_bias: torch.Tensor,
    **kwargs: Any,
) -> Any:
    """The scan without its gate, recorded, then the gate applied as the original's last line does."""
    # The original works on dt [B, I, L] and adds the bias before the softplus.
    step = F.softplus(dt + delta_bias.to(dt.dtype)[..., None])
    result = plain(hidden_states, dt, A, B, C, *args, z=None, delta_bias=delta_bias, **kwargs)
    scan = result[0] if isinstance(result, tuple) else result
    gated = scan * F.silu(z)
    mixer = f"{capture.layer}.mixer"
    heads = getattr(capture.model.config, "n_mamba_heads", 0) if capture.model.config.model_type == "zamba" else 0
    values = {"dt": step.transpose(1, 2), "scan": scan.transpose(1, 2), "gate": gated.transpose(1, 2)}
    if heads == 0:
        for name, value in values.items():
            capture.take(f"{mixer}.{name}", value)
    else:
        # One call a head; B and C are [B, N, L].
        values["selection"] = torch.cat((B, C), dim=1).transpose(1, 2)
        for name, value in values.items():
            parts = capture.pending.setdefault(name, [])
            parts.append(value)
            if len(parts) == heads:
                whole = torch.cat(parts, dim=-1) if name == "gate" else torch.stack(parts, dim=2)
                capture.take(f"{mixer}.{name}", whole)
                parts.clear()
    return (gated, *result[1:]) if isinstance(result, tuple) else gated


def _chunk_scan(
    capture: "Capture",
    plain: Callable[..., Any],
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    *args: Any,
    dt_bias: torch.Tensor,
    dt_limit: tuple[float, float],
    **kwargs: Any,
) -> Any:
    step = torch.clamp(F.softplus(dt + dt_bias.to(dt.dtype)), min=dt_limit[0], max=dt_limit[1])
    capture.take(f"{capture.layer}.mixer.dt", step)
    result = plain(hidden_states, dt, *args, dt_bias=dt_bias, dt_limit=dt_limit, **kwargs)
    capture.take(f"{capture.layer}.mixer.ssd", result[0] if isinstance(result, tuple) else result)
    return result


def _delta_rule(
    capture: "Capture",
    plain: Callable[..., Any],
    *args: Any,
    g: torch.Tensor,
    beta: torch.Tensor,
    **kwargs: Any,
) -> Any:
    mixer = f"{capture.layer}.mixer"
    capture.take(f"{mixer}.beta", beta)
    capture.take(f"{mixer}.g", g)
    result = plain(*args, g=g, beta=beta, **kwargs)
    capture.take(f"{mixer}.delta", result[0])
    return result


def _attention(
    capture: "Capture",
    plain: Callable[..., Any],
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Queries, keys and values as they enter the scores [B, heads, L, hd]; the output is [B, L, heads, hd]."""
    attention = f"{capture.layer}.attn"
    for name, tensor in (("q", query), ("k", key), ("v", value)):
        capture.take(f"{attention}.{name}", tensor.transpose(1, 2))
    result = plain(module, query, key, value, *args, **kwargs)
    capture.take(f"{attention}.attention", result[0])
    return result
