"""Reports of real results open with their answer: the verdict, then the picture of it, before all else."""

from __future__ import annotations

import io
import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.kept_package import PACKAGES
from fixtures.stability_sample import write_sample
from steelyard import __version__
from steelyard.model.finding import read_findings
from steelyard.report.html import render_html
from steelyard.report.text import KEY_ROWS, LONGEST_WORD, print_summary
from steelyard.study import study_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.report.page import Page

KEPT = [
    f"run-{name}"
    for name in ("colocation", "communication", "compare", "replication", "scaling", "stability")
]
ANSWERS = {
    "run-colocation": "changes_of_latency",
    "run-communication": "cost_of_a_message",
    "run-compare": "ratios-forest",
    "run-replication": "differences",
    "run-scaling": "speedup_over_workers",
    "run-stability": "recommended_workers",
    "sample": "recommended_workers",
}
TWO_LINES = 200


@cache
def page_of(name: str, folder: Path) -> Page:
    if name == "sample":
        result = write_sample(folder / name)
    else:
        shutil.unpack_archive(PACKAGES / f"steelyard-{__version__}-{name}.zip", folder / name)
        result = folder / name / "result"
    return study_of(read_findings(result / "findings.json").study, result).page(result)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    made = Path(mkdtemp())
    yield made
    shutil.rmtree(made)


@pytest.fixture(params=[*KEPT, "sample"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(name: str, folder: Path) -> Page:
    return page_of(name, folder)


def test_the_figure_of_the_answer_is_that_of_the_question_and_stands_once(name: str, page: Page) -> None:
    assert page.figure is not None
    assert page.figure.id == ANSWERS[name]
    ids = [figure.id for figure in page.figures()]
    assert ids[0] == ANSWERS[name]
    assert len(ids) == len(set(ids))


def test_the_verdict_is_short_and_rests_on_findings(page: Page) -> None:
    verdict = page.answer[0]
    assert len(verdict.text) <= TWO_LINES
    assert verdict.findings
    assert verdict.text.endswith(".")


def test_nothing_stands_between_the_question_the_verdict_and_the_figure(page: Page) -> None:
    html = render_html(page)
    body = html[html.index("<h1") : html.index("</section>")]
    opened = re.findall(r"<(h1|p|figure|ul|dl|aside|div)\b([^>]*)>", body)
    assert [tag for tag, _ in opened[:3]] == ["h1", "p", "figure"]
    assert "verdict" in opened[1][1]


def test_cards_say_the_verdict_or_the_number_of_their_finding(page: Page) -> None:
    cards = [card for group in page.cards for card in group.cards if card.finding is not None]
    assert cards
    for card in cards:
        finding = page.findings[str(card.finding)]
        is_number = any(sign.isdigit() for sign in card.value)
        assert finding.verdict in card.value or is_number, (card.value, finding.verdict)
        if finding.verdict in {"undecided", "inconclusive"}:
            assert finding.verdict in f"{card.value} {card.note}"


def intervals(page: Page) -> list[dict[str, Any]]:
    assert page.figure is not None
    data = page.figure.datasets.get("intervals")
    return [] if data is None else [dict(row) for row in data.rows()]  # type: ignore[arg-type]


PERCENT = {"run-compare": ("comparison", "ratio"), "run-replication": ("comparison", "ratio")}


@pytest.mark.parametrize("name", PERCENT, indirect=True)
def test_a_row_of_the_figure_has_the_interval_and_the_verdict_of_its_finding(name: str, page: Page) -> None:
    claim, role = PERCENT[name]
    findings = [each for each in page.findings.values() if each.claim == claim]
    rows = intervals(page)
    assert len(rows) == len(findings) > 0
    for row, finding in zip(rows, findings, strict=True):
        ratio = finding.estimates[role]
        assert row["verdict"] == finding.verdict
        for key, value in (("value", ratio.value), ("low", ratio.low), ("high", ratio.high)):
            assert row[key] == pytest.approx(100 * (float(value or 0) - 1), rel=1e-5)


def test_what_is_undecided_has_no_point(folder: Path) -> None:
    rows = intervals(page_of("run-stability", folder))
    assert {row["verdict"] for row in rows} == {"undecided"}
    assert all(row["value"] is None and row["high"] == 1 for row in rows)
    assert page_of("run-stability", folder).answer[0].text.endswith("undecided in bare and sandbox.")


def test_latency_is_judged_row_by_row_as_its_finding_judges_it(folder: Path) -> None:
    page = page_of("run-colocation", folder)
    (finding,) = [
        each
        for each in page.findings.values()
        if each.claim == "isolation" and each.subject["policy"] != "none"
    ]
    rows = {row["name"]: row for row in intervals(page)}
    assert finding.facts["within"] == "mean"
    assert rows["idle, mean"]["verdict"] == "within tolerance"
    assert rows["idle, p50"]["verdict"] == "undecided"
    assert rows["idle, mean"]["high"] == pytest.approx(
        100 * (float(finding.estimates["ratio"].high or 0) - 1), rel=1e-4
    )
    for row in rows.values():
        is_inside = row["band_low"] <= row["low"] and row["high"] <= row["band_high"]
        assert is_inside is (row["verdict"] == "within tolerance"), row


def test_words_of_the_key_tables_stay_whole_in_a_terminal(page: Page) -> None:
    stream = io.StringIO()
    print_summary(page, stream)
    said = set(stream.getvalue().split())
    shown = [
        word
        for table in page.tables()
        if table.is_key
        for row in table.rows[:KEY_ROWS]
        for column, value in zip(table.columns, row, strict=True)
        if column.in_terminal
        for word in value.text.split()
    ]
    assert shown
    assert {word for word in shown if len(word) <= LONGEST_WORD} <= said


def test_a_card_of_a_comparison_has_the_digits_of_its_table(folder: Path) -> None:
    page = page_of("run-compare", folder)
    (table,) = (each for each in page.tables() if each.id == "ratios")
    at = [column.key for column in table.columns].index("difference")
    said = {row[at].text for row in table.rows}
    cards = {
        card.value.rpartition(": ")[2].replace("\u00a0", " ") for group in page.cards for card in group.cards
    }
    assert cards == said
    notes = " ".join(card.note for group in page.cards for card in group.cards)
    assert all(row[at + 1].text in notes for row in table.rows)
