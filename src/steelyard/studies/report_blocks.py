"""Blocks of a section that any study's report has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.record.placed.hosts import differing, host_facts, host_names
from steelyard.report.page import Notice, Prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding
    from steelyard.record.provenance import Provenance
    from steelyard.report.page import Block
    from steelyard.report.sentence import Phrasing, Statement


def present(*blocks: Block | None) -> tuple[Block, ...]:
    """Give those blocks that have something to show."""
    return tuple(block for block in blocks if block is not None)


def listed(phrasing: Phrasing, chosen: Sequence[Finding], summary: str = "") -> Block | None:
    """Give one sentence per finding as a list; nothing where there is none.

    It is folded behind its summary. Without one, a single sentence is not.
    """
    return said(phrasing.say_all(chosen), summary or ("In words" if len(chosen) > 1 else ""))


def said(statements: Sequence[Statement], summary: str) -> Block | None:
    """Give statements as a list, folded behind a summary if there is one; nothing where there is none."""
    return Prose(tuple(statements), is_list=True, summary=summary) if statements else None


def host_differences(provenance: Provenance) -> Block | None:
    """Say in which facts hosts differ: such a difference alone may explain that their times do."""
    names = host_names(provenance, provenance.hosts)
    facts = {names[each]: host_facts(described) for each, described in provenance.hosts.items()}
    found = [
        f"{fact}: " + "; ".join(f"{value} ({', '.join(hosts)})" for value, hosts in values.items())
        for fact, values in differing(facts).items()
    ]
    return Notice("The hosts differ", tuple(found), tone="warn") if found else None
