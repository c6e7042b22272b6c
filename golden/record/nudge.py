"""Moves every weight of an original to a neighbouring float32 and back.

One difference between float32 and float64 is one sample of the original's rounding noise and can be near zero by luck,
at a whole position where the noise has one cause (the first columns of a delta rule, a scalar gate). Rounding inside a
sum is a disturbance of about one unit in the last place of what is summed, so runs on such weights are further samples.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

NUDGES = 3


@contextmanager
def nudged(model: torch.nn.Module, number: int) -> Iterator[None]:
    """While it lasts every parameter is one unit in the last place off, up or down by a seeded coin. Zeros stay."""
    parameters = list(model.parameters())
    kept = [parameter.data for parameter in parameters]
    coin = torch.Generator().manual_seed(number)
    try:
        for parameter in parameters:
            is_up = torch.randint(0, 2, parameter.shape, generator=coin, dtype=torch.bool)
            target = torch.where(is_up, torch.inf, -torch.inf).to(parameter.dtype)
            moved = torch.nextafter(parameter.data, target)
            parameter.data = torch.where(parameter.data == 0, parameter.data, moved)
        yield
    finally:
        for parameter, values in zip(parameters, kept, strict=True):
            parameter.data = values
