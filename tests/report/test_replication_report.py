"""The page of a replication: answers at a glance, what is played or failed, the tree, and the source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.fixtures.replication_runs import (
    Calls,
    Failed,
    Given,
    Micro,
    Requests,
    Spikes,
    build_result,
)

from steelyard.report.html import render_html
from steelyard.report.page import Figure, Table
from steelyard.studies.replication.analysis import analyse
from steelyard.studies.replication.report.page import build

if TYPE_CHECKING:
    from steelyard.report.page import Page

LESSON = "Do not use SD cards for <em>I/O</em>."


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """Everything that the study can hold, small."""
    spiky = Calls(calls=6000, spikes=Spikes(4000))
    cells = {
        ("e1", "file-io", "D1-native"): Micro(5e5),
        ("e1", "file-io", "D1-container"): Micro(1.59 * 5e5),
        ("e1", "file-io", "D2-native"): Micro(5e5),
        ("e2", "none-unrecorded", "D1-native"): Calls(calls=2000, is_recorded=False),
        ("e2", "none-baseline", "D1-native"): Calls(calls=2000),
        ("e2", "kieker-writing", "D1-native"): Calls(9000.0, calls=2000),
        ("e3", "mixed", "native"): Requests(seconds=3.0),
        ("e3", "mixed", "storage-swapped"): Requests(1.55, seconds=3.0),
        ("e4", "stand-in", "native"): Failed("too little throughput"),
        ("causes", "as-it-is", "D1-native"): spiky,
        ("causes", "object-pools", "D1-native"): Calls(calls=6000),
        ("causes", "one-core", "D1-native"): spiky,
    }
    interventions = json.dumps([{"name": "object-pools", "sentence": "Leaves nothing to collect."}])
    given = Given(
        blocks=5,
        twin=("e1", "file-io", "D1-native"),
        played=True,
        request={"lessons": [LESSON]},
        options={"interventions": interventions},
    )
    result = build_result(tmp_path_factory.mktemp("page") / "r", cells, given)
    analyse(result)
    return build(result)


def _table(page: Page, name: str) -> Table:
    (found,) = (each for each in page.tables() if each.id == name)
    return found


def test_the_answers_stand_at_the_top_one_group_per_question(page: Page) -> None:
    titles = [group.title for group in page.cards]
    assert titles == [
        "Which kinds of experiment replicate elsewhere?",
        "Does a container change what is measured?",
        "What makes response times fluctuate?",
        "What does our own recording cost?",
    ]
    values = [[card.value for card in group.cards] for group in page.cards]
    assert values[0] == ["replicates", "no other place", "does not replicate", "fails"]
    assert values[1] == ["changed", "no container", "no container", "no container"]
    assert values[2:] == [["found"], ["below every framework"]]


def test_every_sentence_of_the_answer_rests_on_findings(page: Page) -> None:
    assert len(page.answer) == 1
    assert page.answer[0].text == (
        "Micro benchmarks replicate elsewhere; benchmarks of a web service do not replicate elsewhere; "
        "macro benchmarks fail; a container changes the results of micro benchmarks; "
        "object-pools removes the spikes of response time (gc)."
    )
    for statement in page.answer:
        assert statement.findings
        assert set(statement.findings) <= set(page.findings)


def test_played_devices_and_failures_are_not_overlooked(page: Page) -> None:
    notices = {notice.title: " ".join(notice.items) for notice in page.notices}
    assert "not other hardware" in notices["Played devices"]
    assert "too little throughput" in notices["Benchmarks that fail, which is a result"]
    assert page.figure is not None
    assert "between parts of one machine" in page.figure.title


def test_the_tree_names_the_intervention_that_removes_the_spikes(page: Page) -> None:
    rows = {row[0].text: row[1].text for row in _table(page, "cause_tree_D1-native").rows}
    assert rows == {
        "as-it-is": "the program as it is",
        "object-pools": "spikes gone",
        "one-core": "still spikes",
    }


def test_the_figures_are_those_of_the_study(page: Page) -> None:
    assert [figure.id for figure in page.figures()] == [
        "differences",
        "tree_of_causes_D1-native",
        "calls_over_time_causes",
        "costs",
        "calls_over_time_e2",
        "latency_e3",
    ]
    for figure in page.figures():
        assert isinstance(figure, Figure)
        assert all(len(data) for data in figure.datasets.values()), figure.id


def test_texts_of_the_study_are_shown_as_text(page: Page) -> None:
    html = render_html(page)
    assert LESSON not in html
    assert "Do not use SD cards for &lt;em&gt;I/O&lt;/em&gt;." in html
