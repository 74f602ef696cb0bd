from __future__ import annotations

import io

from steelyard.report.page import Column, Notice, Page, Section, Table, Value
from steelyard.report.sentence import Part, Statement
from steelyard.report.text import print_summary


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
    assert lines[:2] == ["- The answer is 42.", "! few: only one block"]
    assert "- x: not measured" in text
    assert "[red]w0[/red]" in text
    assert "Not key" not in text
    assert "4 more rows in tables/t.csv" in text
    *body, path = text.rstrip("\n").split("\n")
    assert path.endswith("report.html")
    assert max(map(len, body)) <= 80
