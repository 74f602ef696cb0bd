"""How long a replication study is expected to take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from steelyard.studies.replication.budget import extent_of, placed_on
from steelyard.studies.replication.configurations import configurations_of
from steelyard.studies.replication.options import options_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.model import Plan
    from steelyard.studies.replication.configurations import Configurations

AROUND_RUN_S: Final = 0.5
"""The launcher, the conductor's start, and the files of a run being kept."""

CONTAINER_S: Final = 1.5
JAVA_START_S: Final = 0.5
PYTHON_START_S: Final = 0.4
SERVICE_START_S: Final = 12.0
"""A fresh database, its rows, and a service until it answers."""

NS_PER_CALL: Final = {
    "none": 200,
    "kieker-inactive": 600,
    "kieker-collecting": 20_000,
    "kieker-writing": 30_000,
    "opentelemetry-java-inactive": 600,
    "opentelemetry-java-collecting": 10_000,
    "opentelemetry-java-writing": 15_000,
    "python-none": 900,
    "opentelemetry-python-inactive": 20_000,
    "opentelemetry-python-collecting": 200_000,
    "opentelemetry-python-writing": 350_000,
}
"""Of a call of depth 10 on a processor of a few GHz, roughly: it is to say how long one waits, no more."""

S_PER_NS: Final = 1e-9


def plan_seconds(plan: Plan) -> float:
    """Give the expected time of running a plan [s].

    A plan with a budget takes as long as that, unless everything is decided before. Hosts that it is
    placed on work at the same time.
    Calls that a probe records cost what they did on one machine; yours may differ by a factor. What is left
    to wait is told from the runs themselves once the first are over.
    """
    parameters = configurations_of(options_of(plan), int(plan.options["first_cpu"] or 0))
    by_block = [0.0] * plan.blocks
    for batch in plan.batches:
        by_block[batch.block] += run_seconds(plan.cell_of(batch).levels, parameters)
    extent = extent_of(plan)
    if extent is None:
        return sum(by_block) / max(len(placed_on(plan)), 1)
    return max(sum(by_block[: extent.blocks_min]), min(sum(by_block), extent.budget_s))


def run_seconds(levels: Mapping[str, str], parameters: Mapping[str, Configurations]) -> float:
    """Give the expected time of one run [s]."""
    experiment, configuration = levels["experiment"], levels["configuration"]
    own = parameters[experiment][configuration]
    around_s = AROUND_RUN_S + (CONTAINER_S if levels["setting"].endswith("container") else 0.0)
    if experiment == "e1":
        iterations = own["warm_up_iterations"] + own["iterations"]
        return float(around_s + JAVA_START_S + iterations * own["iteration_ms"] / 1000)
    if experiment in {"e3", "e4"}:
        return around_s + SERVICE_START_S + float(own["warm_up_seconds"] + own["seconds"])
    start_s = PYTHON_START_S if "python" in configuration else JAVA_START_S
    return float(around_s + start_s + own["calls"] * call_ns(configuration, own) * S_PER_NS)


def call_ns(configuration: str, parameters: Mapping[str, Any]) -> float:
    """Give the expected time of a call [ns]; interventions have no probe.

    Examples
    --------
    >>> call_ns("none-baseline", {"method_ns": 500, "depth": 10})
    700.0
    """
    name = configuration.removesuffix("-baseline").removesuffix("-unrecorded")
    probe_ns = NS_PER_CALL.get(name, NS_PER_CALL["none"])
    return float(parameters["method_ns"] + probe_ns)
