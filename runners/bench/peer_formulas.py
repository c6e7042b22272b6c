"""What each op is, by plain torch in float64 (cases/ops/README.md): a peer whose answer is another has no time."""

import math

import torch
import torch.nn.functional as F


def softplus(x):
    return torch.where(x > 20, x, torch.log1p(torch.exp(torch.clamp(x, max=20))))


def rms(x, epsilon):
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + epsilon)


def unit(x, epsilon):
    return x / torch.sqrt(x.square().sum(-1, keepdim=True) + epsilon)


def convolved(x, weight, bias, state):
    """x [B,L,C]; output [B,L,C] and the last K inputs [B,C,K]."""
    taps = weight.shape[1]
    before = x.new_zeros(x.shape[0], x.shape[2], taps) if state is None else state
    inputs = torch.cat([before, x.transpose(1, 2)], dim=2)
    length = x.shape[1]
    y = sum(weight[:, j, None] * inputs[:, :, 1 + j:1 + j + length] for j in range(taps))
    y = y if bias is None else y + bias[:, None]
    return y.transpose(1, 2), inputs[:, :, -taps:]


def causal_conv1d(row, t):
    y, state = convolved(t["x"], t["weight"], t.get("bias"), t.get("initial_state"))
    return {"y": F.silu(y) if row.attribute("silu", 0) else y, "final_state": state}


def short_conv(row, t):
    gate_in, gate_out, x = t["bcx"].unbind(2)
    y, state = convolved(gate_in * x, t["weight"], t.get("bias"), t.get("initial_state"))
    return {"y": gate_out * y, "final_state": state}


def step_sizes(row, t):
    if "dt_bias" not in t:
        return t["dt"]
    return softplus(t["dt"] + t["dt_bias"]).clamp(row.attribute("dt_min", 0), row.attribute("dt_max", math.inf))


def selective_scan(row, t):
    dt, x = step_sizes(row, t), t["x"]
    B, C = (t[name].repeat_interleave(x.shape[2] // t[name].shape[2], 2) for name in "BC")
    h = t.get("initial_state", x.new_zeros(x.shape[0], *t["A"].shape))
    columns = []
    for i in range(x.shape[1]):
        h = torch.exp(dt[:, i, :, None] * t["A"]) * h + dt[:, i, :, None] * B[:, i] * x[:, i, :, None]
        columns.append((h * C[:, i]).sum(-1) + t["D"] * x[:, i])
    return {"y": torch.stack(columns, 1), "final_state": h}


def ssd(row, t):
    dt, x = step_sizes(row, t), t["x"]
    B, C = (t[name].repeat_interleave(x.shape[2] // t[name].shape[2], 2) for name in "BC")
    state = t.get("initial_state", x.new_zeros(x.shape[0], x.shape[2], x.shape[3], B.shape[3]))
    columns = []
    for i in range(x.shape[1]):
        decay, step = torch.exp(dt[:, i] * t["A"])[..., None, None], dt[:, i, :, None, None]
        state = decay * state + step * x[:, i, :, :, None] * B[:, i, :, None, :]
        columns.append((state * C[:, i, :, None, :]).sum(-1) + t["D"][:, None] * x[:, i])
    return {"y": torch.stack(columns, 1), "final_state": state}


def gated_delta_rule(row, t):
    epsilon, q, k, v = row.attribute("epsilon", 1e-6), t["q"], t["k"], t["v"]
    if row.attribute("l2norm", 1):
        q, k = unit(q, epsilon) / math.sqrt(q.shape[3]), unit(k, epsilon)
    q, k = (x.repeat_interleave(v.shape[2] // x.shape[2], 2) for x in (q, k))
    g = t["A"] * softplus(t["g"] + t["dt_bias"]) if "A" in t else t["g"]
    beta = torch.sigmoid(t["beta"]) if row.attribute("sigmoid", 0) else t["beta"]
    state = t.get("initial_state", v.new_zeros(v.shape[0], v.shape[2], k.shape[3], v.shape[3]))
    columns = []
    for i in range(v.shape[1]):
        state = torch.exp(g[:, i])[..., None, None] * state
        error = beta[:, i, :, None] * (v[:, i] - (state * k[:, i, :, :, None]).sum(2))
        state = state + k[:, i, :, :, None] * error[:, :, None, :]
        columns.append((state * q[:, i, :, :, None]).sum(2))
    return {"o": torch.stack(columns, 1), "final_state": state}


def rms_norm(row, t):
    total = t["x"] + t["residual"] if "residual" in t else t["x"]
    y = {"y": t["weight"] * rms(total, row.attribute("epsilon", 1e-5))}
    return {**y, "sum": total} if "residual" in t else y


def gated_rms_norm(row, t):
    u = (t["x"] * F.silu(t["z"])).unflatten(-1, (int(row.attribute("groups", 1)), -1))
    return {"y": t["weight"] * rms(u, row.attribute("epsilon", 1e-5)).flatten(-2)}


def rms_norm_gated(row, t):
    return {"y": t["shared_weight"] * rms(t["x"], row.attribute("epsilon", 1e-5)) * F.silu(t["z"])}


def head_rms_norm(row, t):
    weight = t["weight"] + 1 if row.attribute("zero_centred", 0) else t["weight"]
    return {"y": weight * rms(t["x"][:, int(row.attribute("slice", 0))], row.attribute("epsilon", 1e-5))}


def rotary(row, t):
    x, width = t["x"], t["x"].shape[3]
    frequency = 10000 ** (-torch.arange(0, width, 2, device=x.device, dtype=torch.float64) / width)
    angle = (t["positions"][:, :, None].float() * frequency.float()).double()[:, :, None]
    first, second = x.chunk(2, -1)
    cos, sin = torch.cos(angle), torch.sin(angle)
    return {"y": torch.cat([first * cos - second * sin, second * cos + first * sin], -1)}


def attention(row, t):
    q, length, columns = t["q"].transpose(1, 2), t["q"].shape[1], t["k"].shape[2]
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (t["k"], t["v"]))
    scores = q @ k.transpose(2, 3) * row.attribute("scale", q.shape[3] ** -0.5)
    seen = torch.ones(length, columns, dtype=torch.bool, device=q.device).tril(columns - length)
    return {"y": (scores.masked_fill(~seen, -math.inf).softmax(-1) @ v).transpose(1, 2)}


def kv_append(row, t):
    past, k_cache, v_cache = int(row.attribute("past", 0)), t["k_cache"].clone(), t["v_cache"].clone()
    k_cache[:, :, past:past + t["k"].shape[1]] = t["k"].transpose(1, 2)
    v_cache[:, :, past:past + t["v"].shape[1]] = t["v"].transpose(1, 2)
    return {"k_cache": k_cache, "v_cache": v_cache}


def router(row, t):
    values, places = t["logits"].softmax(-1).topk(int(row.attribute("chosen", 1)))
    if row.attribute("normalises", 0):
        values = values / values.sum(-1, keepdim=True)
    return {"routing": torch.zeros_like(t["logits"]).scatter(1, places, values)}


def experts(row, t):
    y = torch.zeros_like(t["x"])
    for token, (ids, weights) in enumerate(zip(t["ids"].tolist(), t["weights"])):
        for expert, weight in zip(ids, weights):
            gate, up = (t["first"][expert] @ t["x"][token]).chunk(2)
            y[token] += weight * (t["down"][expert] @ (F.silu(gate) * up))
    return {"y": y}


def top_log_probs(row, t):
    values = t["x"].log_softmax(-1).topk(row.sizes["k"]).values
    return {"values": values, "at ids": values}  # ids of float32 may tie where float64's do not


FORMULAS = {
    "argmax": lambda row, t: {"y": t["x"].argmax(-1)},
    "attention": attention,
    "causal_conv1d": causal_conv1d,
    "embedding": lambda row, t: {"y": t["weight"][t["ids"]]},
    "experts": experts,
    "feed_forward": lambda row, t: {"y": F.silu(t["gate"]) * t["up"]},
    "gate": lambda row, t: {"y": t["x"] * torch.sigmoid(t["gate"])},
    "gated_delta_rule": gated_delta_rule,
    "gated_rms_norm": gated_rms_norm,
    "gather_columns": lambda row, t: {"y": t["x"][:, t["index"]]},
    "gather_rows": lambda row, t: {"y": t["x"][t["source"]]},
    "head_rms_norm": head_rms_norm,
    "kv_append": kv_append,
    "l2norm": lambda row, t: {"y": unit(t["x"][:, 0], row.attribute("epsilon", 1e-6)) * row.attribute("scale", 1)},
    "linear": lambda row, t: {"y": t["x"] @ t["weight"].T},
    "mask_rows": lambda row, t: {"y": t["x"] * t["mask"][..., None]},
    "residual_add": lambda row, t: {"y": t["x"] + t["residual"]},
    "rms_norm": rms_norm,
    "rms_norm_gated": rms_norm_gated,
    "rotary": rotary,
    "router": router,
    "scaled_add": lambda row, t: {"y": t["residual"] + row.attribute("scale", 1) * t["x"]},
    "selective_scan": selective_scan,
    "shared_gate": lambda row, t: {"y": t["residual"] + torch.sigmoid(t["gate"])[:, None] * t["x"]},
    "short_conv": short_conv,
    "silu_gate": lambda row, t: {"y": t["x"] * F.silu(t["z"])},
    "ssd": ssd,
    "top_log_probs": top_log_probs,
}


def expected(row, tensors):
    """The outputs of a row in float64."""
    wide = {name: value.double() if value.is_floating_point() else value for name, value in tensors.items()}
    return FORMULAS[row.op](row, wide)
