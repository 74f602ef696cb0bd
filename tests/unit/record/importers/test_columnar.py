"""Tables of text that are read by column: the same as row by row, or left to the reader of rows."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError
from steelyard.record.importers import column_blocks, table
from steelyard.record.importers.columnar import ColumnarRuns
from steelyard.record.importers.foreign import ForeignFile, ForeignRun, Source
from steelyard.record.importers.reading import ReadOptions

ROLES = ("workload", "metric", "run", "iteration", "phase", "block", "exit_code", "size", "value")
ALL = {role: role for role in ROLES}


def read(text: str, columns: dict[str, str], unit: str = "ms") -> ForeignFile:
    """Read a table as the command line would."""
    source = Source(Path("t.csv"), text.encode(), table.EXPECTED)
    return table.read(source, ReadOptions(columns=columns, unit=unit))


def by_rows(text: str, columns: dict[str, str], unit: str = "ms") -> ForeignFile:
    """Read it row by row: a quoted heading keeps the other reader out."""
    return read(re.sub(r"^(\ufeff?)(\w+)", r'\1"\2"', text), columns, unit)


def is_columnar(found: ForeignFile) -> bool:
    """Whether a table was read by column."""
    return isinstance(found.table, ColumnarRuns)


def runs_of(found: ForeignFile) -> list[ForeignRun]:
    """Give the runs, however they were read."""
    return list(found.table or found.runs)


def same(one: ForeignFile, other: ForeignFile) -> bool:
    """Whether both have the same runs with the same sections, in the same order."""
    facts = [
        [
            (run.levels, run.block, run.exit_code, run.worker_label, list(run.sections))
            for run in runs_of(found)
        ]
        for found in (one, other)
    ]
    return facts[0] == facts[1] and one.notes == other.notes


ROW = st.tuples(
    st.sampled_from(["sort", "hash join", " a"]),
    st.sampled_from(["time", "alloc", ""]),
    st.integers(0, 3).map(str),
    st.integers(0, 999_999_999).map(str),
    st.sampled_from(["measure", "warmup"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["0", "1", "", "-3"]),
    st.sampled_from(["1", "64"]),
    st.one_of(
        st.floats(1e-60, 1e9).map(repr),
        st.decimals(0, 10**12, places=6).map("{:f}".format),
        st.sampled_from(["0", "5.", ".25", "1e3", "2.5E-7", "007", " 3.5 "]),
    ),
)


@given(st.lists(ROW, min_size=1, max_size=30), st.sampled_from(["ns", "us", "ms", "s", "events"]))
def test_a_table_read_by_column_is_what_its_rows_give(rows: list[tuple[str, ...]], unit: str) -> None:
    text = "\n".join(",".join(row) for row in (ROLES, *rows)) + "\n"
    found = read(text, ALL, unit)
    assert is_columnar(found)
    assert same(found, by_rows(text, ALL, unit))


SHORT = st.one_of(
    st.decimals(0, 10**7, places=6).map("{:f}".format),
    st.decimals(0, 10, places=12).map("{:f}".format),
    st.sampled_from(["0", "5.", ".25", "1e3", "2.5E-7", "1e-9", "1e22", "1.000000001e-7", "123456789e-14"]),
)


@given(st.lists(SHORT, min_size=1, max_size=5), st.sampled_from(["ns", "us", "ms", "s", "events"]))
def test_short_numbers_are_rounded_once(values: list[str], unit: str) -> None:
    text = "\n".join(["value", *values]) + "\n"
    found = read(text, {"value": "value"}, unit)
    assert is_columnar(found)
    assert same(found, by_rows(text, {"value": "value"}, unit))


def test_long_runs_that_take_turns_are_put_together() -> None:
    rows = [f"{'ab'[place // 200 % 2]},{place // 200},{place / 8}" for place in range(1000)]
    text = "\n".join(["workload,run,value", *rows]) + "\n"
    columns = {role: role for role in ("workload", "run", "value")}
    found = read(text, columns)
    assert isinstance(found.table, ColumnarRuns)
    places = np.array([0, 2, 4, 1, 3])
    written = pa.concat_tables(found.table.measurements(places, pa.array([f"{each}" for each in places])))
    runs = runs_of(by_rows(text, columns))
    expected = [
        (f"{place}", section.value, section.iteration) for place in places for section in runs[place].sections
    ]
    got = zip(*(written[name].to_pylist() for name in ("run_id", "value", "iteration")), strict=True)
    assert list(got) == expected


@settings(max_examples=25)
@given(st.lists(ROW, min_size=1, max_size=30), st.sampled_from(["run", "block", "size"]))
def test_where_a_part_of_a_file_ends_makes_no_difference(rows: list[tuple[str, ...]], key: str) -> None:
    text = "\n".join(",".join(row) for row in (ROLES, *rows)) + "\n"
    columns = {role: role for role in ("value", "workload", key)}
    with pytest.MonkeyPatch.context() as patch:
        # Longer than a row, and than the headings.
        patch.setattr(column_blocks, "_BLOCK_BYTES", 160)
        found = read(text, columns)
    assert isinstance(found.table, ColumnarRuns)
    assert same(found, read(text, columns))
    places = np.arange(len(runs_of(found)))[::-1]
    ids = pa.array([f"{place}" for place in places])
    written = pa.concat_tables(found.table.measurements(places, ids))
    expected = [
        (f"{place}", each.value, each.printed) for place in places for each in found.table[place].sections
    ]
    got = zip(*(written[name].to_pylist() for name in ("run_id", "value", "printed")), strict=True)
    assert list(got) == expected


@given(st.lists(st.sampled_from(["-0", "-0.0", "-1.5", "-2e3", "-0e1", "4"]), min_size=1, max_size=9))
def test_values_that_are_no_times_keep_their_signs_and_zero_has_none(values: list[str]) -> None:
    text = "\n".join(["value", *values]) + "\n"
    found = read(text, {"value": "value"}, "events")
    assert is_columnar(found)
    assert same(found, by_rows(text, {"value": "value"}, "events"))
    assert not any(math.copysign(1, each.value) < 0 for each in runs_of(found)[0].sections if each.value == 0)


def test_values_without_an_iteration_are_counted_for_each_metric() -> None:
    text = "run,metric,value\n1,a,5\n2,a,6\n1,b,7\n1,a,8\n"
    columns = {role: role for role in ("run", "metric", "value")}
    found = read(text, columns)
    assert is_columnar(found)
    assert [each.iteration for each in runs_of(found)[0].sections] == [1, 1, 2]
    assert same(found, by_rows(text, columns))


@pytest.mark.parametrize(
    "text",
    [
        'value\n"1"\n2\n',
        "value\n1\n\n2\n",
        "value\r\n1\r\n2\r\n",
        "\ufeffvalue\n1\n2\n",
        "value;other\n1;2\n3;4",
        "value,name\n1,caf\u00e9\n",
        "value,a\n1,2\n,\n3,4\n",
        "value\n-0\n",
        "value\n+1\n",
    ],
)
def test_whatever_a_table_looks_like_both_readers_agree(text: str) -> None:
    columns = {"value": "value"}
    assert [[each.value for each in run.sections] for run in runs_of(read(text, columns))] == [
        [each.value for each in run.sections] for run in runs_of(by_rows(text, columns))
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("value\n1\nx\n", "line 3: value is `x`"),
        ("value\n1\n-2\n", "line 3: value is `-2`; expected a number from 0"),
        ("value,iteration\n1,1\n2,one\n", "line 3: iteration is `one`"),
        ("value,phase\n1,measure\n2,cold\n", "line 3: phase is `cold`"),
        ("value,a\n1,2\n3,4,5\n", "line 3: 3 fields; expected 2"),
        ("value\n1\nnan\n", "line 3: value is `nan`"),
        ("value\n1\n1e999\n", "line 3: value is `1e999`"),
        ("value\n1\n1_0\n", "line 3: value is `1_0`"),
    ],
)
def test_what_is_wrong_in_a_row_is_named_with_its_line(text: str, said: str) -> None:
    roles = {
        name: name for name in ("value", "iteration", "phase") if name in text.split("\n", maxsplit=1)[0]
    }
    with pytest.raises(DataError, match="has 1 problem") as raised:
        read(text, roles)
    assert said in raised.value.message


def test_a_number_is_rounded_once() -> None:
    # Through a double, 0.1 + 0.7 of seconds in ns would be rounded twice.
    text = "value\n" + "\n".join(f"0.{number:017d}" for number in range(1, 2000, 7)) + "\n"
    assert same(read(text, {"value": "value"}, "s"), by_rows(text, {"value": "value"}, "s"))


@pytest.mark.parametrize("place", [0, 3, 400, 799])
@pytest.mark.parametrize("odd", ['"hash join",1', "h\u00e4sh,1", "h\x0bsh,1", "h\rsh,1"])
def test_nothing_strange_is_read_by_column_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch, place: int, odd: str
) -> None:
    monkeypatch.setattr(column_blocks, "_BLOCK_BYTES", 256)
    rows = ["sort,1.5", "scan,2.5"] * 400
    rows[place] = odd
    text = "\n".join(["workload,value", *rows, ""])
    columns = {"workload": "workload", "value": "value"}
    try:
        expected = by_rows(text, columns)
    except DataError as error:
        with pytest.raises(DataError, match=re.escape(error.message)):
            read(text, columns)
        return
    found = read(text, columns)
    assert not is_columnar(found)
    assert same(found, expected)
