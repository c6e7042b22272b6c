"""What a recording asks of the original: greedy tokens, one whole teacher-forced pass with its probes, and the states
after cold prefills.

Right is the whole, unpadded run in the sequence form: the original's cached path has defects, so greedy tokens come from
whole re-runs with `use_cache=False`, and states from one cold prefill for each cut.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from transformers import DynamicCache

from capture import Capture, states
from failure import RecordError
from loading import Input, Probe
from precision import TrueFloat64


def _row(tokens: list[int]) -> torch.Tensor:
    return torch.tensor([tokens], dtype=torch.int64)


def computing(model: torch.nn.Module) -> AbstractContextManager:
    """The context that `model` must run in: its weights say which precision is meant."""
    return TrueFloat64() if next(model.parameters()).dtype == torch.float64 else nullcontext()


def continue_greedily(model: torch.nn.Module, given: Input) -> list[int]:
    """The prompt and `greedy` more tokens."""
    tokens = list(given.tokens)
    for _ in range(given.greedy):
        logits = model(_row(tokens), use_cache=False).logits
        tokens.append(int(logits[0, -1].argmax()))
    return tokens


def plain_logits(model: torch.nn.Module, tokens: list[int]) -> torch.Tensor:
    """The logits [L, V] of one pass over all tokens, with nothing caught on the way."""
    return model(_row(tokens), use_cache=False).logits[0]


def whole_pass(model: torch.nn.Module, tokens: list[int], expected: list[Probe]) -> dict[str, torch.Tensor]:
    """Every sequence probe [L, ...] of one pass over all tokens, in the manifest's order."""
    with Capture(model, [probe.name for probe in expected]) as capture, computing(model):
        logits = model(_row(tokens), use_cache=False).logits
        probes = dict(capture.probes)
        if not torch.equal(probes["logits"], logits[0]):
            raise RecordError("the head's output is not what the model returned as logits")
    return _as_expected(probes, expected, (len(tokens),))


def states_after(model: torch.nn.Module, tokens: list[int], expected: list[Probe]) -> dict[str, torch.Tensor]:
    """Every state after a cold prefill of the tokens."""
    with Capture(model, ()), computing(model):
        cache = DynamicCache(config=model.config)
        model(_row(tokens), cache=cache, use_cache=True)
        found = states(cache, [probe.name for probe in expected])
    return _as_expected(found, expected, ())


def _as_expected(
    found: dict[str, torch.Tensor], expected: list[Probe], leading: tuple[int, ...]
) -> dict[str, torch.Tensor]:
    """The found tensors in the expected order; RecordError if one is missing, left over, misshapen or not finite."""
    names = [probe.name for probe in expected]
    missing = [name for name in names if name not in found]
    surplus = [name for name in found if name not in names]
    if missing or surplus:
        raise RecordError(
            f"the original's probes are not the manifest's; missing: {', '.join(missing) or 'none'}; "
            f"not in the manifest: {', '.join(surplus) or 'none'}"
        )
    for probe in expected:
        value = found[probe.name]
        if tuple(value.shape) != leading + probe.shape:
            raise RecordError(
                f"probe {probe.name}: the original computed {list(value.shape)}, "
                f"the manifest says {list(leading + probe.shape)}"
            )
        if not bool(torch.isfinite(value).all()):
            raise RecordError(f"probe {probe.name}: the original computed a value that is not finite")
    return {name: found[name] for name in names}
