"""BUILDERS: every peer by the name that peers.json calls it."""

import peer_libraries  # noqa: F401, adds its own
import peer_torch  # noqa: F401, adds its own
from peer_packages import BUILDERS, Absent, forget_tuning, imported, version

__all__ = ["BUILDERS", "Absent", "forget_tuning", "imported", "version"]
