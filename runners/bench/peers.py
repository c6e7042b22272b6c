"""peers.py: times public peers of the kernels at the rows of `assay bench`, which runs it beside them (--peers).

One request a line on standard input, a row of shapes.json with what peers.json names for it:
    {"id", "op", "form", "shape", "attributes", "inputs", "gate", "repetitions", "peers": [{"call", "what", "dtype"}]}
Answers, one line each, flushed, on the descriptor named by --answers:
    {"device"} or {"unusable": why}                            first, before any request is read
    {"id", "peer", "doing"}                                    a peer begins
    {"id", "peer", "version", "dtype", "error_of_scale", "times_ms"} or {"id", "peer", "dtype", "error"}
    {"id", "end": true}                                        a row is done
dtype tf32: float32 in memory, products in TF32, as Triton's dot has them by default. Repetitions 0 gates only.
By hand: peers.py --shapes shapes.json [--repetitions N] [ROW ...] prints a table.
"""

import argparse
import json
import os
import statistics
import sys
from pathlib import Path

import peer_calls
from peer_inputs import Row

FOLDER = Path(__file__).resolve().parent
EXIT_LOST_DEVICE = 3


def short(error):
    """The first line that says something, with the kind of the error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0][:300] if lines else ""
    return text if isinstance(error, peer_calls.Absent) else f"{type(error).__name__}: {text}"


def answer_row(request, device, say):
    """Measures the peers of a row; False once the device answers no more."""
    import peer_timing
    import torch
    row = Row(request)
    for entry in request["peers"]:
        answer = {"id": row.id, "peer": entry["what"], "dtype": entry["dtype"]}
        say({"id": row.id, "peer": entry["what"], "doing": entry["dtype"]})
        try:
            build = peer_calls.BUILDERS[entry["call"]]
            answer["version"] = peer_calls.version(build.package)
            apart, times = peer_timing.measure(build, row, entry["dtype"], request["repetitions"], device)
            answer |= {"error_of_scale": apart, "times_ms": times}
        except peer_timing.Wrong as error:
            answer["error"] = f"wrong: {error}"
        except Exception as error:  # whatever a foreign package raises is this peer's answer
            answer["error"] = short(error)
        say(answer)
        try:
            if device == "cuda":
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
        except Exception:
            return False
    say({"id": row.id, "end": True})
    return True


def start(device):
    """The device's name; Absent if there is none that can be used."""
    torch = peer_calls.imported("torch")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if device == "cpu":
        return "cpu"
    if not torch.cuda.is_available():
        raise peer_calls.Absent(f"torch {torch.__version__} sees no GPU")
    return torch.cuda.get_device_name(0)


def serve(stream, device, say):
    try:
        say({"device": start(device)})
    except peer_calls.Absent as error:
        say({"unusable": str(error)})
        return 0
    for line in stream:
        if line.strip() and not answer_row(json.loads(line), device, say):
            return EXIT_LOST_DEVICE
    return 0


def by_hand(options):
    """The rows of a shapes file with what peers.json names for them, as a table."""
    table = json.loads((FOLDER / "peers.json").read_text())["rows"]
    rows = [row for row in json.loads(Path(options.shapes).read_text())["rows"]
            if not options.rows or row["id"] in options.rows or row["op"] in options.rows]
    requests = [json.dumps({**row, "peers": table[row["id"]].get("peers", []), "repetitions": options.repetitions})
                for row in rows]

    def say(answer):
        if "error" in answer:
            print(f"{answer['id']:36} {answer['peer']:44} {answer['dtype']:8} {answer['error']}", flush=True)
        elif "times_ms" in answer:
            median = statistics.median(answer["times_ms"]) if answer["times_ms"] else float("nan")
            print(f"{answer['id']:36} {answer['peer'] + ' ' + answer['version']:44} {answer['dtype']:8} {median:10.4f} ms"
                  f"  differs {answer['error_of_scale']:.1e}", flush=True)
        elif "device" in answer or "unusable" in answer:
            print(f"# {answer}", flush=True)
    return serve(requests, options.device, say)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help="row or op, with --shapes")
    parser.add_argument("--answers", type=int, default=1, metavar="FD", help="descriptor of the answers")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: gates only")
    parser.add_argument("--shapes", metavar="FILE", help="rows to measure, in place of requests")
    parser.add_argument("--repetitions", type=int, default=50, metavar="N", help="timed launches, with --shapes")
    options = parser.parse_args()
    if options.shapes:
        return by_hand(options)
    with os.fdopen(options.answers, "w") as answers:
        def say(answer):
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        return serve(sys.stdin, options.device, say)


if __name__ == "__main__":
    sys.exit(main())
