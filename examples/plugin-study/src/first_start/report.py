"""How it is told: a sentence for each command, and a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from first_start import STUDY
from steelyard.report.fills import estimate, subject, verdict
from steelyard.report.page import Card, CardGroup, Opening, Section, Value
from steelyard.report.sentence import Phrasing
from steelyard.report.slots import write
from steelyard.report.table_spec import TableSpec, number, text
from steelyard.studies.report_blocks import present
from steelyard.studies.report_frame import read_reported, where_and_when

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.report.page import Page

_RATIO = "{estimates.ratio:rounded} times as long as the next ones[, {estimates.ratio:rounded_interval}]"
PHRASING = Phrasing(
    {
        "first_start": {
            "slower": f"The first start of {{subject.command}} takes {_RATIO}.",
            "not slower": f"The first start of {{subject.command}} takes no longer: {_RATIO}.",
            "undecided": f"Undecided: the first start of {{subject.command}} takes {_RATIO}.",
        }
    }
)
TONES = {"slower": "warn", "not slower": "good", "undecided": "plain"}


def build(folder: Path) -> Page:
    """Give the report of a result folder."""
    read = read_reported(folder)
    found = read.findings.of("first_start")
    cards = tuple(
        Card(each.subject["command"], each.verdict, PHRASING.say(each).text, TONES[each.verdict], each.id)
        for each in found
    )
    table = TableSpec(
        "first_starts",
        "First start over the next ones",
        (
            text("command", subject("command")),
            number("ratio", estimate("ratio", "rounded")),
            text("interval", lambda each: Value(write(each.estimates["ratio"], "rounded_interval"))),
            text("verdict", verdict(TONES)),
        ),
        is_key=True,
    )
    return read.page(
        STUDY.question,
        Opening(PHRASING.say_all(found), cards=[CardGroup("The first start", cards)]),
        about=where_and_when(read.provenance),
        notices=(),
        sections=[
            Section(
                "starts",
                "First starts",
                "Each batch starts a command some times in a row.",
                present(table.build(found)),
            )
        ],
    )
