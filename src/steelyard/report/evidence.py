"""What a page knows about each of its findings: estimates, interval, method, the query behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import MOST_ROWS, Prose, Table
from steelyard.report.slots import interval, with_unit, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from steelyard.model.finding import Estimate, Evidence, Finding
    from steelyard.report.dataset import Json
    from steelyard.report.page import Block, Page


def named_findings(page: Page) -> tuple[str, ...]:
    """Give the ids of all findings that a part of the page names, in order, each once.

    The rows of a table that only its file has name nothing.
    """
    return tuple(dict.fromkeys(_ids(page)))


def _ids(page: Page) -> Iterator[str]:
    for statement in page.answer:
        yield from statement.findings
    for group in page.cards:
        yield from (card.finding for card in group.cards if card.finding is not None)
    for section in page.sections:
        for block in section.blocks:
            yield from _ids_of(block)


def _ids_of(block: Block) -> Iterator[str]:
    if isinstance(block, Prose):
        for statement in block.statements:
            yield from statement.findings
    elif isinstance(block, Table):
        for row in block.rows if block.file is None else block.rows[:MOST_ROWS]:
            yield from (value.finding for value in row if value.finding is not None)


def packed_evidence(findings: Iterable[Finding]) -> dict[str, Json]:
    """Give the evidence of findings with each text kept once.

    Returns
    -------
    dict
        ``words``: all texts. ``findings``: by id ``[title, verdict, estimates, facts, evidence, warnings]``,
        texts as positions in ``words``.
    """
    words: dict[str, int] = {}

    def intern(text: str) -> int:
        return words.setdefault(text, len(words))

    packed: dict[str, Json] = {}
    for finding in findings:
        packed[finding.id] = [
            intern(_title(finding)),
            intern(finding.verdict),
            [[intern(text) for text in _estimate_texts(role, of)] for role, of in finding.estimates.items()],
            [[intern(_words(key)), intern(write(value))] for key, value in finding.facts.items()],
            [intern(_query(evidence)) for evidence in finding.evidence],
            [intern(warning) for warning in finding.warnings],
        ]
    return {"words": list(words), "findings": packed}


def _title(finding: Finding) -> str:
    subject = ", ".join(f"{_words(key)} {value}" for key, value in finding.subject.items() if value)
    return f"{_words(finding.claim)}: {subject}" if subject else _words(finding.claim)


def _words(key: str) -> str:
    return key.replace("_", " ")


def _estimate_texts(role: str, estimate: Estimate) -> tuple[str, ...]:
    value = "NA" if estimate.value is None else with_unit(estimate.value, estimate.unit)
    basis = f"{estimate.units} units, {estimate.measurements} measurements"
    return _words(role), value, interval(estimate), estimate.method, basis


def _query(evidence: Evidence) -> str:
    """Write a query as one line that names table, rows, columns and what was computed."""
    rows = " and ".join(f"{key} = {value}" for key, value in evidence.filter.items()) or "all rows"
    return f"{evidence.statistic} of {', '.join(evidence.columns)} in {evidence.table} where {rows}"
