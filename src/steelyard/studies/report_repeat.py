"""How to repeat a study, and which inputs its findings have: the section that ends every report."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from steelyard.report.page import Commands, Pairs, Section
from steelyard.studies.report_blocks import listed, present

if TYPE_CHECKING:
    from steelyard.model import FindingSet, Plan
    from steelyard.record.provenance import Provenance
    from steelyard.report.sentence import Phrasing


def repeat_section(
    provenance: Provenance | None, phrasing: Phrasing, findings: FindingSet, plan: Plan | None
) -> Section:
    """Give the command, the settings that the study states, and its identity."""
    return Section(
        "repeat",
        "How to repeat this",
        "",
        present(
            repeat_commands(provenance), listed(phrasing, findings.of("settings")), identity(findings, plan)
        ),
    )


def repeat_commands(provenance: Provenance | None) -> Commands:
    """Give the command that was run, and those that check and compare the result."""
    # The folder is not named: a result that was moved still renders to the same page.
    sessions = provenance.sessions if provenance else ()
    words = shlex.join(sessions[0].command_line) if sessions and sessions[0].command_line else ""
    again = ((words, "What was run; the same seed gives the same plan"),) if words else ()
    return Commands(
        (
            *again,
            (
                "steelyard verify .",
                "In the folder of this page: compute every finding again from the raw data",
            ),
            ("steelyard compare-results . OTHER", "Compare another result with this one"),
        )
    )


def identity(findings: FindingSet, plan: Plan | None) -> Pairs:
    """Give the plan, its seed, the version of the method and the hashes of the tables."""
    items = [("plan", findings.plan_id or "none")]
    if plan is not None:
        items += [("seed", str(plan.seed)), ("blocks", str(plan.blocks))]
    items += [("method version", str(findings.method_version))]
    items += [(f"SHA-256 of {name}", digest) for name, digest in findings.inputs.items()]
    return Pairs("Identity", tuple(items))
