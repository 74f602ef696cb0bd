from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest

from steelyard.model.finding import Estimate, Finding
from steelyard.report.dataset import dataset
from steelyard.report.html import render_html
from steelyard.report.markdown import render_markdown
from steelyard.report.page import Card, CardGroup, Column, Figure, Page, Prose, Section, Table, Value
from steelyard.report.sentence import Part, Statement, fill
from steelyard.report.shown_text import distinct_labels, shortened, shown
from steelyard.report.tables import to_latex
from steelyard.report.text import print_summary

MARKS = [
    *map(chr, (0x200E, 0x200F, 0x61C, 0xAD, 0xFEFF, 0x1B, 0x9B, 0x2028, 0xE000, 0xD800, 0xE0001, 0x200B))
]
MARKS += [chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))]


def page_of(name: str) -> Page:
    finding = Finding(
        f"ratio/{name}", "ratio", {"name": name}, "slower", {"ratio": Estimate(0.9, "ratio", "")}
    )
    sentence = Statement(fill("`{subject.name}` took {estimates.ratio}", finding), (f"look at `{name}`",))
    figure = Figure(
        "places", name, name, name, {"title": name}, {"rows": dataset([{"name": name, "value": 1.0}])}
    )
    table = Table("cells", name, (Column("name"),), ((Value(name, finding=finding.id),),), name, is_key=True)
    return Page(
        "compare",
        name,
        (("host", name),),
        (sentence,),
        (CardGroup(name, (Card(name, name, name, finding=finding.id),)),),
        (),
        (Section("all", name, name, (Prose((sentence,)), table, figure)),),
        {finding.id: finding},
    )


def texts_of(page: Page) -> dict[str, str]:
    terminal = StringIO()
    print_summary(page, terminal)
    return {
        "html": render_html(page),
        "text": terminal.getvalue(),
        "markdown": render_markdown(page),
        "latex": to_latex(page.tables()[0]),
    }


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: f"{ord(mark):04X}")
def test_a_sign_that_hides_or_turns_others_is_written_out_in_every_format(mark: str) -> None:
    for form, text in texts_of(page_of(f"new{mark}")).items():
        assert mark not in text, form
        assert f"U+{ord(mark):04X}" in text, form


def test_the_evidence_of_a_finding_with_such_a_name_is_found() -> None:
    text = render_html(page_of("new\u202e"))
    assert 'data-finding="ratio/new&lt;U+202E&gt;"' in text
    assert '"ratio/new\\u003cU+202E\\u003e":' in text


def test_a_page_is_shown_the_same_if_it_is_made_again() -> None:
    page = page_of("new\u202e")
    assert replace(page) == page


def test_words_from_right_to_left_stay_and_are_set_apart() -> None:
    text = render_html(page_of("new שלום עולם 21"))
    assert "new <bdi>שלום עולם</bdi> 21" in text


@pytest.mark.parametrize("name", ["naïve", "./a b", "日本語", "مثال", "می‌خواهم", "क्‍ष"])
def test_ordinary_names_stay(name: str) -> None:
    assert shown(name) == name


def test_a_joiner_between_other_letters_is_written_out() -> None:
    assert shown("ne\u200dw") == "ne<U+200D>w"


@pytest.mark.parametrize("name", ["x" * 5000, "./run " * 900])
def test_a_long_name_stands_whole_in_its_table_alone(name: str) -> None:
    page = page_of(name)
    heads = [page.question, page.answer[0].text, page.cards[0].title, page.cards[0].cards[0].title]
    heads += [page.sections[0].title, page.tables()[0].title, page.figures()[0].title]
    assert all(len(head) < 450 and "…" in head for head in heads)
    assert page.tables()[0].rows[0][0].text == name
    assert len(texts_of(page)["text"]) < 3000


def test_a_letter_keeps_its_accents_where_a_name_is_shortened() -> None:
    name = "e\u0301" * 100
    for short in (shortened(name, 20), *distinct_labels([name, name + "x"], 20)):
        before, _, after = short.partition("…")
        assert before == "e\u0301" * (len(before) // 2)
        assert not after or after[0] == "e"


def test_a_part_that_names_nothing_long_stays_itself() -> None:
    part = Part("new took 1 s")
    page = replace(page_of("new"), answer=(Statement((part,)),))
    assert page.answer[0].parts[0] is part
