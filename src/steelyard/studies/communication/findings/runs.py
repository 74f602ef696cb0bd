"""Findings about the runs themselves: what was absent, what failed, clocks, which sizes were sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.model import Estimate, Evidence
from steelyard.studies.analysis_parts import RUNS, finding, finite
from steelyard.studies.communication.findings.link import link_facts
from steelyard.studies.communication.fixtures import LINK_FACTS
from steelyard.studies.communication.pairs import is_pair, nodes_of
from steelyard.studies.communication.sizes import SizeLaw, decade_shares, sampling_bias
from steelyard.studies.communication.transport.mpi import MPIRUN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from steelyard.model import Finding, Plan
    from steelyard.studies.communication.operations import Clocks
    from steelyard.studies.communication.recorded import RecordedRun

STARTED_BY: Final = "srun --mpi={}"
ONE_CLOCK: Final = "both ends read one clock: the same boot, and no probe contradicts it"


def absent_findings(plan: Plan) -> Iterator[Finding]:
    """Give the cells that are not run here, with their reasons."""
    for cell in plan.cells:
        if cell.missing is not None:
            yield finding("absent", cell.levels, "absent", facts={"reason": cell.missing})


def pair_findings(runs: Sequence[RecordedRun]) -> Iterator[Finding]:
    """Give what lay between the endpoints of one cell, where that is a pair of nodes."""
    link = runs[0].levels["link"]
    if not is_pair(link):
        return
    asked = set(nodes_of(link))
    headers = [[end.header for end in run.trace.endpoints] for run in runs if run.trace is not None]
    boots = {each.get("boot_id") for ends in headers for each in ends}
    seen = [{str(each["node"]) for each in ends if "node" in each} for ends in headers]
    verdict = "one node" if len(asked) == 1 else "one machine" if len(boots) == 1 else "two machines"
    if not boots or not all(boots):
        verdict = "unknown"  # no endpoint, or not each, said on which machine it ran
    if any(nodes - asked or (nodes and len(nodes) < len(asked)) for nodes in seen):
        verdict = "other nodes"
    starters = {str(link_facts(run).get("starter")) for run in runs if run.trace is not None} - {"None"}
    yield finding(
        "pair",
        runs[0].levels,
        verdict,
        facts={
            "nodes": " and ".join(nodes_of(link)),
            "started_by": " and ".join(
                each if each == MPIRUN else STARTED_BY.format(each) for each in sorted(starters)
            ),
            "seen": ", ".join(sorted(set().union(*seen))),
            "launches": len(headers),
        },
        evidence=Evidence(f"{runs[0].place}/{LINK_FACTS}", {}, ("nodes",), "headers of the endpoints"),
    )


def ended_findings(runs: Sequence[RecordedRun]) -> Iterator[Finding]:
    """Give the runs that did not come to their end: failed ones, and those that a budget stopped."""
    for run in runs:
        subject = {**run.levels, "replication": str(run.block + 1)}
        planned = None if run.trace is None else run.trace.endpoints[0].header.get("planned")
        facts: dict[str, str | int | None] = {
            "message": run.message or run.problem,
            "operations": run.finished,
            "planned": planned if isinstance(planned, int) else None,
            "trace": run.place,
        }
        evidence = Evidence(RUNS, {"cell": str(run.cell), "block": str(run.block)}, ("status",), "status")
        if run.status != "completed":
            yield finding("ended_early", subject, run.status, facts=facts, evidence=evidence)
        elif run.trace is None:
            yield finding("ended_early", subject, "no trace", facts=facts, evidence=evidence)
        elif not run.trace.is_complete or (isinstance(planned, int) and run.finished < planned):
            yield finding("ended_early", subject, "out of time", facts=facts, evidence=evidence)


def clock_findings(run: RecordedRun, clocks: Clocks) -> Iterator[Finding]:
    """Give what is known about the clocks of the endpoints of one run; nothing without a probe."""
    model = clocks.model
    if model is None or not model.estimates:
        return
    at = Estimate(
        float(model.base_ns) + model.offset_ns,
        "ns",
        ONE_CLOCK
        if model.is_shared
        else "middle of the bounds that probes give; a line through their groups",
        model.base_ns + model.offset_ns - model.error_ns,
        model.base_ns + model.offset_ns + model.error_ns,
        units=len(model.estimates),
    )
    yield finding(
        "clock",
        {**run.levels, "replication": str(run.block + 1)},
        "one clock" if model.is_shared else "bounded",
        estimates={
            "offset": at,
            "error": Estimate(
                model.error_ns, "ns", ONE_CLOCK if model.is_shared else "half of the narrowest bounds"
            ),
            "drift": Estimate(
                finite(model.drift_ppb),
                "ppb",
                "line through the groups of probes",
                finite(model.drift_ppb - 2 * model.drift_error_ppb),
                finite(model.drift_ppb + 2 * model.drift_error_ppb),
            ),
            "residual": Estimate(model.residual_ns, "ns", "largest distance of a group from the line"),
        },
        facts={
            "groups": len(model.estimates),
            "withheld": clocks.withheld,
            "reason": clocks.reason,
            "stamp_cost_ns": _stamp_cost(run),
        },
        evidence=Evidence(f"{run.place}/probes.bin", {}, ("send0", "time1", "recv0"), "bounds of the offset"),
    )


def _stamp_cost(run: RecordedRun) -> float | None:
    if run.trace is None:
        return None
    cost = run.trace.endpoints[0].header.get("stamp_cost_ns")
    return float(cost) if isinstance(cost, int | float) else None


def coverage_finding(plan: Plan, law: SizeLaw | None, sizes: Sequence[int]) -> Finding:
    """Give how the sizes that were sent are spread, and what that hides; no law is known of a recording."""
    shares = decade_shares(sizes)
    return finding(
        "coverage",
        {"law": "those of the recording" if law is None else law},
        "stated",
        estimates={
            f"from_{each.low}": Estimate(100 * each.share, "percent", "share of the sizes") for each in shares
        },
        facts={
            "bias": "the curve is best known where they are many" if law is None else sampling_bias(law),
            "text": ", ".join(
                f"{100 * each.share:.0f} % below {each.high:,} B".replace(",", " ") for each in shares
            ),
            "seed": plan.seed,
        },
        evidence=Evidence("plan.json", {}, ("seed", "options"), "sizes drawn from the seed"),
    )
