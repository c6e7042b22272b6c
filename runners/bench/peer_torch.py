"""Peers of torch alone."""

from peer_packages import Absent, Y, imported, named, peer


@peer("torch")
def torch_rms_norm(row, t):
    F = imported("torch.nn.functional")
    x, weight, width = t["x"], t["weight"], (t["weight"].shape[0],)
    epsilon = row.attribute("epsilon", 1e-5)
    if row.op == "head_rms_norm":
        x = x[:, int(row.attribute("slice", 0))]
    if row.attribute("zero_centred", 0):
        weight = weight + 1
    if "residual" not in t:
        return lambda: F.rms_norm(x, width, weight, epsilon), Y

    def added():
        total = x + t["residual"]
        return F.rms_norm(total, width, weight, epsilon), total
    return added, named("y", "sum")


@peer("torch")
def torch_linear(row, t):
    F = imported("torch.nn.functional")
    return lambda: F.linear(t["x"], t["weight"]), Y


@peer("torch")
def torch_sdpa(row, t):
    F = imported("torch.nn.functional")
    q, causal = t["q"].transpose(1, 2), row.form == "prefill"
    return lambda: F.scaled_dot_product_attention(q, t["k"], t["v"], is_causal=causal, enable_gqa=True), \
        lambda raw: {"y": raw.transpose(1, 2)}


@peer("torch")
def torch_sdpa_repeated(row, t):
    q, repeats = t["q"].transpose(1, 2), t["q"].shape[2] // t["k"].shape[1]
    repeated = {name: t[name].repeat_interleave(repeats, 1) for name in "kv"}
    F = imported("torch.nn.functional")
    causal = row.form == "prefill"
    return lambda: F.scaled_dot_product_attention(q, repeated["k"], repeated["v"], is_causal=causal), \
        lambda raw: {"y": raw.transpose(1, 2)}


@peer("torch")
def torch_conv1d(row, t):
    F = imported("torch.nn.functional")
    torch = imported("torch")
    x, taps, length = t["x"].transpose(1, 2).contiguous(), t["weight"].shape[1], t["x"].shape[1]
    weight = t["weight"][:, None]

    def convolved():
        y = F.conv1d(x, weight, t["bias"], padding=taps - 1, groups=x.shape[1])[:, :, :length]
        return (F.silu(y) if row.attribute("silu", 0) else y), x[:, :, -taps:].clone()

    def updated():
        state = torch.cat([t["initial_state"][:, :, 1:], x], 2)
        y = (state * t["weight"]).sum(2, keepdim=True) + t["bias"][:, None]
        return (F.silu(y) if row.attribute("silu", 0) else y), state
    return updated if row.form == "update" else convolved, \
        lambda raw: {"y": raw[0].transpose(1, 2), "final_state": raw[1]}


@peer("torch")
def torch_kv_append(row, t):
    caches, past, length = {name: t[name].clone() for name in ("k_cache", "v_cache")}, int(row.attribute("past", 0)), \
        t["k"].shape[1]
    new = {"k_cache": t["k"].transpose(1, 2), "v_cache": t["v"].transpose(1, 2)}

    def append():
        for name, cache in caches.items():
            cache[:, :, past:past + length].copy_(new[name])
    return append, lambda raw: caches


@peer("torch")
def torch_router(row, t):
    torch = imported("torch")

    def route():
        values, places = torch.topk(torch.softmax(t["logits"], -1), int(row.attribute("chosen", 1)))
        if row.attribute("normalises", 0):
            values = values / values.sum(-1, keepdim=True)
        return torch.zeros_like(t["logits"]).scatter_(1, places, values)
    return route, named("routing")


@peer("torch")
def torch_experts_loop(row, t):
    torch, F = imported("torch"), imported("torch.nn.functional")

    def loop():
        y = torch.zeros_like(t["x"])
        for expert in torch.unique(t["ids"]).tolist():
            tokens, places = torch.where(t["ids"] == expert)
            gate, up = F.linear(t["x"][tokens], t["first"][expert]).chunk(2, -1)
            rows = F.linear(F.silu(gate) * up, t["down"][expert])
            y.index_add_(0, tokens, rows * t["weights"][tokens, places, None].to(rows.dtype))
        return y
    return loop, Y


@peer("torch")
def torch_experts_gathered(row, t):
    F = imported("torch.nn.functional")
    ids, chosen = t["ids"].flatten(), t["ids"].shape[1]

    def gathered():
        rows = t["x"].repeat_interleave(chosen, 0)[:, :, None]
        gate, up = (t["first"][ids] @ rows).chunk(2, 1)
        rows = (t["down"][ids] @ (F.silu(gate) * up)).squeeze(2) * t["weights"].flatten()[:, None]
        return rows.unflatten(0, (-1, chosen)).sum(1)
    return gathered, Y


@peer("torch")
def torch_experts_grouped_mm(row, t):
    torch, F = imported("torch"), imported("torch.nn.functional")
    if not hasattr(F, "grouped_mm"):
        raise Absent("this torch has no grouped_mm")
    first, down, chosen = t["first"].transpose(1, 2), t["down"].transpose(1, 2), t["ids"].shape[1]
    weights = t["weights"].flatten().to(t["x"].dtype)

    def grouped():
        experts, order = t["ids"].flatten().sort()
        counts = torch.bincount(experts, minlength=first.shape[0])
        ends = counts.cumsum(0).to(torch.int32)
        tokens = order // chosen
        gate, up = F.grouped_mm(t["x"][tokens], first, offs=ends).chunk(2, -1)
        rows = F.grouped_mm(F.silu(gate) * up, down, offs=ends) * weights[order, None]
        return torch.zeros_like(t["x"]).index_add_(0, tokens, rows)
    return grouped, Y


@peer("torch")
def torch_top_log_probs(row, t):
    torch = imported("torch")
    return lambda: torch.topk(torch.log_softmax(t["x"], -1), row.sizes["k"]), \
        lambda raw: {"values": raw[0], "at ids": t["x"].double().log_softmax(-1).gather(1, raw[1])}


@peer("torch")
def torch_rotary(row, t):
    torch = imported("torch")
    x, half = t["x"], t["x"].shape[3] // 2
    frequency = 10000 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)

    def rotate():
        angle = t["positions"][:, :, None, None].float() * frequency
        cos, sin = torch.cos(angle).repeat(1, 1, 1, 2), torch.sin(angle).repeat(1, 1, 1, 2)
        turned = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * cos + turned * sin
    return rotate, Y


def elementwise(build):
    """A peer of few torch calls: build(torch, row, inputs) is what is timed."""
    def builder(row, t):
        torch = imported("torch")
        return lambda: build(torch, row, t), Y
    builder.__name__ = build.__name__
    return peer("torch")(builder)


@elementwise
def torch_gate(torch, row, t):
    return t["x"] * torch.sigmoid(t["gate"])


@elementwise
def torch_feed_forward(torch, row, t):
    return torch.nn.functional.silu(t["gate"]) * t["up"]


@elementwise
def torch_silu_gate(torch, row, t):
    return t["x"] * torch.nn.functional.silu(t["z"])


@elementwise
def torch_add(torch, row, t):
    return torch.add(t["residual"], t["x"], alpha=row.attribute("scale", 1))


@elementwise
def torch_shared_gate(torch, row, t):
    return torch.addcmul(t["residual"], t["x"], torch.sigmoid(t["gate"])[:, None])


@elementwise
def torch_mask_rows(torch, row, t):
    return t["x"] * t["mask"][..., None]


@elementwise
def torch_argmax(torch, row, t):
    return torch.argmax(t["x"], -1)


@elementwise
def torch_embedding(torch, row, t):
    return torch.nn.functional.embedding(t["ids"], t["weight"])


@elementwise
def torch_gather_rows(torch, row, t):
    return torch.index_select(t["x"], 0, t["source"])


@elementwise
def torch_gather_columns(torch, row, t):
    return torch.index_select(t["x"], 1, t["index"])
