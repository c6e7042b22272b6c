"""Copies of an original whose every weight is moved to a neighbouring float32.

One difference between float32 and float64 is one sample of the original's rounding noise and can be near zero by luck,
at a whole position where the noise has one cause (the first columns of a delta rule, a scalar gate). Rounding inside a
sum is a disturbance of about one unit in the last place of what is summed, so runs on such copies are further samples.
"""

import copy

import torch

NUDGES = 3


def nudged(model: torch.nn.Module, number: int) -> torch.nn.Module:
    """The model with every parameter moved by one unit in the last place, up or down by a seeded coin. Zeros stay."""
    other = copy.deepcopy(model)
    coin = torch.Generator().manual_seed(number)
    with torch.no_grad():
        for parameter in other.parameters():
            is_up = torch.randint(0, 2, parameter.shape, generator=coin, dtype=torch.bool)
            target = torch.where(is_up, torch.inf, -torch.inf).to(parameter.dtype)
            moved = torch.nextafter(parameter, target)
            parameter.copy_(torch.where(parameter == 0, parameter, moved))
    return other
