from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any

import pytest

from steelyard.model.finding import Estimate, Evidence, Finding
from steelyard.report import table_spec
from steelyard.report.charts.histogram import histogram_of_ratios
from steelyard.report.dataset import dataset
from steelyard.report.drawing.figures import with_data
from steelyard.report.evidence import named_findings
from steelyard.report.html import ROWS_UNFOLDED, coded, render_html
from steelyard.report.page import (
    MOST_ROWS,
    Card,
    CardGroup,
    Column,
    Figure,
    Notice,
    Page,
    Prose,
    Section,
    Table,
    Value,
)
from steelyard.report.sentence import Part, Statement
from steelyard.report.shown_text import shown
from steelyard.report.tables import to_markdown

HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror='window.hacked=1'>\u2028"


class Elements(HTMLParser):
    """Collects elements and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.is_script = tag == "script"
        if self.is_script:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_script = False

    def handle_data(self, data: str) -> None:
        if self.is_script:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def html() -> str:
    finding = Finding(
        f"ratio/{HOSTILE}",
        "parallel_ratio",
        {"workload": HOSTILE},
        "descriptive",
        {"ratio": Estimate(0.9, "ratio", HOSTILE)},
        {"note": HOSTILE},
        (Evidence("runs", {"workload": HOSTILE}, ("start_ns",), "ratio"),),
        (HOSTILE,),
    )
    statement = Statement((Part(HOSTILE, finding.id), Part("0.9", finding.id, is_value=True)), (HOSTILE,))
    colours = {HOSTILE: "#000000"}
    figure = Figure(
        "ratios",
        HOSTILE,
        HOSTILE,
        HOSTILE,
        histogram_of_ratios(colours),
        {"ratios": dataset([{"isolation": HOSTILE, "percent": 90.0}])},
    )
    table = Table(
        "t", HOSTILE, (Column(HOSTILE),), ((Value(HOSTILE, finding=finding.id),),), HOSTILE, "tables/t.csv"
    )
    section = Section(
        "s", HOSTILE, HOSTILE, (Prose((statement,)), table, figure, Notice(HOSTILE, (HOSTILE,)))
    )
    group = CardGroup(HOSTILE, (Card(HOSTILE, HOSTILE, HOSTILE, finding=finding.id),))
    page = Page(
        HOSTILE, HOSTILE, ((HOSTILE, HOSTILE),), (statement,), (group,), (), (section,), {finding.id: finding}
    )
    return render_html(page)


@pytest.fixture(scope="module")
def elements(html: str) -> Elements:
    parser = Elements()
    parser.feed(html)
    return parser


def policy(elements: Elements) -> str:
    return next(
        str(a["content"])
        for tag, a in elements.found
        if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )


def test_a_hostile_name_becomes_no_element_and_no_attribute(elements: Elements) -> None:
    assert not [a for tag, a in elements.found if tag == "img"]
    assert not [a for _, a in elements.found if any(name.startswith("on") for name in a)]
    assert len(elements.scripts) == 5


def test_scripts_run_by_hash_alone(elements: Elements) -> None:
    allowed = re.search(r"script-src ([^;]*);", policy(elements))
    assert allowed is not None
    kinds = [a.get("type") for tag, a in elements.found if tag == "script"]
    running = [text for text, kind in zip(elements.scripts, kinds, strict=True) if kind is None]
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in running
    ]
    assert allowed.group(1).split() == hashes
    assert "unsafe-eval" not in policy(elements)


def test_the_policy_forbids_every_connection(elements: Elements) -> None:
    assert "default-src 'none'" in policy(elements)
    assert "connect-src 'none'" in policy(elements)


def test_nothing_is_loaded_from_outside(elements: Elements) -> None:
    loading = [
        value
        for _, a in elements.found
        for name, value in a.items()
        if name in {"src", "href", "srcset"} and value
    ]
    assert all(value.startswith(("#", "data:", "tables/")) for value in loading), loading


def test_the_engine_stands_in_the_page_once(html: str) -> None:
    assert html.count("window.vegaEmbed=") == 1


def data(elements: Elements, name: str) -> Any:
    position = [a.get("id") for tag, a in elements.found if tag == "script"].index(name)
    return json.loads(elements.scripts[position])


def test_evidence_of_every_named_finding_is_inside(elements: Elements) -> None:
    evidence = data(elements, "evidence-data")
    named = {a["data-finding"] for _, a in elements.found if "data-finding" in a}
    assert named == set(evidence["findings"]) == {f"ratio/{shown(HOSTILE)}"}
    title, verdict, estimates, facts, queries, warnings = evidence["findings"][f"ratio/{shown(HOSTILE)}"]
    words = evidence["words"]
    assert words[verdict] == "descriptive"
    assert [words[index] for index in estimates[0]] == [
        "ratio",
        "0.9000",
        "no interval",
        shown(HOSTILE),
        "0 units, 0 measurements",
    ]
    assert words[queries[0]] == f"ratio of start_ns in runs where workload = {shown(HOSTILE)}"
    assert words[warnings[0]] == shown(HOSTILE)
    assert words[facts[0][1]] == shown(HOSTILE)
    assert shown(HOSTILE) in words[title]


def test_charts_are_packed_and_described(elements: Elements) -> None:
    chart = data(elements, "chart-data")["ratios"]
    assert chart["datasets"]["ratios"]["isolation"] == {"words": [shown(HOSTILE)], "codes": [0]}
    assert chart["spec"]["description"] == shown(HOSTILE)


def page_with(*tables: Table, text: str = "") -> str:
    statement = Statement((Part(text),))
    sections = (Section("s", "S", "", (Prose((statement,)), *tables)),)
    return render_html(Page("stability", "What?", (), (), (), (), sections))


def table_of(rows: int, summary: str = "") -> Table:
    values = tuple((Value(f"{number}"),) for number in range(rows))
    return Table(f"t{rows}", f"Table of {rows}", (Column("a"),), values, summary=summary)


def test_a_long_table_is_folded_behind_what_it_says() -> None:
    html = page_with(table_of(ROWS_UNFOLDED), table_of(ROWS_UNFOLDED + 1, "most are <b>even</b>"))
    (fold,) = re.findall(r"<details.*?</details>", html, re.DOTALL)
    (summary,) = re.findall(r"<summary>(.*?)</summary>", fold, re.DOTALL)
    assert "Table of 13" in summary
    assert "most are &lt;b&gt;even&lt;/b&gt;." in summary
    assert "13 rows" in summary
    assert "Table of 12" not in fold


def test_every_table_keeps_its_caption_for_those_who_do_not_see_it() -> None:
    html = page_with(table_of(3), table_of(40))
    assert html.count("<caption>Table of") == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ask `steelyard doctor`.", "ask <code>steelyard doctor</code>."),
        ("`<i>` and `b`", "<code>&lt;i&gt;</code> and <code>b</code>"),
        ("a lone ` stays <so>", "a lone ` stays &lt;so&gt;"),
    ],
)
def test_backticks_become_code_and_everything_stays_escaped(text: str, shown: str) -> None:
    assert f"<p>{shown}</p>" in page_with(text=text)


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, 0 to 1. SOURCE: WCAG 2.2, definition of relative luminance."""
    shares = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares]
    return sum(weight * each for weight, each in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize(
    ("text", "set_text"),
    [
        ("12 ms and 95 % of 1 000 000 runs", "12_ms and 95_% of 1_000_000 runs"),
        ("829.4 packets/ms, 3 KiB/s, 2 min", "829.4_packets/ms, 3_KiB/s, 2_min"),
        ("in 3 minutes 12 more, size 5 bytes", "in 3 minutes 12 more, size 5 bytes"),
        ("<b> 2 s", "&lt;b&gt; 2_s"),
        ("`sleep 2 s` takes 2 s", "<code>sleep 2 s</code> takes 2_s"),
    ],
)
def test_no_line_ends_inside_a_quantity_and_code_stays_what_it_is(text: str, set_text: str) -> None:
    assert coded(text).replace("\u00a0", "_") == set_text


def test_quantities_are_kept_together_wherever_a_page_has_text() -> None:
    texts = (
        "1 ms",
        "2 ms",
        "3 ms",
        "4 ms",
        "5 ms",
        "6 ms",
        "7 ms",
        "8 ms",
        "9 ms",
        "10 ms",
        "11 ms",
        "12 ms",
    )
    value = Value(texts[0], note=texts[1])
    page = Page(
        study="s",
        question=texts[2],
        about=(("host", texts[3]),),
        answer=(Statement((Part(texts[4], "f", is_value=True), Part(texts[5])), (texts[6],)),),
        cards=(CardGroup("cards", (Card(texts[7], texts[8], texts[9]),)),),
        notices=(Notice("notice", (texts[10],)),),
        sections=(Section("t", "t", "", (Table("t", "t", (Column("c"),), ((value,),), texts[11]),)),),
    )
    html = render_html(page)
    assert [text for text in texts if f">{text}" in html or text.replace(" ", "\u00a0") not in html] == []


@pytest.mark.parametrize("theme", [0, 1, 2])
def test_every_text_stands_out_from_what_is_behind_it(theme: int) -> None:
    """SOURCE: WCAG 2.2, success criterion 1.4.3: a contrast of 4.5."""
    style = (files("steelyard.report") / "templates" / "style.css").read_text(encoding="utf-8")
    colours = dict(
        re.findall(r"--([\w-]+): (#[0-9a-f]{6})", re.findall(r"\{[^{}]*--paper[^}]*", style)[theme])
    )
    pairs = set()
    for rule in re.findall(r"\{([^{}]*)\}", style):
        ink = re.search(r"(?:^|[ ;])color: var\(--([\w-]+)\)", rule)
        behind = re.search(r"background: var\(--([\w-]+)\)", rule)
        if ink is not None:
            pairs |= {(ink[1], each) for each in ([behind[1]] if behind else ("paper", "raised"))}
    assert len(pairs) > 10
    for text, ground in pairs:
        light, dark = sorted((luminance(colours[each]) + 0.05 for each in (text, ground)), reverse=True)
        assert light / dark >= 4.5, (text, ground)


def test_a_page_has_the_first_rows_of_a_long_table_and_says_where_the_rest_is() -> None:
    def page(count: int, file: str | None) -> str:
        findings = {f"f{place}": Finding(f"f{place}", "cell", {}, "flat") for place in range(count)}
        rows = tuple((Value(f"row {place}", finding=f"f{place}"),) for place in range(count))
        table = Table("cells", "Cells", (Column("n"),), rows, file=file, summary="all flat")
        return render_html(Page("s", "q", (), (), (), (), (Section("a", "A", "", (table,)),), findings))

    rest = (
        f"all flat; the first {MOST_ROWS} of {MOST_ROWS + 1} rows are shown, and the filter searches only "
        "these; all are in tables/cells.csv, and the pages of steelyard serve search all."
    )
    cut, whole, alone = (
        page(MOST_ROWS + 1, "tables/cells.csv"),
        page(MOST_ROWS, "tables/cells.csv"),
        page(MOST_ROWS + 1, None),
    )
    assert rest in cut
    assert f"row {MOST_ROWS - 1}" in cut
    assert f"row {MOST_ROWS}" not in cut
    assert f'"f{MOST_ROWS}"' not in cut, "nor its evidence"
    assert "rows are shown" not in whole + alone
    assert f"row {MOST_ROWS - 1}" in whole
    assert f"row {MOST_ROWS}" in alone


def test_rows_of_a_long_table_are_made_when_they_are_shown() -> None:
    """The fault: of 100 000 cells a report took 1.7 GB and 48 s, and 30 rows of them were drawn."""
    made: list[int] = []

    def fill(number: int) -> Value:
        made.append(number)
        return Value(f"row\u202e {number}", finding=f"f{number}")

    spec = table_spec.TableSpec("cells", "Cells", (table_spec.text("n", fill),))
    numbers = range(3 * MOST_ROWS)
    table = spec.build(numbers)
    assert table is not None
    page = Page("s", "q", (), (), (), (), (Section("a", "A", "", (table,)),))
    assert len(page.tables()[0].rows) == 3 * MOST_ROWS
    assert set(named_findings(page)) == {f"f{number}" for number in range(MOST_ROWS)}
    assert "row&lt;U+202E&gt; 499" in render_html(page)
    assert set(made) == set(range(MOST_ROWS))
    assert page.tables()[0].rows[-1][0].text == f"row<U+202E> {3 * MOST_ROWS - 1}"
    assert to_markdown(page.tables()[0]).count("row") == 3 * MOST_ROWS


def test_a_page_has_the_data_of_what_a_chart_draws() -> None:
    data = dataset([{"label": f"row {place}", "value": place} for place in range(40)], 30)
    figure = Figure("forest", "F", "", "", {}, {"intervals": data})
    written = render_html(Page("s", "q", (), (), (), (), (Section("a", "A", "", (figure,)),)))
    assert "row 29" in written
    assert "row 30" not in written
    assert len(data.rows()) == 40, "its table has all"
    assert len(with_data(figure, 800)["datasets"]["intervals"]) == 30  # type: ignore[index,call-overload,arg-type]
