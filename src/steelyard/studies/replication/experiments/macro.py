"""E4: a macro benchmark that may fail, which is a result: the open stand-in, or the user's own.

The stand-in is the service of E3 with the mix of an enterprise benchmark's dealers. As in such benchmarks,
a scale factor decides how much is injected and how many rows there are, and a run passes or fails: the
throughput must follow what is injected, and nine of ten answers must come in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from steelyard.studies.replication.experiments.benchmark_conduct import conduct_own
from steelyard.studies.replication.experiments.conduct import BenchmarkFailed
from steelyard.studies.replication.experiments.deployment import deployed
from steelyard.studies.replication.experiments.load import Loaded, load, wrong_answers
from steelyard.studies.replication.experiments.verdict import Criterion, judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.studies.replication.experiments.conduct import Conducted

OWN: Final = "own"
RATE_PER_SCALE: Final = 10.0
"""SOURCE: own choice; requests per second for each unit of the scale factor."""
ROWS_PER_SCALE: Final = 1000
"""SOURCE: own choice; orders for each unit of the scale factor."""
MIX: Final = {"create": 0.25, "update": 0.25, "read": 0.25, "list": 0.25}
"""SOURCE: SPECjEnterprise2010 Run and Reporting Rules, dealer application: purchase 25 %, manage 25 %,
browse 50 %; browsing is half reading and half listing here."""
P90_LIMIT_MS: Final = 2000.0
"""SOURCE: SPECjEnterprise2010 Run and Reporting Rules: 90 % of the responses within 2 s."""
LEAST_SHARE: Final = 0.95
"""Of the injected rate that must be answered."""
GRACE: Final = 0.05
"""SOURCE: own choice; an answer counts until this share of the measurement has passed after its end."""


def conduct(run: Conducted) -> None:
    """Run the stand-in, or the benchmark that the study file describes.

    Raises
    ------
    BenchmarkFailed
        If it fails, with the reason: a result.
    CapabilityError
        If something that the stand-in needs is missing.
    RunError
        If a role does not do its part.
    """
    if run.asked["configuration"]["name"] == OWN:
        conduct_own(run)
        return
    parameters = scaled(run.parameters)
    run.says("stand_in", {key: parameters[key] for key in ("scale_factor", "rate_per_s", "rows", "mix")})
    with deployed(run, parameters) as service:
        loaded = load(run, service.address, parameters)
    require_passed(run, loaded, float(parameters["p90_limit_ms"]))


def require_passed(run: Conducted, loaded: Loaded, p90_limit_ms: float) -> None:
    """Refuse a load of the stand-in that did not reach what is required; the header says each criterion.

    Raises
    ------
    BenchmarkFailed
        With the reasons.
    """
    wrong = wrong_answers(loaded)
    reasons = [wrong] if wrong is not None else []
    reasons += judge(run, _criteria(loaded, p90_limit_ms))
    if reasons:
        raise BenchmarkFailed("; ".join(reasons))


def scaled(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Give the parameters of the stand-in: rate and rows follow from the scale factor.

    Without `scale_factor` it follows from `rate_per_s`, and `rows` stay as they are asked for.

    Examples
    --------
    >>> given = {"scale_factor": 2, "seconds": 5}
    >>> scaled(given)["rate_per_s"], scaled(given)["rows"]
    (20.0, 2000)
    >>> scaled({"rate_per_s": 50.0, "rows": 700})["scale_factor"]
    5.0
    """
    found = {"p90_limit_ms": P90_LIMIT_MS, **parameters, "mix": MIX}
    if "scale_factor" in parameters:
        found["rate_per_s"] = RATE_PER_SCALE * parameters["scale_factor"]
        found["rows"] = max(1, round(ROWS_PER_SCALE * parameters["scale_factor"]))
    else:
        found["scale_factor"] = parameters["rate_per_s"] / RATE_PER_SCALE
    return found


def _criteria(loaded: Loaded, p90_limit_ms: float) -> list[Criterion]:
    measured = loaded.measured
    answered = measured[measured["received_ns"] > 0]
    times_ns = answered["received_ns"] - answered["intended_ns"]
    # SOURCE: Hyndman and Fan (1996), definition 1: the smallest time that 90 % do not exceed.
    p90_ms = float(np.percentile(times_ns, 90.0, method="inverted_cdf") / 1e6) if times_ns.size else np.inf
    least = LEAST_SHARE * loaded.injected_per_s
    return [
        Criterion("throughput", "1/s", loaded.followed_per_s(GRACE), least=least),
        Criterion("90th percentile of latency", "ms", p90_ms, most=p90_limit_ms),
    ]
