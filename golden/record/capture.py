"""Catches every named tensor of one forward pass: forward hooks where a module's output is a probe, and wrapped
functions where the original computes inside one.

The original's functions (`causal_conv1d_fn`, `mamba_selective_scan`, `mamba2_chunk_scan`) are globals of its modeling
module, looked up at each call, and a decorator may have replaced them with a package's. The wrappers call the
undecorated torch function (`__wrapped__`), so a captured pass is a pass of the plain torch path.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from failure import RecordError


class Capture:
    """Context in which the forward passes of `model` fill `probes`, name -> tensor of batch row 0, in order."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.probes: dict[str, torch.Tensor] = {}
        self._mixer = ""
        self._undo: list[Callable[[], Any]] = []

    def take(self, name: str, value: torch.Tensor) -> None:
        """Keeps a copy of batch row 0 [L, ...]; a second value for a name means that the pass was not one pass."""
        if name in self.probes:
            raise RecordError(f"probe {name} was computed twice in one pass")
        self.probes[name] = value[0].detach().clone()

    def __enter__(self) -> "Capture":
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *failure: Any) -> None:
        while self._undo:
            self._undo.pop()()

    def _attach(self) -> None:
        backbone = self.model.backbone
        self._hook(backbone.embeddings, "embed")
        for index, layer in enumerate(backbone.layers):
            prefix = f"layers.{index}"
            mixer = f"{prefix}.mixer"
            self._hook(layer.norm, f"{prefix}.norm")
            handle = layer.mixer.register_forward_pre_hook(lambda *_, name=mixer: setattr(self, "_mixer", name))
            self._undo.append(handle.remove)
            for part in ("in_proj", "x_proj", "norm", "out_proj"):
                if hasattr(layer.mixer, part):
                    self._hook(getattr(layer.mixer, part), f"{mixer}.{part}")
            self._hook(layer, f"{prefix}.out")
        self._hook(backbone.norm_f, "norm_f")
        self._hook(self.model.lm_head, "logits")

        module = sys.modules[type(self.model).__module__]
        wrappers = {
            "causal_conv1d_fn": self._convolution,
            "mamba_selective_scan": self._selective_scan,
            "mamba2_chunk_scan": self._chunk_scan,
        }
        for name, wrapper in wrappers.items():
            if hasattr(module, name):
                self._wrap(module, name, wrapper)

    def _hook(self, module: torch.nn.Module, name: str) -> None:
        def keep(_module: torch.nn.Module, _inputs: Any, output: Any) -> None:
            self.take(name, output[0] if isinstance(output, tuple) else output)

        self._undo.append(module.register_forward_hook(keep).remove)

    def _wrap(self, module: Any, name: str, wrapper: Callable[..., Any]) -> None:
        decorated = getattr(module, name)
        plain = getattr(decorated, "__wrapped__", None)
        if plain is None:
            raise RecordError(f"{module.__name__}.{name} is not the decorated function this recorder was written for")
        self._undo.append(lambda: setattr(module, name, decorated))
        setattr(module, name, lambda *args, **kwargs: wrapper(plain, *args, **kwargs))

    def _convolution(self, plain: Callable[..., torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
        output = plain(*args, **kwargs)  # [B, C, L], activation included
        self.take(f"{self._mixer}.conv1d", output.transpose(1, 2))
        return output

    def _selective_scan(
        self,
        plain: Callable[..., Any],
        hidden_states: torch.Tensor,
        dt: torch.Tensor,
        *args: Any,
        z: torch.Tensor,
        delta_bias: torch.Tensor,
        **kwargs: Any,
    ) -> Any:
        """The scan without its gate, recorded, then the gate applied as the original's last line does."""
        # The original works on dt [B, I, L] and adds the bias before the softplus.
        step = F.softplus(dt + delta_bias.to(dt.dtype)[..., None])
        self.take(f"{self._mixer}.dt", step.transpose(1, 2))
        result = plain(hidden_states, dt, *args, z=None, delta_bias=delta_bias, **kwargs)
        scan = result[0] if isinstance(result, tuple) else result
        self.take(f"{self._mixer}.scan", scan.transpose(1, 2))
        gated = scan * F.silu(z)
        self.take(f"{self._mixer}.gate", gated.transpose(1, 2))
        return (gated, *result[1:]) if isinstance(result, tuple) else gated

    def _chunk_scan(
        self,
        plain: Callable[..., Any],
        hidden_states: torch.Tensor,
        dt: torch.Tensor,
        *args: Any,
        dt_bias: torch.Tensor,
        dt_limit: tuple[float, float],
        **kwargs: Any,
    ) -> Any:
        step = torch.clamp(F.softplus(dt + dt_bias.to(dt.dtype)), min=dt_limit[0], max=dt_limit[1])
        self.take(f"{self._mixer}.dt", step)
        result = plain(hidden_states, dt, *args, dt_bias=dt_bias, dt_limit=dt_limit, **kwargs)
        self.take(f"{self._mixer}.ssd", result[0] if isinstance(result, tuple) else result)
        return result
