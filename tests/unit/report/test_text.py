from __future__ import annotations

import io

import pytest

from steelyard.report.page import Column, Notice, Page, Section, Table, Value
from steelyard.report.sentence import Part, Statement
from steelyard.report.text import print_summary, verdict_line


def test_the_summary_fits_80_columns_without_colour_or_markup() -> None:
    rows = tuple(
        (Value(f"[red]w{number}[/red]" + "x" * 40), Value(f"{number}", number)) for number in range(12)
    )
    table = Table(
        "t",
        "Key",
        (Column("workload"), Column("cv", "%", is_number=True)),
        rows,
        file="tables/t.csv",
        is_key=True,
    )
    hidden = Table("h", "Not key", (Column("a"),), ((Value("b"),),))
    statement = Statement(
        (Part("The answer is ", "f"), Part("42", "f", is_value=True), Part(".", "f")),
        ("few: only one block",),
    )
    page = Page(
        "stability",
        "What?",
        (("runs", "7"),),
        (statement,),
        (),
        (Notice("Absent", ("x: not measured",)),),
        (Section("s", "S", "", (table, hidden)),),
    )
    stream = io.StringIO()
    print_summary(page, stream, (("report", "/very/long/" + "path/" * 30 + "report.html"),))
    text = stream.getvalue()
    assert "\x1b" not in text
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[:3] == ["The answer is 42.", "", "Key"], "the verdict in a line, then the table"
    words = lines.index("- The answer is 42.")
    assert words > lines.index("4 more rows in tables/t.csv")
    assert lines[words + 1] == "! few: only one block"
    assert "- x: not measured" in text
    assert "[red]w0[/red]" in text
    assert "Not key" not in text
    assert "4 more rows in tables/t.csv" in text
    *body, path = text.rstrip("\n").split("\n")
    assert path.endswith("report.html")
    assert max(map(len, body)) <= 80


def test_words_stay_whole_and_numbers_stay_with_their_units() -> None:
    names = ("as-it-is", "object-pools", "no-recursion")
    columns = (
        Column("intervention"),
        Column("verdict"),
        *(Column(f"n{at}", is_number=True) for at in range(6)),
    )
    rows = tuple(
        (Value(name), Value("the program as it is"), *[Value("61.29 ns", 61.29)] * 6) for name in names
    )
    table = Table("t", "Rows", columns, rows, is_key=True)
    page = Page("s", "?", (), (), (), (), (Section("s", "S", "", (table,)),))
    stream = io.StringIO()
    print_summary(page, stream)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("intervention") for line in lines)
    assert [line.split()[0] for line in lines if "61.29" in line] == list(names)
    assert sum(line.count("61.29 ns") for line in lines) == 18


def page_that_says(*texts: str) -> Page:
    return Page("s", "?", (), tuple(Statement((Part(text),)) for text in texts), (), (), ())


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Two workers at most.", "Two workers at most."),
        ("Two workers at most (least steady: sort, 1.1 %, 95 % interval).", "Two workers at most ..."),
        (
            "Bare carries 4; docker carries 1, which is all that was measured.",
            "Bare carries 4; docker carries 1 ...",
        ),
        ("pipe (slow host): a message of 1 B takes 1.281 us.", "pipe (slow host): a message of 1 B ..."),
        ("word " * 20, "word word word word word word word ..."),
        ("x" * 100, "x" * 36 + " ..."),
    ],
)
def test_the_verdict_is_one_line_and_says_where_it_goes_on(text: str, line: str) -> None:
    assert verdict_line(page_that_says(text), 40) == line
    assert len(line) <= 40


def test_a_verdict_that_is_said_whole_is_not_repeated() -> None:
    stream = io.StringIO()
    print_summary(page_that_says("All is well.", "More."), stream)
    assert [line.strip() for line in stream.getvalue().splitlines()] == [
        "All is well.",
        "",
        "- More.",
        "",
        "s study",
    ]


def test_a_page_without_an_answer_has_no_verdict() -> None:
    assert verdict_line(page_that_says(), 80) == ""
