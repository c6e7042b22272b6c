"""Inputs of an op for its peers: drawn on the device, in the ranges of runners/ops/<op>.cpp, which says why."""

import math

# Inputs that a peer in 16 bit takes in its own dtype; what an op computes its exponents from stays in float32.
NARROW = {
    "attention": ("q", "k", "v"),
    "causal_conv1d": ("x", "weight", "bias", "initial_state"),
    "experts": ("x", "first", "down"),
    "gated_delta_rule": ("q", "k", "v", "beta"),
    "linear": ("x", "weight"),
    "selective_scan": ("x", "dt", "B", "C"),
    "ssd": ("x", "dt", "B", "C"),
}


class Row:
    """One row of shapes.json."""

    def __init__(self, document):
        self.id, self.op = document["id"], document["op"]
        self.form = document.get("form", "")
        self.sizes = dict(document["shape"])
        self.attributes = document.get("attributes", {})
        self.inputs = document.get("inputs", [])
        self.gate = document.get("gate", {})

    def resized(self, gate):
        sizes = {**self.sizes, **gate}
        if self.op == "attention" and self.form == "prefill":
            sizes["T"] = sizes["L"]
        return Row({"id": self.id, "op": self.op, "form": self.form, "shape": sizes,
                    "attributes": self.attributes, "inputs": self.inputs})

    def part(self):
        """What its gate compares: the last rows, of every column, since a GPU walks all of them."""
        return self.resized({name: count for name, count in self.gate.items() if name != "L"})

    def small(self):
        """The row at the sizes that its gate names: what a processor computes soon."""
        return self.resized(self.gate)

    def attribute(self, name, otherwise):
        return self.attributes.get(name, otherwise)


class Draw:
    def __init__(self, row, device):
        import torch
        self.torch, self.row, self.device = torch, row, device
        self.generator = torch.Generator(device).manual_seed(1)
        self.tensors, self.letters = {}, {}

    def shape(self, name, letters):
        self.letters[name] = letters
        return [self.row.sizes[size] for size in letters.split()]

    def all(self, name, letters, low, high):
        values = self.torch.rand(self.shape(name, letters), generator=self.generator, device=self.device)
        self.tensors[name] = values.mul_(high - low).add_(low)
        return self.tensors[name]

    def sum(self, name, letters, terms=1):
        """Uniform, such that a sum of `terms` of them times numbers of variance 1 has variance 1."""
        bound = math.sqrt(3 / terms)
        return self.all(name, letters, -bound, bound)

    def slow_and_fast(self, name, letters):
        """Decay rates below zero, slow ones at even places and fast ones at odd places."""
        values = self.all(name, letters, -4.5, -0.6)
        values[::2] /= 57

    def ids(self, name, letters, count):
        self.tensors[name] = self.torch.randint(count, self.shape(name, letters), generator=self.generator,
                                                device=self.device)

    def columns(self, name, values):
        """The same number for each batch entry at a column."""
        self.tensors[name] = values(self.torch.arange(self.row.sizes["L"], device=self.device)).repeat(
            self.shape(name, "B L")[0], 1)

    def given(self, name):
        return name in self.row.inputs


def cut(tensors, letters, part):
    """The last entries of each size that the part has fewer of."""
    kept = {}
    for name, value in tensors.items():
        for dimension, size in enumerate(letters[name].split()):
            count = part.sizes[size]
            value = value.narrow(dimension, value.shape[dimension] - count, count)
        kept[name] = value
    return kept


def draw(row, dtype, device):
    """Name to tensor and name to the letters of its sizes. In float32, or rounded to `dtype` where NARROW says so."""
    made = Draw(row, device)
    DRAWS[row.op](made)
    import torch
    if dtype != torch.float32:
        for name in NARROW[row.op]:
            if name in made.tensors:
                made.tensors[name] = made.tensors[name].to(dtype)
    return made.tensors, made.letters


def causal_conv1d(d):
    d.sum("x", "B L C")
    d.sum("weight", "C K", d.row.sizes["K"])
    if d.given("bias"):
        d.all("bias", "C", -0.6, 0.6)
    if d.given("initial_state"):
        d.sum("initial_state", "B C K")


def short_conv(d):
    d.sum("bcx", "B L S C")
    d.sum("weight", "C K", d.row.sizes["K"])
    if d.given("initial_state"):
        d.sum("initial_state", "B C K")


def selective_scan(d):
    d.sum("x", "B L I")
    biased = d.given("dt_bias")
    d.all("dt", "B L I", -0.7 if biased else 0.02, 0.7 if biased else 1)
    if biased:
        d.all("dt_bias", "I", -3.9, 0.54)
    d.slow_and_fast("A", "I N")
    d.sum("B", "B L G N")
    d.sum("C", "B L G N", d.row.sizes["N"])
    d.all("D", "I", 0.4, 1.6)
    if d.given("initial_state"):
        d.sum("initial_state", "B I N")


def ssd(d):
    d.sum("x", "B L Nh P")
    d.all("dt", "B L Nh", -0.7, 0.7)
    d.all("dt_bias", "Nh", -3.9, 0.54)
    d.slow_and_fast("A", "Nh")
    d.sum("B", "B L G N")
    d.sum("C", "B L G N", d.row.sizes["N"])
    d.all("D", "Nh", 0.4, 1.6)
    if d.given("initial_state"):
        d.sum("initial_state", "B Nh P N")


def gated_delta_rule(d):
    d.all("q", "B L Hk K", -0.5, 1)
    d.all("k", "B L Hk K", -0.3, 1)
    d.sum("v", "B L Hv V")
    if d.given("A"):
        d.all("g", "B L Hv", -0.7, 0.7)
        d.slow_and_fast("A", "Hv")
        d.all("dt_bias", "Hv", -3.9, 0.54)
    else:
        d.all("g", "B L Hv", -2, -0.1)[..., ::2] /= 33
    beta = (-3, 3) if d.row.attribute("sigmoid", 0) else (0.1, 1)
    d.all("beta", "B L Hv", *beta)
    if d.given("initial_state"):
        d.sum("initial_state", "B Hv K V", d.row.sizes["K"])


def rms_norm_gated(d):
    d.all("x", "T G D", -2, 2)
    d.all("z", "T G D", -3, 3)
    d.all("shared_weight", "D", 0.7, 1.3)


def head_rms_norm(d):
    d.all("x", "T S Nh D", -2, 2)
    d.all("weight", "D", -0.3, 0.3)


def rms_norm(d):
    d.all("x", "T H", -2, 2)
    d.all("weight", "H", 0.7, 1.3)
    if d.given("residual"):
        d.all("residual", "T H", -1, 1)


def gated_rms_norm(d):
    d.all("x", "T I", -2, 2)
    d.all("z", "T I", -3, 3)
    d.all("weight", "I", 0.7, 1.3)


def linear(d):
    d.sum("x", "T in")
    d.sum("weight", "out in", d.row.sizes["in"])


def rotary(d):
    d.sum("x", "B L Nh hd")
    d.columns("positions", lambda column: column)


def attention(d):
    d.sum("q", "B L nq hd")
    d.sum("k", "B nkv T hd")
    d.all("v", "B nkv T hdv", -1, 2)


def kv_append(d):
    d.all("k", "B L nkv hd", 1, 2)
    d.all("v", "B L nkv hdv", 3, 4)
    d.all("k_cache", "B nkv T hd", -2, -1)
    d.all("v_cache", "B nkv T hdv", -4, -3)


def experts(d):
    d.sum("x", "T X")
    d.ids("ids", "T k", d.row.sizes["E"])
    d.all("weights", "T k", 0.1, 1)
    d.sum("first", "E R X", d.row.sizes["X"])
    d.sum("down", "E X F", d.row.sizes["F"])


def mask_rows(d):
    d.all("x", "B L W", 0.5, 2)
    d.columns("mask", lambda column: (column >= 3).to(d.torch.uint8))


def embedding(d):
    d.ids("ids", "B L", d.row.sizes["V"])
    d.all("weight", "V H", -1, 1)


def gather_rows(d):
    d.sum("x", "R I W")
    d.ids("source", "B", d.row.sizes["R"])


def gather_columns(d):
    d.sum("x", "T X")
    d.ids("index", "W", d.row.sizes["X"])


def of_sums(**letters):
    """Inputs that are all drawn alike."""
    def drawn(d):
        for name, sizes in letters.items():
            if name != "residual" or d.row.op == "residual_add" or d.given(name):
                d.sum(name, sizes)
    return drawn


DRAWS = {
    "argmax": of_sums(x="T V"),
    "attention": attention,
    "causal_conv1d": causal_conv1d,
    "embedding": embedding,
    "experts": experts,
    "feed_forward": of_sums(gate="T F", up="T F"),
    "gate": of_sums(x="T Nh W", gate="T Nh W"),
    "gated_delta_rule": gated_delta_rule,
    "gated_rms_norm": gated_rms_norm,
    "gather_columns": gather_columns,
    "gather_rows": gather_rows,
    "head_rms_norm": head_rms_norm,
    "kv_append": kv_append,
    "l2norm": of_sums(x="T S Nh D"),
    "linear": linear,
    "mask_rows": mask_rows,
    "residual_add": of_sums(x="T W", residual="T W"),
    "rms_norm": rms_norm,
    "rms_norm_gated": rms_norm_gated,
    "rotary": rotary,
    "router": of_sums(logits="T E"),
    "scaled_add": of_sums(x="T W", residual="T W"),
    "selective_scan": selective_scan,
    "shared_gate": of_sums(x="T W", gate="T", residual="T W"),
    "short_conv": short_conv,
    "silu_gate": of_sums(x="T W", z="T W"),
    "ssd": ssd,
    "top_log_probs": of_sums(x="T V"),
}

# Letters of what the formulas of peer_formulas.py give.
OUTPUTS = {
    "argmax": {"y": "T"},
    "attention": {"y": "B L nq hdv"},
    "causal_conv1d": {"y": "B L C", "final_state": "B C K"},
    "embedding": {"y": "B L H"},
    "experts": {"y": "T X"},
    "feed_forward": {"y": "T F"},
    "gate": {"y": "T Nh W"},
    "gated_delta_rule": {"o": "B L Hv V", "final_state": "B Hv K V"},
    "gated_rms_norm": {"y": "T I"},
    "gather_columns": {"y": "T W"},
    "gather_rows": {"y": "B I W"},
    "head_rms_norm": {"y": "T Nh D"},
    "kv_append": {"k_cache": "B nkv T hd", "v_cache": "B nkv T hdv"},
    "l2norm": {"y": "T Nh D"},
    "linear": {"y": "T out"},
    "mask_rows": {"y": "B L W"},
    "residual_add": {"y": "T W"},
    "rms_norm": {"y": "T H", "sum": "T H"},
    "rms_norm_gated": {"y": "T G D"},
    "rotary": {"y": "B L Nh hd"},
    "router": {"routing": "T E"},
    "scaled_add": {"y": "T W"},
    "selective_scan": {"y": "B L I", "final_state": "B I N"},
    "shared_gate": {"y": "T W"},
    "short_conv": {"y": "B L C", "final_state": "B C K"},
    "silu_gate": {"y": "T W"},
    "ssd": {"y": "B L Nh P", "final_state": "B Nh P N"},
    "top_log_probs": {"values": "T k", "at ids": "T k"},
}
