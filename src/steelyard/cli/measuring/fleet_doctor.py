"""``steelyard fleet doctor``."""

from __future__ import annotations

import json as json_text
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from steelyard.cli.interruption import interruptible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BLOCKS_PER_HOST: Final = 6
"""From five on a host can be called an outlier; one may be lost."""
_WORKLOAD: Final = "exp/exp_float"


def fleet_doctor(
    *,
    on: str,
    out: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Show the hosts of a fleet side by side: which are fit, which differ, which measures otherwise.

    A short study of one program, twice as the same cell (A/A), is placed on all hosts that are free; a host
    that differs from more than half of the others by more than 2 % is named. Exits with code 1 where a host
    does not answer or is not fit, hosts differ, or one stands apart.

    Parameters
    ----------
    on
        The hosts, as `steelyard run --on` takes them: `slurm:PARTITION`, `local:N`.
    out
        Result folder of the study, which all hosts see; by default a new one below `results`.
    as_json
        Print everything as one JSON document.

    Examples
    --------
    steelyard fleet doctor --on slurm:main
    steelyard fleet doctor --on slurm:main --json | jq '.differences'
    """
    from steelyard.record.clock import now_utc  # noqa: PLC0415 - start-up time
    from steelyard.record.folder_lock import default_result  # noqa: PLC0415 - start-up time
    from steelyard.run.hosts.placement import read_placement  # noqa: PLC0415 - start-up time
    from steelyard.run.progress import choose_progress  # noqa: PLC0415 - start-up time
    from steelyard.studies.execution import Assignment, execute_study  # noqa: PLC0415 - start-up time
    from steelyard.study import study  # noqa: PLC0415 - start-up time

    placing = read_placement(on)
    result = out or default_result("fleet-doctor", now_utc()[:10], Path("results"))
    engine = placing(result.absolute())
    width = engine.width
    chosen = study("stability")
    options = chosen.options(
        quick=True,
        isolation=("bare",),
        workers=(1,),
        setups=("single",),
        workloads=(_WORKLOAD,),
        iterations=5,
        blocks=min(BLOCKS_PER_HOST * width, 1000),
    )
    command = ("steelyard", *sys.argv[1:])
    with interruptible(), choose_progress() as progress:
        execute_study(
            Assignment(
                chosen, options, result, resume=False, command_line=command, placing=placing, parts_per_host=1
            ),
            progress,
        )
    chosen.analyse(result)
    found = {**_examined(result), "hosts_expected": engine.size, "result": str(result)}
    if as_json:
        sys.stdout.write(json_text.dumps(found, indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write("\n".join(_lines(found)) + "\n")
    is_fine = width == engine.size and not (
        found["differences"] or found["outliers"] or any(found["unfit"].values())
    )
    return 0 if is_fine else 1


def _examined(result: Path) -> dict[str, Any]:
    from steelyard.model.finding import read_findings  # noqa: PLC0415 - start-up time
    from steelyard.record.placed.hosts import (  # noqa: PLC0415 - start-up time
        differing,
        host_facts,
        host_names,
        machines_of,
    )
    from steelyard.record.provenance import read_provenance  # noqa: PLC0415 - start-up time

    provenance = read_provenance(result)
    names = host_names(provenance, provenance.hosts)
    facts = {names[each]: host_facts(described) for each, described in provenance.hosts.items()}
    findings = read_findings(result / "findings.json")
    outliers = [each for each in findings.of("host_outlier") if each.verdict == "outlier"]
    return {
        "schema": "steelyard/fleet-doctor/1",
        "hosts": facts,
        "machines": [[names[each] for each in hosts] for hosts in machines_of(provenance.hosts).values()],
        "unfit": {names[each]: _unfit(described) for each, described in provenance.hosts.items()},
        "differences": differing(facts),
        "outliers": {each.subject["host"]: each.estimates["ratio"].value for each in outliers},
        "is_tested": bool(findings.of("host_outlier")),
    }


def _unfit(described: object) -> list[str]:
    host = described.get("host") if isinstance(described, dict) else None
    said = host.get("unfit") if isinstance(host, dict) else None
    return [str(each) for each in said] if isinstance(said, list) else []


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Give the page: what each host is, then what differs."""
    hosts, unfit, machines = found["hosts"], found["unfit"], found["machines"]
    yield f"{len(hosts)} of {found['hosts_expected']} hosts took part"
    for name, facts in hosts.items():
        shown = (facts[key] for key in ("kernel", "processor", "governor", "microcode", "SMT"))
        state = "; ".join(unfit[name]) or "fit"
        yield f"  {name}: {', '.join(shown)}"
        yield f"    {state if state == 'fit' else f'not fit: {state}'}"
    for each in machines:
        if len(each) > 1:
            yield f"one machine: {', '.join(each)}; they are no independent hosts"
    for fact, values in found["differences"].items():
        yield f"differs: {fact}: " + "; ".join(f"{value} ({', '.join(who)})" for value, who in values.items())
    if not found["differences"]:
        yield "no host differs from another in what was looked at"
    for name, ratio in found["outliers"].items():
        yield f"outlier: {name}: times {100 * (ratio - 1):+.1f} % against the middle host"
    if not found["is_tested"]:
        yield "which host measures otherwise was not tested: this needs three machines with five blocks each"
    elif not found["outliers"]:
        yield "no outlier: no host differs from more than half of the others by more than 2 %"
    yield f"study: {found['result']}"
