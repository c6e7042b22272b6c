"""Where peers come from: their packages, and the functions that prepare a call of each.

A builder takes a row and its inputs (peer_inputs) and returns two functions: what is timed, and what names the outputs
of it as the op does. What a user would do once (folding weights, a layout that the peer wants) is done by the builder.
Packages are imported by the builders: one that is missing is an error of its own peers only.
"""

import importlib
import importlib.util
import re
import sys
import types
from pathlib import Path

BUILDERS = {}  # name in peers.json to builder


class Absent(Exception):
    """A peer's package cannot be had here."""


def peer(package):
    def add(build):
        build.package = package
        BUILDERS[build.__name__] = build
        return build
    return add


def imported(name):
    """A module of a package; mamba_ssm's without its own __init__, which wants compiled extensions for all of it."""
    package = name.split(".")[0]
    if package == "mamba_ssm" and package not in sys.modules:
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise Absent("mamba_ssm is not installed")
        stub = types.ModuleType(package)
        stub.__path__ = list(spec.submodule_search_locations)
        stub.__version__ = re.search(r'__version__ = "(.+?)"', Path(spec.origin).read_text())[1]
        sys.modules[package] = stub
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        raise Absent(f"{name} cannot be imported: {error}") from error


def version(package):
    return str(getattr(imported(package), "__version__", "?"))


def forget_tuning(package):
    """Triton's kernels of a package choose their configuration anew: some remember it whatever the batch is."""
    if package == "torch" or "triton" not in sys.modules:
        return
    from triton.runtime.autotuner import Autotuner, Heuristics
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != package:
            continue
        for kernel in list(vars(module).values()):
            while isinstance(kernel, (Autotuner, Heuristics)):
                if isinstance(kernel, Autotuner):
                    kernel.cache.clear()
                kernel = kernel.fn


def named(*names):
    def of(raw):
        return dict(zip(names, raw if isinstance(raw, tuple) else (raw,)))
    return of


Y = named("y")
