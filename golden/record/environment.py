"""What must hold before torch and transformers are imported, and what must hold after.

The original has accelerated paths (packages that replace its functions, kernels fetched from a hub). A golden is the
plain torch path's answer, so their presence is an error, and nothing may reach for the network.
"""

import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

from failure import RecordError

# Each of these, when importable, silently replaces a function of the original.
REPLACING_PACKAGES = ("kernels", "mambapy", "mamba_ssm", "causal_conv1d", "fla")

# These decide the numbers; a golden of another version would be reviewed as drift of the subject.
DECISIVE_PACKAGES = ("transformers", "torch")
# These as well, of some kinds.
DECISIVE_OF_KIND = {"nf4": ("bitsandbytes",), "nf4dq": ("bitsandbytes",)}


def decisive_packages(kind: str) -> tuple[str, ...]:
    """The packages whose versions decide the numbers of a kind."""
    return DECISIVE_PACKAGES + DECISIVE_OF_KIND.get(kind, ())


def check_versions(kind: str) -> None:
    """The decisive packages are the pinned ones; RecordError naming each that is not."""
    requirements = Path(__file__).with_name("requirements.txt")
    pins = dict(line.split("==") for line in requirements.read_text(encoding="utf-8").split() if "==" in line)
    wrong = []
    for name in decisive_packages(kind):
        try:
            found = importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            found = "absent"
        if found != pins[name]:
            wrong.append(f"{name} is {found}, pinned is {pins[name]}")
    if wrong:
        raise RecordError(f"not the pinned original: {'; '.join(wrong)} (ci/originals makes the right environment)")


def prepare(kind: str) -> None:
    """Versions, and settings that are read once, at import: call before importing torch or transformers."""
    check_versions(kind)
    os.environ.update(
        HF_HUB_OFFLINE="1",
        TRANSFORMERS_OFFLINE="1",
        HF_HUB_DISABLE_TELEMETRY="1",
        USE_HUB_KERNELS="NO",
        TRANSFORMERS_VERBOSITY="error",
        OMP_NUM_THREADS="1",
        MKL_NUM_THREADS="1",
        CUDA_VISIBLE_DEVICES="",
        TOKENIZERS_PARALLELISM="false",
        # bitsandbytes compiles a few functions at their first call, which takes a minute and gives the same bits.
        TORCH_COMPILE_DISABLE="1",
    )
    present = [name for name in REPLACING_PACKAGES if importlib.util.find_spec(name) is not None]
    if present:
        raise RecordError(
            f"packages that replace the original's own functions are installed: {', '.join(present)}; "
            "a golden needs the plain torch path (ci/originals makes an environment without them)"
        )


def settle() -> None:
    """One thread and deterministic algorithms: two runs on one machine are then equal bit for bit."""
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.set_grad_enabled(False)


def provenance(class_name: str, kind: str) -> dict[str, Any]:
    """What a golden says about the program that computed it."""
    import torch
    import transformers

    return {
        "package": "transformers",
        "version": transformers.__version__,
        "class": class_name,
        "torch": torch.__version__.split("+")[0],
        "python": platform.python_version(),
        "dtype": "float32",
        "device": "cpu",
        "threads": torch.get_num_threads(),
        "attention": "eager",
    } | {
        name: importlib.metadata.version(name).split("+")[0]
        for name in DECISIVE_OF_KIND.get(kind, ())
    }
