from __future__ import annotations

from steelyard.model.finding import Estimate, Finding
from steelyard.report.fills import at, estimate, limits, of, pivoted, shared, subject, subject_number, verdict
from steelyard.report.table_spec import DOUBT_NOTE, TableSpec, number, shown_where, text


def finding(policy: str, load: str, *, is_guaranteed: bool = True) -> Finding:
    ratio = Estimate(1.1, "ratio", "t", 0.9, 1.3, 0.95, guaranteed=is_guaranteed)
    return Finding(f"{policy}/{load}", "c", {"policy": policy, "load": load}, "slower", {"ratio": ratio})


COLUMNS = (text("policy", subject("policy")), text("95 % interval", limits("ratio", "change_interval")))


def test_a_doubtful_interval_is_marked_and_the_note_says_why() -> None:
    spec = TableSpec("t", "T", COLUMNS, "Read it.", doubt_note=DOUBT_NOTE)
    sure, doubtful = (spec.build([finding("a", "50", is_guaranteed=each)]) for each in (True, False))
    assert sure is not None
    assert doubtful is not None
    assert (sure.rows[0][1].text, sure.note) == ("-10 % to +30 %", "Read it.")
    assert (doubtful.rows[0][1].text, doubtful.note) == ("-10 % to +30 % *", f"Read it. {DOUBT_NOTE}")
    assert sure.file == "tables/t.csv"


def test_columns_that_say_nothing_are_left_out() -> None:
    loads = shown_where(lambda rows: len(rows) > 1, number("load", subject_number("load")))
    spec = TableSpec("t", "T", (*COLUMNS, *loads), file=None)
    one, two = spec.build([finding("a", "50")]), spec.build([finding("a", "50"), finding("a", "75")])
    assert one is not None
    assert two is not None
    assert [column.key for column in one.columns] == ["policy", "95 % interval"]
    assert [row[2].order for row in two.rows] == [50.0, 75.0]
    assert two.file is None


def test_a_tone_of_the_study_comes_before_the_common_one() -> None:
    values = verdict()(finding("a", "50")), verdict({"slower": "higher"})(finding("a", "50"))
    assert [value.tone for value in values] == ["slower", "higher"]
    assert values[0].finding == "a/50"


def test_a_pivot_has_a_row_per_subject_and_na_where_nothing_was_measured() -> None:
    found = [finding("a", "50"), finding("b", "50"), finding("a", "75")]
    columns = (text("policy", shared(subject("policy"))), number("75", at("75", estimate("ratio", "signed"))))
    table = TableSpec("t", "T", columns).build(pivoted(found, ("policy",), lambda each: each.subject["load"]))
    assert table is not None
    assert [[value.text for value in row] for row in table.rows] == [["a", "+10 %"], ["b", "NA"]]


def test_what_is_not_there_is_na() -> None:
    assert estimate("mean")(finding("a", "50")).text == "NA"
    assert of(lambda _: None, estimate("ratio"))(finding("a", "50")).text == "NA"
