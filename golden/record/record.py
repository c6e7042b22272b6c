#!/usr/bin/env python3
"""Runs an original on exported weights and writes every tensor that a golden is made from.

    record.py --export DIR --inputs a,b --out OUTDIR    DIR as `assay export` wrote it
    record.py --selfcheck                               proves the float64 mode and the wrappers on tiny models

Writes OUTDIR/<input>.safetensors
    f32/<probe> [L, ...] float32                   f64/<probe> [L, ...] float64
    state/<cut>/f32/<name> [...] float32           state/<cut>/f64/<name> [...] float64
    f32.1/, f32.2/, ... as f32/ on nudged weights, for the noise floor (nudge.py)
and OUTDIR/run.json: the tokens, what a beam search found in each precision, the digest of every weight as loaded, and
what computed it. `assay golden record` calls this, samples the tensors and writes the golden: there is one writer of
goldens, and it is not this one.

Exit: 0 done, 2 an error that is told in one line, anything else a traceback.
"""

import argparse
import copy
import json
import sys
import time
from pathlib import Path

import environment
from failure import RecordError


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Runs an original on exported weights.", allow_abbrev=False)
    parser.add_argument("--export", type=Path, help="folder that `assay export` wrote")
    parser.add_argument("--inputs", help="names of the inputs to run, separated by commas")
    parser.add_argument("--out", type=Path, help="folder for the results; made if it is not there")
    parser.add_argument("--selfcheck", action="store_true", help="check the recorder itself instead")
    arguments = parser.parse_args()
    if not arguments.selfcheck and not (arguments.export and arguments.inputs and arguments.out):
        parser.error("--export, --inputs and --out are needed, or --selfcheck")
    return arguments


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _record(export: Path, names: list[str], out: Path) -> None:
    from safetensors.torch import save_file

    import beams
    import loading
    import nudge
    import runs

    manifest = loading.read_manifest(export)
    unknown = [name for name in names if name not in manifest.inputs]
    if unknown:
        raise RecordError(
            f"no input {', '.join(unknown)} in {export / 'assay.json'}; it has {', '.join(sorted(manifest.inputs))}"
        )
    model = loading.load_original(manifest)
    # A conversion of the same object: the float64 run must start from the very same weights.
    wide = copy.deepcopy(model).double()
    loading.check_weights(wide, manifest)
    subjects = {"f32": model, "f64": wide}
    subjects |= {f"f32.{number}": nudge.nudged(model, number) for number in range(1, nudge.NUDGES + 1)}
    _say(f"loaded {manifest.original_class}, {sum(p.numel() for p in model.parameters())} parameters")

    out.mkdir(parents=True, exist_ok=True)
    done = {}
    for number, name in enumerate(names, start=1):
        start = time.monotonic()
        given = manifest.inputs[name]
        tokens = runs.continue_greedily(model, given)
        tensors = {}
        found = {}
        for prefix, subject in subjects.items():
            for probe, value in runs.whole_pass(subject, tokens, manifest.sequence_probes(given)).items():
                tensors[f"{prefix}/{probe}"] = value.contiguous()
            for cut in given.cuts:
                for state, value in runs.states_after(subject, tokens[:cut], manifest.state_probes()).items():
                    tensors[f"state/{cut}/{prefix}/{state}"] = value.contiguous()
            if given.beam_width and prefix in ("f32", "f64"):
                with runs.computing(subject):
                    found[prefix] = beams.search(subject, given)
        save_file(tensors, out / f"{name}.safetensors")
        done[name] = {"prompt": given.tokens, "tokens": tokens, "cuts": given.cuts} | ({"beams": found} if found else {})
        _say(f"ran {name} ({number} of {len(names)}): {len(tokens)} tokens, {time.monotonic() - start:.1f} s")

    document = {
        "original": environment.provenance(manifest.original_class),
        # After all runs: a pass that wrote into a weight would show here.
        "weights": loading.check_weights(model, manifest),
        "inputs": done,
        "nudges": nudge.NUDGES,
    }
    (out / "run.json").write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    arguments = _arguments()
    try:
        environment.prepare()
        environment.settle()
        if arguments.selfcheck:
            import selfcheck

            return selfcheck.main()
        _record(arguments.export, arguments.inputs.split(","), arguments.out)
    except RecordError as error:
        _say(f"record.py: {error}")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
