#!/usr/bin/env python3
"""Runs an original on exported weights and writes every tensor that a golden is made from.

    record.py --export DIR --inputs a,b --out OUTDIR    DIR as `assay export` wrote it
              [--kind f32|f16|bf16|nf4|nf4dq]           what becomes of the weights (half.py, nf4.py)
              [--unquantized dt_proj,...]               nf4: modules to leave out, by the last parts of their names
    record.py --selfcheck                               proves the recorder on tiny models

Writes OUTDIR/<input>.safetensors
    f32/<probe> [L, ...] float32                   f64/<probe> [L, ...] float64
    state/<cut>/f32/<name> [...] float32           state/<cut>/f64/<name> [...] float64
    f32.1/, f32.2/, ... as f32/ on nudged weights, for the noise floor (nudge.py)
    error/<precision>/logits [L, V] float32        kinds other than f32: the original computing in that precision
and OUTDIR/run.json: the tokens, what a beam search found in each precision, positions at which a router is near a tie,
the digest of every weight as computed with, how it came to be, and what computed it. `assay golden record` calls this,
samples the tensors and writes the golden: there is one writer of goldens, and it is not this one.

The runs follow one another on one model, so at most two copies of its float32 weights, or one in float64, are held.

Exit: 0 done, 2 an error that is told in one line, anything else a traceback.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import environment
from failure import RecordError


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs an original on exported weights.", allow_abbrev=False)
    parser.add_argument("--export", type=Path, help="folder that `assay export` wrote")
    parser.add_argument("--inputs", help="names of the inputs to run, separated by commas")
    parser.add_argument("--out", type=Path, help="folder for the results; made if it is not there")
    parser.add_argument("--kind", default="f32", help="f32 (the default), f16, bf16, nf4 or nf4dq")
    parser.add_argument("--unquantized", default="", help="names of modules that stay as they are, separated by commas")
    parser.add_argument("--selfcheck", action="store_true", help="check the recorder itself instead")
    arguments = parser.parse_args()
    if not arguments.selfcheck and not (arguments.export and arguments.inputs and arguments.out):
        parser.error("--export, --inputs and --out are needed, or --selfcheck")
    return arguments


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Recording:
    """The tensors and findings of every input, filled by one run after the other."""

    def __init__(self, export: Path, names: list[str]) -> None:
        import loading

        self.manifest = loading.read_manifest(export)
        unknown = [name for name in names if name not in self.manifest.inputs]
        if unknown:
            raise RecordError(
                f"no input {', '.join(unknown)} in {export / 'assay.json'}; "
                f"it has {', '.join(sorted(self.manifest.inputs))}"
            )
        self.inputs = {name: self.manifest.inputs[name] for name in names}
        self.tokens: dict[str, list[int]] = {}
        self.tensors: dict[str, dict[str, Any]] = {name: {} for name in names}
        self.found: dict[str, dict[str, Any]] = {
            name: {"prompt": given.tokens, "cuts": given.cuts} for name, given in self.inputs.items()
        }

    def choose_tokens(self, model: Any) -> None:
        """The whole sequence of every input, greedy tokens included."""
        import runs

        for name, given in self.inputs.items():
            self.tokens[name] = self.found[name]["tokens"] = runs.continue_greedily(model, given)

    def run(self, model: Any, prefix: str) -> None:
        """Every input once on the model as it is now."""
        import beams
        import runs

        start = time.monotonic()
        for name, given in self.inputs.items():
            tokens, tensors = self.tokens[name], self.tensors[name]
            for probe, value in runs.whole_pass(model, tokens, self.manifest.sequence_probes(given)).items():
                tensors[f"{prefix}/{probe}"] = value.contiguous()
            for cut in given.cuts:
                for state, value in runs.states_after(model, tokens[:cut], self.manifest.state_probes()).items():
                    tensors[f"state/{cut}/{prefix}/{state}"] = value.contiguous()
            if given.beam_width and prefix in ("f32", "f64"):
                with runs.computing(model):
                    self.found[name].setdefault("beams", {})[prefix] = beams.search(model, given)
        _say(f"ran {prefix}: {', '.join(self.inputs)}, {time.monotonic() - start:.1f} s")

    def run_others(self, model: Any, precision: Any) -> None:
        """Every input once in every other precision that the kind asks for."""
        given = {name: (self.inputs[name], self.tokens[name]) for name in self.inputs}
        for name, other in precision.run(model, given):
            self.tensors[name][f"error/{other.compute}/logits"] = other.logits.contiguous()
            error = {"compute": other.compute, "marked": other.marked}
            self.found[name].setdefault("errors", []).append(error)
            _say(f"ran {name} in {other.compute}, {len(other.marked)} of {len(self.tokens[name])} positions marked")


def _record(export: Path, names: list[str], out: Path, kind: str, unquantized: list[str]) -> None:
    from safetensors.torch import save_file

    import loading
    import nudge
    from precision_runs import KINDS, Precision

    if kind not in KINDS:
        raise RecordError(f"no kind {kind}; there are {', '.join(KINDS)}")
    recording = Recording(export, names)
    manifest = recording.manifest
    model = loading.load_original(manifest)
    _say(f"loaded {manifest.original_class}, {sum(p.numel() for p in model.parameters())} parameters")
    precision = Precision(model, manifest, kind, unquantized)
    digests = loading.weight_digests(model, manifest)

    recording.choose_tokens(model)
    recording.run(model, "f32")
    recording.run_others(model, precision)
    for number in range(1, nudge.NUDGES + 1):
        with nudge.nudged(model, number):
            recording.run(model, f"f32.{number}")
    # A pass that wrote into a weight would show here, and the float64 run must start from the very same weights.
    loading.check_weights(model, digests, manifest)
    recording.run(model.double(), "f64")
    loading.check_weights(model, digests, manifest)

    out.mkdir(parents=True, exist_ok=True)
    for name, tensors in recording.tensors.items():
        save_file(tensors, out / f"{name}.safetensors")
    document = {
        "original": environment.provenance(manifest.original_class, kind),
        "kind": kind,
        "weights": digests,
        "inputs": recording.found,
        "nudges": nudge.NUDGES,
    } | precision.facts
    (out / "run.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    arguments = _arguments()
    try:
        environment.prepare("nf4" if arguments.selfcheck else arguments.kind)
        environment.settle()
        if arguments.selfcheck:
            import selfcheck

            return selfcheck.main()
        unquantized = [name for name in arguments.unquantized.split(",") if name]
        _record(arguments.export, arguments.inputs.split(","), arguments.out, arguments.kind, unquantized)
    except RecordError as error:
        _say(f"record.py: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
