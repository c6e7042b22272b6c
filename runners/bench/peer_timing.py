"""Gate and timing of a peer, by the method of fast/ops/op_runner.cpp."""

import gc
import math
import time

import torch

import peer_calls
import peer_formulas
import peer_inputs

TORCH_DTYPES = {"float32": torch.float32, "tf32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# Of the largest expected element; far above rounding and far below what a wrong axis or a wrong sign makes of it.
TOLERANCES = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 4e-2, "float16": 1e-2}
WARM_UP = 3
MOST_FLUSHES = 200


class Wrong(Exception):
    """A peer whose answer is not the op's."""


def difference(outputs, expected):
    """The largest difference in units of an output's scale, over the outputs that the peer gives."""
    worst = 0.0
    for name, value in outputs.items():
        want = expected[name]
        if value.shape != want.shape:
            raise Wrong(f"{name} is {list(value.shape)}, not {list(want.shape)}")
        apart = (value.double() - want.double()).abs().max().item()
        scale = want.double().abs().max().item()
        if not math.isfinite(apart):
            raise Wrong(f"{name} is not finite")
        worst = max(worst, apart / scale if scale else apart)
    return worst


def gated(build, row, dtype, device):
    """A launch at the row's sizes whose answer is right in the row's part, and by how much it differs there."""
    tensors, letters = peer_inputs.draw(row, TORCH_DTYPES[dtype], device)
    peer_calls.forget_tuning(build.package)
    launch, _ = build(row, dict(tensors))
    launch()  # chooses among its kernels at this size, which may spoil a state that is updated in place
    launch, outputs = build(row, dict(tensors))
    answer = outputs(launch())
    for name, value in answer.items():
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise Wrong(f"{name} is not finite")
    part, made = row.part(), peer_inputs.OUTPUTS[row.op]
    for name, value in answer.items():
        if list(value.shape) != [row.sizes[size] for size in made[name].split()]:
            raise Wrong(f"{name} is {list(value.shape)}")
    expected = peer_formulas.expected(part, peer_inputs.cut(tensors, letters, part))
    apart = difference(peer_inputs.cut(answer, made, part), expected)
    if apart > TOLERANCES[dtype]:
        raise Wrong(f"differs by {apart:.2g} of the output's scale, {TOLERANCES[dtype]:.0e} allowed")
    return launch, apart


def elapsed_ms(launch, repetitions, flush, times):
    """Milliseconds of each launch, the L2 flushed before it by `times` writes and a read, which writes them back."""
    total = torch.empty((), device=flush.device)
    starts, ends = ([torch.cuda.Event(enable_timing=True) for _ in range(repetitions)] for _ in range(2))
    for start, end in zip(starts, ends):
        for _ in range(times):
            flush.zero_()
        torch.sum(flush, dim=0, out=total)
        start.record()
        launch()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) for start, end in zip(starts, ends)]


def timed(launch, repetitions):
    """Milliseconds of each launch."""
    flush = torch.empty(torch.cuda.get_device_properties(0).L2_cache_size, dtype=torch.float32, device="cuda")
    for _ in range(WARM_UP):
        launch()
    torch.cuda.synchronize()
    # Python issues slower than a GPU computes. The flush is repeated until it hides the launch that is queued behind it.
    begin = time.perf_counter()
    launch()
    host_ms = 1000 * (time.perf_counter() - begin)
    torch.cuda.synchronize()
    flush_ms = min(elapsed_ms(flush.zero_, 3, flush, 1))
    times = min(MOST_FLUSHES, 1 + math.ceil(2 * host_ms / flush_ms))
    gc.disable()
    try:
        return elapsed_ms(launch, repetitions, flush, times)
    finally:
        gc.enable()


def measure(build, row, dtype, repetitions, device):
    """(difference, milliseconds). On a processor the gate alone, at the sizes that it names."""
    with torch.inference_mode():
        launch, apart = gated(build, row if device == "cuda" else row.small(), dtype, device)
        return apart, timed(launch, repetitions) if device == "cuda" else []
