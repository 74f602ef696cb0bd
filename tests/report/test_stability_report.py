"""The stability report on a made-up study with NA cells, hostile names and warnings."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import altair as alt
import pytest
import vl_convert

from fixtures.stability_sample import HOSTILE, findings, machine, plan, write_sample
from steelyard.report.charts.thin import MARKS_PER_CHART
from steelyard.report.drawing.engine import VEGA_LITE_VERSION
from steelyard.report.drawing.figures import file_spec, write_figures
from steelyard.report.evidence import named_findings
from steelyard.report.html import render_html
from steelyard.report.markdown import render_markdown
from steelyard.report.page import Prose, Table
from steelyard.report.text import print_summary
from steelyard.studies.stability.report.data import labelled
from steelyard.studies.stability.report.page import build
from steelyard.studies.stability.report.sentences import PHRASING, SENTENCES

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from steelyard.report.page import Page

CLAIMS = {
    *(
        "outside_error",
        "outside_error_groups",
        "clock_granularity",
        "class_counts",
        "parallel_ratio",
        "warm_up",
    ),
    *(f"{statistic}_comparison" for statistic in ("mean", "sd", "median", "mad", "cv")),
    *(
        "worker_difference",
        "input_dependence",
        "dispersion_by_load",
        "location_shift",
        "pinning_effect",
        "overlap",
    ),
    *(
        "clock_trust",
        "recommended_workers",
        "least_steady_cell",
        "quiet_machine",
        "a_a",
        "contamination",
        "counter_correlation",
        "failed_runs",
        "calibration",
    ),
    "settings",
}


OF_HOSTS = {"hosts", "host_scatter", "host_outlier", "bystanders", "clock", "clocks"}
"""Of results of several hosts alone; `test_several_hosts.py` has some."""


SAID = tuple(labelled(finding) for finding in findings(plan()).findings)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    return build(write_sample(tmp_path_factory.mktemp("result") / "night shift"))


def test_every_kind_of_claim_has_a_sentence_and_stands_in_the_sample() -> None:
    assert set(SENTENCES) == CLAIMS | OF_HOSTS
    assert {finding.claim for finding in SAID} == CLAIMS


def test_every_finding_can_be_said() -> None:
    others = [machine(verdict, noisy) for verdict, noisy in (("quiet", 0), ("mostly quiet", 3))]
    for finding in (*SAID, *others):
        said = PHRASING.say(finding)
        assert said.text.endswith("."), said.text
        assert said.findings == (finding.id,)
        assert "{" not in said.text
        assert "[" not in said.text


def test_sentences(snapshot: SnapshotAssertion) -> None:
    first_of_kind = {(finding.claim, finding.verdict): finding for finding in reversed(SAID)}
    assert {" / ".join(key): PHRASING.say(one).text for key, one in sorted(first_of_kind.items())} == snapshot


def test_answer(page: Page, snapshot: SnapshotAssertion) -> None:
    assert [statement.text for statement in page.answer] == snapshot
    assert all(statement.findings for statement in page.answer)


def test_terminal_summary(page: Page, snapshot: SnapshotAssertion) -> None:
    stream = io.StringIO()
    print_summary(page, stream)
    assert stream.getvalue() == snapshot
    assert max(map(len, stream.getvalue().splitlines())) <= 80


def test_every_named_finding_is_in_the_page_and_no_other(page: Page) -> None:
    assert set(named_findings(page)) == set(page.findings)


def test_every_statement_of_a_section_rests_on_a_finding_or_says_where_more_is(page: Page) -> None:
    prose = [block for section in page.sections for block in section.blocks if isinstance(block, Prose)]
    plain = [one.text for block in prose for one in block.statements if not one.findings]
    assert plain
    assert all("findings.json" in text for text in plain)


def test_tables_of_the_published_study_are_there(page: Page) -> None:
    tables = {
        table.title.partition(".")[0]: table for table in page.tables() if table.title.startswith("Table ")
    }
    assert list(tables) == [f"Table {number}" for number in range(1, 7)]
    names = [column.key for column in tables["Table 1"].columns]
    assert names == ["setup", "isolation", "workload", "cpu_err_mean", "cpu_err_sd", "cpu_err_cv"]
    assert [column.key for column in tables["Table 3"].columns] == [
        "setup",
        "workload",
        "bare vs docker",
        "bare vs vm",
        "docker vs vm",
    ]


def column(table: Table, key: str) -> list[float | None]:
    position = [one.key for one in table.columns].index(key)
    return [row[position].order for row in table.rows]


def test_errors_descend_ratios_ascend_and_na_comes_last(page: Page) -> None:
    tables = {table.id: table for table in page.tables()}
    for values, is_ascending in (
        (column(tables["outside_error_wall"], "wall_err_cv"), False),
        (column(tables["parallel_ratio"], "parallel_ratio"), True),
    ):
        present = [value for value in values if value is not None]
        assert values == [*present, *[None] * (len(values) - len(present))]
        assert len(present) < len(values)
        assert present == sorted(present, reverse=not is_ascending)


def test_missing_cells_are_na_with_their_reason(page: Page) -> None:
    tables = {table.id: table for table in page.tables()}
    reasons = {row[3].text for row in tables["missing_cells"].rows}
    assert "workers in virtual machines are not bound" in reasons
    cells = {row[0].text: [value.text for value in row[1:]] for row in tables["cells"].rows}
    assert cells["parallel-homogenous,4"] == ["2000", "2000", "2000", "NA"]


@pytest.mark.slow
def test_charts_are_valid_and_small_enough(page: Page) -> None:
    assert {figure.id for figure in page.figures()} == {
        "recommended_workers",
        *("scatter", "boxes", "dispersion", "classes", "parallel_ratios", "shifts"),
        *("outside_error", "outside_versus_own"),
    }
    for figure in page.figures():
        alt.Chart.from_dict({**file_spec(figure), "usermeta": {}})
        vl_convert.vegalite_to_vega(json.dumps(file_spec(figure)), vl_version=VEGA_LITE_VERSION)
        drawn = vl_convert.vega_to_scenegraph(
            vl_convert.vegalite_to_vega(json.dumps(file_spec(figure)), vl_version=VEGA_LITE_VERSION)
        )
        assert 0 < symbols(drawn["scenegraph"]) <= MARKS_PER_CHART


def symbols(item: dict[str, object]) -> int:
    inside = item.get("items", [])
    assert isinstance(inside, list)
    own = len(inside) if item.get("marktype") in {"symbol", "rect", "rule"} else 0
    return own + sum(symbols(one) for one in inside if isinstance(one, dict))


def test_figures_are_written(page: Page, tmp_path: Path) -> None:
    written = write_figures(page, tmp_path / "figures")
    assert len(written) == 2 * len(page.figures())
    for path in written:
        head = path.read_bytes()[:4]
        assert head in {b"<svg", b"\x89PNG"}


def test_markdown_says_the_same_and_no_markup_survives(page: Page) -> None:
    text = render_markdown(page)
    assert "<script>" not in text
    assert "Within 2 % of dispersion: 4 workers in bare and sandbox" in text
    assert text.count("![") == len(page.figures())


def test_the_page_is_below_three_megabytes(page: Page) -> None:
    html = render_html(page)
    assert len(html.encode()) < 3_000_000
    assert HOSTILE not in html


def test_a_virtual_machine_cannot_see_its_neighbours(tmp_path: Path) -> None:
    write_sample(tmp_path)
    path = tmp_path / "provenance.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    for hypervisor, is_said in ((None, False), ("kvm", True)):
        document["host"]["virtualisation"] = {"hypervisor": hypervisor, "container": None}
        path.write_text(json.dumps(document), encoding="utf-8")
        said = "\n".join(item for notice in build(tmp_path).notices for item in notice.items)
        assert ("other guests of the hypervisor (kvm) shared a core" in said) is is_said
