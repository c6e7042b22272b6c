"""Peers of flash-linear-attention, mamba_ssm and causal_conv1d, called as their documentation says."""

from peer_packages import Y, imported, named, peer


def delta_options(row, t):
    options = {"initial_state": t.get("initial_state"), "output_final_state": True,
               "use_qk_l2norm_in_kernel": bool(row.attribute("l2norm", 1)),
               "use_beta_sigmoid_in_kernel": bool(row.attribute("sigmoid", 0))}
    if "A" in t:
        options |= {"use_gate_in_kernel": True, "A_log": (-t["A"]).log(), "dt_bias": t["dt_bias"]}
    return options


@peer("fla")
def fla_chunk_gated_delta_rule(row, t):
    rule, options = imported("fla.ops.gated_delta_rule").chunk_gated_delta_rule, delta_options(row, t)
    return lambda: rule(t["q"], t["k"], t["v"], t["g"], t["beta"], **options), named("o", "final_state")


@peer("fla")
def fla_fused_recurrent_gated_delta_rule(row, t):
    rule, options = imported("fla.ops.gated_delta_rule").fused_recurrent_gated_delta_rule, delta_options(row, t)
    return lambda: rule(t["q"], t["k"], t["v"], t["g"], beta=t["beta"], **options), named("o", "final_state")


@peer("fla")
def fla_l2norm(row, t):
    norm, x = imported("fla.modules.l2norm").l2norm, t["x"][:, 0]
    return lambda: norm(x, row.attribute("epsilon", 1e-6)), Y


@peer("fla")
def fla_rms_norm(row, t):
    norm, epsilon = imported("fla.modules.layernorm").rms_norm, row.attribute("epsilon", 1e-5)
    if "residual" not in t:
        return lambda: norm(t["x"], t["weight"], None, eps=epsilon), Y
    return lambda: norm(t["x"], t["weight"], None, residual=t["residual"], eps=epsilon, prenorm=True), \
        named("y", "sum")


@peer("fla")
def fla_rms_norm_gated(row, t):
    norm, epsilon = imported("fla.modules.fused_norm_gate").rms_norm_gated, row.attribute("epsilon", 1e-5)
    return lambda: norm(t["x"], t["z"], t["shared_weight"], None, eps=epsilon), Y


@peer("fla")
def fla_causal_conv1d(row, t):
    module, activation = imported("fla.modules.conv.causal_conv1d"), "silu" if row.attribute("silu", 0) else None
    return lambda: module.causal_conv1d(t["x"], t["weight"], t.get("bias"), output_final_state=True,
                                        activation=activation), named("y", "final_state")


@peer("fla")
def fla_causal_conv1d_update(row, t):
    update, state = imported("fla.modules.conv.triton.ops").causal_conv1d_update, t["initial_state"].clone()
    activation = "silu" if row.attribute("silu", 0) else None
    return lambda: update(t["x"], state, weight=t["weight"], bias=t.get("bias"), activation=activation), \
        named("y", "final_state")


@peer("fla")
def fla_short_conv(row, t):
    """The gates in torch around fla's convolution, as models with a gated short convolution do."""
    (gate_in, gate_out, x), state = t["bcx"].unbind(2), t.get("initial_state")
    if row.form == "update":
        update, state = imported("fla.modules.conv.triton.ops").causal_conv1d_update, state.clone()

        def step():
            y, last = update(gate_in * x, state, weight=t["weight"])
            return gate_out * y, last
        return step, named("y", "final_state")
    convolve = imported("fla.modules.conv.causal_conv1d").causal_conv1d

    def whole():
        y, last = convolve(gate_in * x, t["weight"], output_final_state=True)
        return gate_out * y, last
    return whole, named("y", "final_state")


@peer("fla")
def fla_swiglu(row, t):
    act, (gate, up) = imported("fla.modules.activations").swiglu, \
        (t["gate"], t["up"]) if row.op == "feed_forward" else (t["z"], t["x"])
    return lambda: act(gate, up), Y


@peer("fla")
def fla_sigmoidglu(row, t):
    act = imported("fla.modules.activations").sigmoidglu
    return lambda: act(t["gate"], t["x"]), Y


@peer("fla")
def fla_rotary(row, t):
    """Its positions are 0 to L - 1, its cos and sin a table."""
    torch = imported("torch")
    rotate, half = imported("fla.modules.rotary").rotary_embedding, t["x"].shape[3] // 2
    frequency = 10000 ** (-torch.arange(half, device=t["x"].device, dtype=torch.float32) / half)
    angle = torch.arange(t["x"].shape[1], device=t["x"].device)[:, None] * frequency
    cos, sin = torch.cos(angle), torch.sin(angle)
    return lambda: rotate(t["x"], cos, sin), Y


@peer("mamba_ssm")
def mamba_chunk_scan(row, t):
    scan = imported("mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined
    chunk = int(row.attribute("chunk_size", 256))
    return lambda: scan(t["x"], t["dt"], t["A"], t["B"], t["C"], chunk, D=t["D"], dt_bias=t["dt_bias"],
                        dt_softplus=True, return_final_states=True), named("y", "final_state")


@peer("mamba_ssm")
def mamba_state_update(row, t):
    update, state = imported("mamba_ssm.ops.triton.selective_state_update").selective_state_update, \
        t["initial_state"].clone()
    x, dt, A, B, C, D, bias = t["x"][:, 0], t["dt"][:, 0], t["A"], t["B"][:, 0], t["C"][:, 0], t["D"], t["dt_bias"]
    if row.op == "ssd":
        width, states = x.shape[2], state.shape[3]
        dt, A = dt[..., None].expand_as(x), A[:, None, None].expand(-1, width, states)
        D, bias = D[:, None].expand(-1, width), bias[:, None].expand(-1, width)
    return lambda: update(state, x, dt, A, B, C, D=D, dt_bias=bias, dt_softplus=True), \
        lambda raw: {"y": raw[:, None], "final_state": state}


@peer("mamba_ssm")
def mamba_selective_scan(row, t):
    scan = imported("mamba_ssm.ops.selective_scan_interface").selective_scan_fn
    x, dt = (t[name].transpose(1, 2).contiguous() for name in ("x", "dt"))
    B, C = (t[name].permute(0, 2, 3, 1).contiguous() for name in "BC")
    return lambda: scan(x, dt, t["A"], B, C, t["D"], delta_bias=t.get("dt_bias"), delta_softplus="dt_bias" in t,
                        return_last_state=True), \
        lambda raw: {"y": raw[0].transpose(1, 2), "final_state": raw[1]}


@peer("mamba_ssm")
def mamba_gated_rms_norm(row, t):
    norm = imported("mamba_ssm.ops.triton.layernorm_gated").rmsnorm_fn
    size = t["x"].shape[1] // int(row.attribute("groups", 1))
    return lambda: norm(t["x"], t["weight"], None, z=t["z"], eps=row.attribute("epsilon", 1e-5), group_size=size,
                        norm_before_gate=False), Y


@peer("causal_conv1d")
def causal_conv1d(row, t):
    package, activation = imported("causal_conv1d"), "silu" if row.attribute("silu", 0) else None
    if row.form == "update":
        x, state = t["x"][:, 0], t["initial_state"].clone()
        return lambda: package.causal_conv1d_update(x, state, t["weight"], t.get("bias"), activation), \
            lambda raw: {"y": raw[:, None], "final_state": state}
    x = t["x"].transpose(1, 2)  # channel-last; its final state is an input shorter than the op's
    return lambda: package.causal_conv1d_fn(x, t["weight"], t.get("bias"), return_final_states=True,
                                            activation=activation), lambda raw: {"y": raw[0].transpose(1, 2)}
