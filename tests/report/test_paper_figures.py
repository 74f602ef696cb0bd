"""Figures for a paper: their width, their fonts, and bytes that do not change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fixtures.drawn_charts import CHARTS, SHAPES, figure_of
from fixtures.stability_sample import write_sample
from steelyard.cli import execute
from steelyard.errors import UsageError
from steelyard.report.drawing.paper import FigureForm, Wish, width_of, write_paper_figures
from steelyard.report.page import Page, Section

if TYPE_CHECKING:
    from pathlib import Path

COLUMN_MM = 84.0
SMALLEST_POINTS = 7.0
PAGE_MM = 240.0
"""Height of a page, its margins taken off."""


def page_of(chart: str, shape: str) -> Page:
    figure = figure_of(chart, SHAPES[shape])
    return Page("s", "?", (), (), (), (), (Section("all", "All", "", (figure,)),))


def written(chart: str, shape: str, folder: Path, form: FigureForm, width_mm: float = COLUMN_MM) -> bytes:
    (path,) = write_paper_figures(page_of(chart, shape), folder, Wish(form, width_mm, (), {}))
    return path.read_bytes()


def size_mm(pdf: bytes) -> tuple[float, float]:
    box = re.search(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", pdf)
    assert box is not None
    return float(box[1]) / 72 * 25.4, float(box[2]) / 72 * 25.4


@pytest.mark.parametrize("chart", CHARTS)
def test_a_figure_is_as_wide_as_the_column_and_its_letters_can_be_read(chart: str, tmp_path: Path) -> None:
    svg = written(chart, "many long names", tmp_path, FigureForm.SVG).decode()
    size = re.search(r'<svg[^>]* width="([0-9.]+)mm" height="([0-9.]+)mm"[^>]* viewBox="0 0 ([0-9.]+) ', svg)
    assert size is not None
    assert float(size[1]) == COLUMN_MM
    points = COLUMN_MM / 25.4 * 72 / float(size[3])
    assert (
        min(float(each) for each in re.findall(r'font-size="([0-9.]+)px"', svg)) * points >= SMALLEST_POINTS
    )


@pytest.mark.parametrize("chart", CHARTS)
def test_no_usual_figure_is_higher_than_a_page(chart: str, tmp_path: Path) -> None:
    width_mm, height_mm = size_mm(written(chart, "usual", tmp_path, FigureForm.PDF))
    assert width_mm == pytest.approx(COLUMN_MM, abs=0.01)
    assert height_mm <= PAGE_MM


@pytest.mark.parametrize("chart", ["boxes", "scatter", "speedups", "tree"])
def test_a_pdf_has_its_fonts_inside_no_date_and_the_same_bytes_again(chart: str, tmp_path: Path) -> None:
    pdfs = {written(chart, "usual", tmp_path, FigureForm.PDF, width_mm=174.0) for _ in range(6)}
    assert len(pdfs) == 1
    (pdf,) = pdfs
    assert size_mm(pdf)[0] == pytest.approx(174.0, abs=0.01)
    assert pdf.count(b"/Type /FontDescriptor") == pdf.count(b"/FontFile2") > 0
    assert b"/FontFile3" not in pdf
    assert b"Date" not in pdf
    assert b"/Subtype /Image" not in pdf
    table = int(pdf[pdf.rindex(b"startxref") :].split()[1])
    assert pdf[table : table + 4] == b"xref"
    for number, row in enumerate(pdf[table:].splitlines()[3:-7], 1):
        if row.endswith(b" n"):
            assert pdf[int(row[:10]) :].startswith(b"%d 0 obj" % number)


def test_a_picture_has_the_resolution_of_line_art(tmp_path: Path) -> None:
    png = written("boxes", "usual", tmp_path, FigureForm.PNG)
    assert int.from_bytes(png[16:20], "big") == pytest.approx(COLUMN_MM / 25.4 * 600, abs=2)


@pytest.mark.parametrize(
    ("text", "width_mm"), [("column", 84), ("page", 174), ("120mm", 120), ("90.5", 90.5)]
)
def test_widths_are_named_or_in_millimetres(text: str, width_mm: float) -> None:
    assert width_of(text) == width_mm


@pytest.mark.parametrize("text", ["", "wide", "3", "-84", "1e9", "nan", "inf"])
def test_a_width_that_is_none_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(UsageError, match=r"`column` \(84 mm\), `page` \(174 mm\), and 60 to 400 mm"):
        width_of(text)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("study") / "r")


def test_chosen_figures_are_written_with_what_was_chosen_and_their_captions(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["report", "--format", "svg", "--out", str(tmp_path / "p"), "--figure", "boxes", str(result)]
    assert execute([*words, "--figure", "shifts", "--choose", "Workload=sort/qsort 1048576"]) == 0
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["boxes.svg", "shifts.svg"]
    boxes = (tmp_path / "p" / "boxes.svg").read_text(encoding="utf-8")
    assert "Workload: sort/qsort 1048576" in boxes
    assert "CPU time by load" not in boxes
    assert (
        f"{tmp_path}/p/boxes.svg: CPU time by load. How to read it: the box holds" in capsys.readouterr().out
    )
    assert not (result / "report.html").exists()


def test_the_names_of_figures_are_listed_with_their_menus(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["report", str(result), "--list-figures"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "boxes  CPU time by load" in lines
    assert "    Workload=sort/insertion_sort" in lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--format", "pdf", "--figure", "bxes"], "`bxes` is not a known figure; allowed: `outside_error`"),
        (["--format", "pdf", "--choose", "Load=1"], "`Load` is not a known menu; allowed: `Clock`"),
        (
            ["--format", "pdf", "--choose", "Clock=sun"],
            "`sun` is not a known option of the menu `Clock`; allowed:",
        ),
        (["--format", "pdf", "--choose", "Clock"], "`--choose Clock` names no option"),
        (["--figure", "boxes"], "are for a paper, not for `--format html`"),
        (["--format", "pdf", "--out", "{result}/figures"], "`verify` accepts no other files in a result"),
    ],
)
def test_a_wish_that_cannot_be_met_says_what_can(
    words: list[str], said: str, result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = [] if "--out" in words else ["--out", str(tmp_path / "p")] if "--format" in words else []
    assert execute(["report", str(result), *(word.format(result=result) for word in words), *place]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "p").exists()
