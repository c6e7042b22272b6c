"""Builds the original's own class from an exported folder and proves that it holds exactly the exported weights.

Upstream fills what a file lacks with random values and renames, ties and re-initialises on the way in; a golden of
such a model would be an answer to another question.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from failure import RecordError
from renames import Held, locate


@dataclass
class Probe:
    """One row of the manifest's probe table."""

    name: str
    shape: tuple[int, ...]
    is_state: bool
    follows: str = ""  # a state that grows: the sequence probe that says the same


@dataclass
class Input:
    """A named prompt; the original appends `greedy` tokens of its own, or searches with beams from its end."""

    name: str
    tokens: list[int]
    greedy: int
    cuts: list[int]  # lengths after which the states are wanted
    logits_only: bool
    beam_width: int  # 0: no beams
    beam_steps: int


@dataclass
class Manifest:
    """assay.json, as `assay export` wrote it."""

    directory: Path
    original_class: str
    weights: dict[str, dict[str, Any]]
    inputs: dict[str, Input]
    probes: list[Probe]

    def sequence_probes(self, given: Input) -> list[Probe]:
        """What the input's golden holds of a pass."""
        found = [probe for probe in self.probes if not probe.is_state]
        return [probe for probe in found if probe.name == "logits"] if given.logits_only else found

    def state_probes(self) -> list[Probe]:
        """The states that goldens hold: those that do not grow."""
        return [probe for probe in self.probes if probe.is_state and not probe.follows]


def read_manifest(directory: Path) -> Manifest:
    """Reads the manifest; RecordError naming what it lacks."""
    file = directory / "assay.json"
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        return Manifest(
            directory=directory,
            original_class=document["original_class"],
            weights=document["weights"],
            inputs={
                name: Input(
                    name=name,
                    tokens=list(item["tokens"]),
                    greedy=int(item["greedy"]),
                    cuts=list(item["cuts"]),
                    logits_only=item["record"] == "logits",
                    beam_width=int(item.get("beams", {}).get("width", 0)),
                    beam_steps=int(item.get("beams", {}).get("steps", 0)),
                )
                for name, item in document["inputs"].items()
            },
            probes=[
                Probe(item["name"], tuple(item["shape"]), bool(item["is_state"]), item["follows"])
                for item in document["probes"]
            ],
        )
    except OSError as error:
        raise RecordError(f"{file}: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordError(f"{file}: not a manifest of `assay export`: {error!r}") from error


def digest(tensor: torch.Tensor) -> str:
    """SHA-256 of the float32 bytes, as the manifest has it."""
    values = tensor.detach().to(torch.float32).contiguous().numpy()
    return hashlib.sha256(values.astype("<f4", copy=False).tobytes()).hexdigest()


def load(manifest: Manifest, **options: Any) -> transformers.PreTrainedModel:
    """The original in eval mode as `from_pretrained(**options)` loads it; RecordError unless every weight was there."""
    original = getattr(transformers, manifest.original_class, None)
    if original is None:
        raise RecordError(f"transformers {transformers.__version__} has no class {manifest.original_class}")
    # The default experts multiply in groups, which refuses odd widths on a CPU; eager is the loop that the others follow.
    config = original.config_class.from_pretrained(
        manifest.directory, attn_implementation="eager", experts_implementation="eager"
    )
    model, report = original.from_pretrained(
        manifest.directory,
        config=config,
        attn_implementation="eager",
        local_files_only=True,
        output_loading_info=True,
        **options,
    )
    faults = [
        f"{kind.replace('_', ' ')}: {', '.join(sorted(map(str, report[kind])))}"
        for kind in ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")
        if report.get(kind)
    ]
    if faults:
        raise RecordError(f"{manifest.original_class} did not load the exported weights; {'; '.join(faults)}")
    return model.eval()


def load_original(manifest: Manifest) -> transformers.PreTrainedModel:
    """The original in float32, every parameter checked; RecordError naming the ones that differ."""
    model = load(manifest, dtype=torch.float32)
    check_weights(model, {name: weight["sha256"] for name, weight in manifest.weights.items()}, manifest)
    return model


def places(held: Mapping[str, torch.Tensor], manifest: Manifest) -> dict[str, Held]:
    """Where each of the manifest's weights is among those held; RecordError for one that is nowhere, or held in excess.

    A parameter the manifest does not name is allowed only if it is another name of one that it does (tied weights).
    """
    found = {name: locate(name, held) for name in manifest.weights}
    absent = sorted(name for name, place in found.items() if place is None)
    used = {place.name for place in found.values() if place is not None}
    storages = {held[name].data_ptr() for name in used}
    extra = sorted(name for name, tensor in held.items() if name not in used and tensor.data_ptr() not in storages)
    if absent or extra:
        raise RecordError(
            f"{manifest.original_class} and the manifest disagree on the weights; "
            f"only in the manifest: {', '.join(absent) or 'none'}; only in the original: {', '.join(extra) or 'none'}"
        )
    return found


def weight_digests(model: torch.nn.Module, manifest: Manifest) -> dict[str, str]:
    """Digests of every tensor the model holds, by manifest name; RecordError where the shapes differ."""
    held = model.state_dict(keep_vars=True)
    found = places(held, manifest)
    digests: dict[str, str] = {}
    counts = dict.fromkeys((place.name for place in found.values()), 0)
    for name, described in manifest.weights.items():
        tensor = found[name].of(held)
        counts[found[name].name] += tensor.numel()
        if list(tensor.shape) != list(described["shape"]):
            raise RecordError(f"{name}: the original has shape {list(tensor.shape)}, the manifest {described['shape']}")
        digests[name] = digest(tensor)
    for name, count in counts.items():
        if count != held[name].numel():
            raise RecordError(f"{name}: the manifest's tensors fill {count} of its {held[name].numel()} elements")
    return digests


def check_weights(model: torch.nn.Module, expected: Mapping[str, str], manifest: Manifest) -> None:
    """RecordError naming the first weight whose digest is not the expected one."""
    for name, found in weight_digests(model, manifest).items():
        if found != expected[name]:
            raise RecordError(
                f"{name}: the original does not hold the expected values "
                f"(sha256 {found[:16]}, expected {expected[name][:16]})"
            )
