"""Figures for a paper: their width, fonts and resolution, bytes that do not change, and their tables."""

from __future__ import annotations

import csv
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from fixtures.drawn_charts import CHARTS, SHAPES, figure_of
from fixtures.stability_sample import write_sample
from steelyard.cli import execute
from steelyard.errors import UsageError
from steelyard.report.charts.forest import forest, forest_row, labelled_rows
from steelyard.report.charts.parts import difference
from steelyard.report.charts.theme import NIGHT, PALETTE, print_colours
from steelyard.report.dataset import dataset
from steelyard.report.drawing.figure_table import TableForm, figure_tables
from steelyard.report.drawing.paper import FigureForm, Wish, width_of, write_paper_figures
from steelyard.report.page import Figure, Page, Section

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COLUMN_MM = 84.0
SMALLEST_POINTS = 7.0
PAGE_MM = 240.0
"""Height of a page, its margins taken off."""


def page_of(chart: str, shape: str) -> Page:
    figure = figure_of(chart, SHAPES[shape])
    return Page("s", "?", (), (), (), (), (Section("all", "All", "", (figure,)),))


def written(chart: str, shape: str, folder: Path, form: FigureForm, width_mm: float = COLUMN_MM) -> bytes:
    (path,) = write_paper_figures(page_of(chart, shape), folder, Wish((form,), width_mm))
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


@pytest.mark.parametrize("chart", ["errors_by_size", "clock_errors", "latencies"])
def test_names_of_points_have_shapes_so_that_none_is_told_by_colour_alone(chart: str, tmp_path: Path) -> None:
    svg = written(chart, "usual", tmp_path, FigureForm.SVG).decode()
    shapes = {
        (re.search(r' fill="([^"]*)"', mark) or [""])[0]: (re.search(r' d="([^"]*)"', mark) or [""])[0]
        for mark in re.findall(r'<path aria-label[^>]*aria-roledescription="point"[^>]*>', svg)
    }
    shapes.pop("", None)  # rings around what stands apart
    assert len(set(shapes.values())) == len(shapes) == len(SHAPES["usual"].names)


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


def test_a_picture_has_the_resolution_of_line_art_and_states_it(tmp_path: Path) -> None:
    png = written("boxes", "usual", tmp_path, FigureForm.PNG)
    assert int.from_bytes(png[16:20], "big") == pytest.approx(COLUMN_MM / 25.4 * 600, abs=2)
    # PNG, third edition, 11.3.4.3: pixels per metre in both directions, and 1 for the metre.
    at = png.index(b"pHYs") + 4
    across, down = (int.from_bytes(png[at + 4 * place : at + 4 * place + 4], "big") for place in (0, 1))
    assert across == down == pytest.approx(600 / 0.0254, abs=1)
    assert png[at + 8] == 1


@pytest.mark.parametrize(
    ("text", "width_mm"), [("column", 84), ("page", 174), ("120mm", 120), ("90.5", 90.5)]
)
def test_widths_are_named_or_in_millimetres(text: str, width_mm: float) -> None:
    assert width_of(text) == width_mm


@pytest.mark.parametrize("text", ["", "wide", "3", "-84", "1e2", "nan", "inf", "8.4cm", "٨٤"])
def test_a_width_that_is_none_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(UsageError, match=r"`column` \(84 mm\), `page` \(174 mm\), and 60 to 400 mm"):
        width_of(text)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sample(tmp_path_factory.mktemp("study") / "r")


def figure(result: Path, *words: object) -> int:
    return execute(["figure", str(result), *map(str, words)])


def test_chosen_figures_are_written_with_what_was_chosen_and_their_captions(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "p"
    chosen = "Workload=sort/qsort 1048576"
    assert figure(result, "boxes", "shifts", "--format", "svg", "--out", place, "--cell", chosen) == 0
    assert sorted(path.name for path in place.iterdir()) == ["boxes.svg", "shifts.svg"]
    boxes = (place / "boxes.svg").read_text(encoding="utf-8")
    assert "Workload: sort/qsort 1048576" in boxes
    assert "CPU time by load" not in boxes
    assert f"{place}/boxes.svg: CPU time by load. The box holds" in capsys.readouterr().out
    assert not (result / "report.html").exists()


def test_a_named_figure_is_a_pdf_and_several_formats_are_written_at_once(
    result: Path, tmp_path: Path
) -> None:
    assert figure(result, "shifts", "--out", tmp_path / "one.pdf") == 0
    assert size_mm((tmp_path / "one.pdf").read_bytes())[0] == pytest.approx(COLUMN_MM, abs=0.01)
    assert figure(result, "shifts", "--format", "svg", "--format", "png", "--out", tmp_path / "p") == 0
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["shifts.png", "shifts.svg"]


def test_themes_have_their_ground_and_their_colours(result: Path, tmp_path: Path) -> None:
    drawings = {}
    for theme in ("print", "light", "dark"):
        assert figure(result, "boxes", "--theme", theme, "--out", tmp_path / f"{theme}.svg") == 0
        drawings[theme] = (tmp_path / f"{theme}.svg").read_text(encoding="utf-8").upper()
    assert PALETTE[0] in drawings["light"]
    assert PALETTE[0] in drawings["dark"]
    assert NIGHT in drawings["dark"]
    assert NIGHT not in drawings["light"]
    assert all(colour not in drawings["print"] for colour in PALETTE)
    assert print_colours(2)[0] in drawings["print"]


def test_the_names_of_figures_are_listed_with_their_menus(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert figure(result) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "recommended_workers  Recommended number of parallel workers, by isolation"
    assert "boxes  CPU time by load" in lines
    assert "    --cell Workload=sort/insertion_sort" in lines


def test_the_table_behind_a_figure_has_the_chosen_rows_with_their_intervals(
    result: Path, tmp_path: Path
) -> None:
    assert figure(result, "dispersion", "--table", "csv", "--out", tmp_path) == 0
    with (tmp_path / "dispersion.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len({row["workload"] for row in rows}) == 1
    assert {"isolation", "workers", "value", "low", "high"} <= rows[0].keys()
    measured = [row for row in rows if row["low"]]
    assert measured
    assert all(float(row["low"]) <= float(row["value"]) <= float(row["high"]) for row in measured)


HOSTILE_NAMES = (
    r"50 % of \input{x} & $a_b^2$ #1 {}~",
    "[7 of 8]",
    "*",
    "two\n\nlines",
    r"\end{tabular}",
    "ünïcode β",
)


def table(made: Figure, form: TableForm) -> str:
    return next(iter(figure_tables(made, made.spec, form).values()))


def forest_figure(names: Sequence[str]) -> Figure:
    rows = labelled_rows([forest_row(name, "slower", 1.25 * at, (0.5, 1e6)) for at, name in enumerate(names)])
    spec = forest(rows, {"slower": "bad"}, difference("value", "change [%]", None))
    return Figure("odd_names", "Of 50 % & more", "", "", spec, {"intervals": dataset(rows)})


def test_a_table_for_latex_is_aligned_by_siunitx_and_every_name_is_escaped() -> None:
    made = forest_figure(HOSTILE_NAMES)
    text = table(made, TableForm.LATEX)
    assert r"\begin{tabular}{llS[table-format=1.2]S[table-format=1.1]S[table-format=7.0]}" in text
    assert r"50 \% of \textbackslash{}input\{x\} \& \$a\_b\textasciicircum{}2\$" in text
    assert text.count(r"\end{tabular}") == 1
    assert r"{name} & {verdict} & {change [\%]} & {low [\%]} & {high [\%]} \\" in text
    assert "1000000" in text
    # The end of a row would take what stands in brackets for a distance, and a star for its own.
    assert not re.search(r"\\\\\s*[*[]", text)
    assert "\n\n" not in text


@pytest.mark.parametrize("chart", CHARTS)
def test_the_columns_of_a_table_have_names_that_differ(chart: str) -> None:
    made = figure_of(chart, SHAPES["one value"])
    head = table(made, TableForm.LATEX).splitlines()[6]
    heads = head.removesuffix(r" \\").split(" & ")
    assert len(set(heads)) == len(heads), head


def test_the_place_of_a_mark_on_an_axis_is_in_its_table() -> None:
    made = figure_of("scatter", SHAPES["usual"])
    rows = list(csv.DictReader(table(made, TableForm.CSV).splitlines()))
    assert {(row["isolation"], row["order"]) for row in rows} == {
        (name, str(turn)) for name in SHAPES["usual"].names for turn in range(6)
    }
    assert "{iteration}" in table(made, TableForm.LATEX)


def test_each_kind_of_marks_has_its_rows() -> None:
    made = figure_of("curves", SHAPES["usual"])
    tables = figure_tables(made, made.spec, TableForm.CSV)
    assert [*tables] == ["curves.csv", "curves-curves.csv", "curves-bands.csv", "curves-boundaries.csv"]
    for text, rows in zip(tables.values(), made.datasets.values(), strict=True):
        assert len(text.splitlines()) == 1 + len(rows.rows())


@pytest.mark.slow("LaTeX takes seconds")
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_typesets_the_table(tmp_path: Path) -> None:
    made = forest_figure(HOSTILE_NAMES[:5])
    typeset = table(made, TableForm.LATEX)
    head = "\\documentclass{article}\\usepackage{booktabs,siunitx}\\begin{document}"
    text = f"{head}\n{typeset}\\end{{document}}\n"
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    ran = subprocess.run(words, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:]


def test_all_rows_of_a_long_forest_are_in_its_table_by_their_whole_names() -> None:
    names = [f"org.example.benchmarks.Collection.case_{at}_of_many_with_a_long_name" for at in range(200)]
    made = forest_figure(names)
    lines = table(made, TableForm.CSV).splitlines()
    assert [line.partition(",")[0] for line in lines] == ["name", *names]


def test_too_many_rows_for_a_paper_are_refused() -> None:
    made = forest_figure([f"case {at}" for at in range(501)])
    with pytest.raises(UsageError, match="it has 501 rows, and 500 are allowed") as refused:
        table(made, TableForm.LATEX)
    assert refused.value.hint == "--table csv has any number of rows; --cell MENU=OPTION leaves fewer"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bxes"], "`bxes` is not a known figure; allowed: `recommended_workers`"),
        (["../../etc/passwd"], "is not a known figure"),
        (["--format", "pdf", "--cell", "Load=1"], "`Load` is not a known menu; allowed: `Clock`"),
        (
            ["--format", "pdf", "--cell", "Clock=sun"],
            "`sun` is not a known option of the menu `Clock`; allowed:",
        ),
        (["boxes", "--cell", "Clock"], "`--cell Clock` names no option"),
        (["boxes", "--width", "8.4"], "cannot draw figures of the width `8.4`"),
        (["boxes", "--width", "-84mm"], "cannot draw figures of the width `-84mm`"),
        (["boxes", "--format", "eps"], "eps"),
        (["boxes", "--out", "{result}/figures"], "`verify` accepts no other files in a result"),
        (["boxes", "shifts", "--out", "one.pdf"], "it holds one figure in the format of its name"),
        (["boxes", "--format", "svg", "--out", "one.pdf"], "it holds one figure in the format of its name"),
    ],
)
def test_a_wish_that_cannot_be_met_says_what_can(
    words: list[str], said: str, result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = [] if "--out" in words else ["--out", str(tmp_path / "p")]
    assert figure(result, *(word.format(result=result) for word in words), *place) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "p").exists()


def test_a_file_that_cannot_be_written_is_named(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    assert figure(result, "shifts", "--table", "csv", "--out", tmp_path / "taken") == 5
    assert "taken" in capsys.readouterr().err
