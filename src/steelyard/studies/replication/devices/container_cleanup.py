"""What killed conductors left on this host."""

from __future__ import annotations

from steelyard.run.isolation.registry import sweep_all
from steelyard.run.session import state_root, sweep_dead_sessions


def sweep_places() -> list[str]:
    """Remove what killed conductors left on this host; give the names of the private folders among it.

    On other hosts nothing needs to be swept: the keeper of a place there removes it when the connection
    ends, see `steelyard.studies.replication.devices.remote`.
    """
    return sweep_dead_sessions(state_root(), sweep_all)
