"""True float64: the originals say `.float()` and `torch.float32` in many places, so `model.double()` alone still rounds
to float32 on the way and the noise floor would be measured against itself.

While `TrueFloat64` is active every call into torch that names float32 means float64, and a call whose result is a
float32 tensor all the same is an error. So a run that ends is a run in which nothing was float32.
"""

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from failure import RecordError

_NARROW = (torch.float32, torch.float16, torch.bfloat16)


def _widen(value: Any) -> Any:
    """The same argument with every dtype below float64 replaced, inside lists, tuples and dictionaries too."""
    if isinstance(value, torch.dtype):
        return torch.float64 if value in _NARROW else value
    if type(value) in (list, tuple):
        return type(value)(_widen(item) for item in value)
    if type(value) is dict:
        return {key: _widen(item) for key, item in value.items()}
    return value


def _narrow_tensor(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype in _NARROW
    if isinstance(value, (list, tuple)):
        return any(_narrow_tensor(item) for item in value)
    return False


class TrueFloat64(TorchFunctionMode):
    """Context in which float32 means float64 for everything called through torch."""

    def __enter__(self) -> "TrueFloat64":
        self._default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        return super().__enter__()

    def __exit__(self, *failure: Any) -> None:
        super().__exit__(*failure)
        torch.set_default_dtype(self._default)

    def __torch_function__(self, func, types, args=(), kwargs=None):  # noqa: D105 - torch's name
        if func in (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16):
            func = torch.Tensor.double
        result = func(*_widen(args), **_widen(kwargs or {}))
        if _narrow_tensor(result):
            name = getattr(func, "__qualname__", repr(func))
            raise RecordError(f"the float64 run met a tensor of lower precision, made by {name}")
        return result
