"""Data that answer only part of the question still give a page that says what is absent, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute
from steelyard.report.html import render_html
from steelyard.studies.stability.analysis import analyse
from steelyard.studies.stability.report.page import build

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.report.page import Page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """One isolation, one worker, no outside clock, from a nine-column file."""
    folder = tmp_path_factory.mktemp("import")
    random = np.random.default_rng(11)
    lines = [
        f"bare,single,1,cpu-0,{workload},{size},{iteration},cpu,{random.normal(0.3, 0.002):.5f}"
        for workload, size in (("exp/exp_float", 65536), ("sort/qsort", 1048576))
        for iteration in range(1, 41)
    ]
    (folder / "timings.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    out = folder / "result"
    assert execute(["import", "recodex", str(folder / "timings.csv"), "--out", str(out)]) == 0
    analyse(out)
    return build(out)


def test_the_page_says_what_is_absent_and_why(page: Page) -> None:
    (notice,) = page.notices
    text = "\n".join(notice.items)
    for reason in (
        "recorded metrics: cpu",
        "only one worker measured",
        "only bare measured",
        "no cell with workers bound to CPUs",
        "the data hold no repeated cell",
        "steelyard doctor --calibrate",
    ):
        assert reason in text


def test_what_can_be_said_is_said(page: Page) -> None:
    assert any("timings.csv" in value for _, value in page.about)
    assert page.answer[0].text == "Within 2 % of dispersion: 1 worker in bare, the most measured."
    known = ["recommended_workers", "scatter", "boxes"]
    assert [figure.id for figure in page.figures()] == known[: len(page.figures())]
    assert "warm_up" in {table.id for table in page.tables()}


def test_sections_without_content_are_left_out(page: Page) -> None:
    titles = {section.id for section in page.sections}
    assert "parallel" not in titles
    assert {"measured", "trust", "stability", "repeat", "words"} <= titles
    assert all(section.blocks for section in page.sections)


def test_the_page_renders(page: Page) -> None:
    assert "What this report cannot say, and why" in render_html(page)


def test_a_damaged_table_is_an_error_with_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["report", str(tmp_path / "absent")]) == 5
    assert "findings.json" in capsys.readouterr().err
