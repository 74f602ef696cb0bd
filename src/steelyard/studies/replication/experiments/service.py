"""E3: a service with its database and a load driver apart, each at its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.studies.replication.experiments.deployment import deployed
from steelyard.studies.replication.experiments.load import load, require_right_answers

if TYPE_CHECKING:
    from steelyard.studies.replication.experiments.conduct import Conducted


def conduct(run: Conducted) -> None:
    """Deploy the service, put it under load, and end everything in order.

    Raises
    ------
    CapabilityError
        If PostgreSQL, Java or the built service is missing.
    RunError
        If a role does not do its part.
    BenchmarkFailed
        If too many answers are wrong or missing: a result.
    """
    with deployed(run, run.parameters) as service:
        loaded = load(run, service.address, run.parameters)
    require_right_answers(loaded)
