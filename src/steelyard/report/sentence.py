"""Sentences of a report: templates with named slots that only findings can fill."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby
from string import Formatter
from typing import TYPE_CHECKING, Final

from steelyard.errors import InternalError
from steelyard.report.shown_text import shortened
from steelyard.report.slots import is_present, value_of, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from steelyard.model.finding import Finding

ANY_VERDICT: Final = "*"
_CLAUSE: Final = re.compile(r"\[([^\[\]]*)\]")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of text of one finding.

    Parameters
    ----------
    text : str
        As shown.
    finding : str or None
        Id of the finding that fills it; ``None`` for connecting words.
    is_value : bool
        Whether it is a number or a verdict that came out of a slot.
    """

    text: str
    finding: str | None = None
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, with the finding behind each of its parts and the warnings that go with it."""

    parts: tuple[Part, ...]
    warnings: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(part.text for part in self.parts)

    def claims(self) -> tuple[tuple[str | None, tuple[Part, ...]], ...]:
        """Give the parts grouped by the finding behind them, in order."""
        return tuple(
            (finding, tuple(parts)) for finding, parts in groupby(self.parts, key=lambda part: part.finding)
        )

    @property
    def findings(self) -> tuple[str, ...]:
        """Ids of the findings behind it, in order, each once."""
        return tuple(dict.fromkeys(part.finding for part in self.parts if part.finding is not None))


@dataclass(frozen=True, slots=True)
class Phrasing:
    """The templates of a study.

    Parameters
    ----------
    templates : mapping
        Claim to verdict to template; the verdict `ANY_VERDICT` stands for all others.
        A slot is ``{subject.KEY}``, ``{facts.KEY}``, ``{estimates.ROLE}`` or ``{verdict}``, with an
        optional style after a colon. A clause in square brackets is left out when one of its slots is empty,
        or is an estimate that the finding does not have.
    """

    templates: Mapping[str, Mapping[str, str]]

    def template(self, finding: Finding) -> str:
        """Give the template for a finding.

        Raises
        ------
        InternalError
            If no template covers its claim and verdict.
        """
        of_claim = self.templates.get(finding.claim)
        chosen = None if of_claim is None else of_claim.get(finding.verdict, of_claim.get(ANY_VERDICT))
        if chosen is None:
            message = f"no sentence for claim `{finding.claim}` with verdict `{finding.verdict}`"
            raise InternalError(message, code="report.sentence")
        return chosen

    def say(self, finding: Finding) -> Statement:
        """Give the sentence of one finding."""
        return Statement(fill(self.template(finding), finding), finding.warnings)

    def say_all(self, findings: Iterable[Finding]) -> tuple[Statement, ...]:
        """Give the sentence of each finding."""
        return tuple(self.say(finding) for finding in findings)


def fill(template: str, finding: Finding) -> tuple[Part, ...]:
    """Fill a template with the values of a finding.

    Raises
    ------
    AbsentSlotError
        If a slot or a style does not exist.
    """
    parts: list[Part] = []
    position = 0
    for clause in _CLAUSE.finditer(template):
        parts.extend(_filled(template[position : clause.start()], finding))
        if all(_is_there(finding, slot) for slot in slots_in(clause.group(1))):
            parts.extend(_filled(clause.group(1), finding))
        position = clause.end()
    parts.extend(_filled(template[position:], finding))
    return tuple(parts)


def _is_there(finding: Finding, slot: str) -> bool:
    head, _, role = slot.partition(".")
    is_absent = head == "estimates" and role.partition(".")[0] not in finding.estimates
    return not is_absent and is_present(value_of(finding, slot))


def slots_in(template: str) -> tuple[str, ...]:
    """Give the names of the slots of a template."""
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name)


def _filled(template: str, finding: Finding) -> Iterable[Part]:
    for words, slot, style, _ in Formatter().parse(template):
        if words:
            yield Part(words, finding.id)
        if slot:
            value = value_of(finding, slot)
            is_name = isinstance(value, str) and slot != "verdict"
            text = write(value, style or "")
            yield Part(shortened(text) if is_name else text, finding.id, is_value=not is_name)


def plain(text: str) -> Statement:
    """Give a statement that rests on no finding."""
    return Statement((Part(text),))


def enumerate_findings(findings: Sequence[Finding], phrase: str) -> tuple[Part, ...]:
    """Give one phrase per finding, joined as people list things.

    Parameters
    ----------
    findings : sequence of Finding
        At least one.
    phrase : str
        Template of each item.
    """
    parts: list[Part] = []
    for index, finding in enumerate(findings):
        if index:
            parts.append(Part(" and " if index == len(findings) - 1 else ", "))
        parts.extend(fill(phrase, finding))
    return tuple(parts)


def join(*pieces: str | Sequence[Part], findings: Sequence[Finding] = ()) -> Statement:
    """Give one statement of several pieces; plain text rests on no finding.

    Parameters
    ----------
    *pieces : str or sequence of Part
        In order.
    findings : sequence of Finding
        Their warnings go with the statement, each once.
    """
    parts: list[Part] = []
    for piece in pieces:
        parts.extend([Part(piece)] if isinstance(piece, str) else piece)
    warnings = tuple(dict.fromkeys(warning for finding in findings for warning in finding.warnings))
    return Statement(tuple(part for part in parts if part.text), warnings)


MOST_NAMES: Final = 4
"""Findings that a verdict names one by one."""


def enumerate_or_count(findings: Sequence[Finding], phrase: str, things: str) -> tuple[Part, ...]:
    """Give `enumerate_findings` of a few findings; of more only how many `things` they are."""
    if len(findings) > MOST_NAMES:
        return (Part(f"{len(findings)} {things}", findings[0].id),)
    return enumerate_findings(findings, phrase)


def sentence_of(template: str, finding: Finding) -> Statement:
    """Give a sentence of its own, which begins with a capital letter and ends."""
    return join(begun(fill(template, finding)), ".", findings=[finding])


def begun(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Give parts that begin with a capital letter."""
    first, *others = parts
    return (replace(first, text=first.text[:1].upper() + first.text[1:]), *others)


def verdict_of(*clauses: str | Sequence[Part], findings: Sequence[Finding] = ()) -> Statement:
    """Give the verdict of a report: clauses parted by semicolons, as one sentence."""
    pieces: list[str | Sequence[Part]] = []
    for clause in clauses:
        pieces += ["; " if pieces else "", clause]
    return join(*pieces, ".", findings=findings)
