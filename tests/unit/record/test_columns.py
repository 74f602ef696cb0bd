from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError, SteelyardError, UsageError
from steelyard.record.columns import read_columns

if TYPE_CHECKING:
    from pathlib import Path

WANTED = [[1.0, 2.0], [10.5, 20.0]]


@pytest.mark.parametrize(
    ("text", "x", "y"),
    [
        ("size,time\n1,10.5\n2,20\n", "size", "time"),
        ("time;size\n10.5;1\n20;2\n", "size", "time"),
        ("# made by hand\nsize\ttime\n1\t10.5\n\n2\t20\n", "1", "2"),
        ("1 10.5\n2 20\n", "1", "2"),
        ("\ufeffsize | time\n1 | 10.5\n2 | 20\n", "size", "time"),
        ("# SkaMPI\n# begin\ncount= 1 1 10.5 0.2 32\ncount= 2 2 20 0.1 32\n# end\n", "1", "3"),
        ('size,"the ""time"""\n1,10.5\n2,20\n', "size", 'the "time"'),
    ],
)
def test_text_files_are_read_as_they_are(tmp_path: Path, text: str, x: str, y: str) -> None:
    file = tmp_path / "data.txt"
    file.write_text(text, encoding="utf-8")
    found = read_columns(file, x, y)
    assert [found.x.tolist(), found.y.tolist()] == WANTED


def test_rows_are_chosen_by_a_column(tmp_path: Path) -> None:
    file = tmp_path / "data.csv"
    file.write_text("MPI_Send,1,10.5\nMPI_Recv,7,7\nMPI_Send,2,20\n")
    found = read_columns(file, "2", "3", where={"1": "MPI_Send"})
    assert [found.x.tolist(), found.y.tolist()] == WANTED
    with pytest.raises(DataError, match="no rows"):
        read_columns(file, "2", "3", where={"1": "MPI_Test"})


def test_parquet_is_read(tmp_path: Path) -> None:
    file = tmp_path / "data.parquet"
    table = {"size": [1, 9, 2], "time": [10.5, 9.0, 20.0], "op": ["a", "b", "a"]}
    pq.write_table(pa.table(table), file)
    found = read_columns(file, "size", "time", where={"op": "a"})
    assert [found.x.tolist(), found.y.tolist()] == WANTED
    with pytest.raises(UsageError, match="no column `speed`; columns: `size`, `time`, `op`"):
        read_columns(file, "size", "speed")
    with pytest.raises(DataError, match="contains string"):
        read_columns(file, "size", "op")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("size,time\n1,2\n3,x\n", "line 3: `time` is `x`"),
        ("size,time\n1,2\n3,nan\n", "line 3: `time` is `nan`"),
        ("size,time\n\n1,2\n3\n", "line 4 has 1 columns, 2 needed"),
        ("", "no rows"),
        ("size,time\n", "no rows"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "data.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=words):
        read_columns(file, "size", "time")


def test_missing_things_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_columns(tmp_path / "absent.csv", "1", "2")
    file = tmp_path / "data.csv"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not a text file"):
        read_columns(file, "1", "2")
    file.write_text("1,2\n")
    with pytest.raises(UsageError, match="no header; columns: 1 to 2"):
        read_columns(file, "size", "2")
    (tmp_path / "data.parquet").write_text("no parquet")
    with pytest.raises(DataError, match="as a Parquet file"):
        read_columns(tmp_path / "data.parquet", "1", "2")


@given(st.text(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
def test_any_text_gives_columns_or_an_error_of_ours(tmp_path: Path, text: str) -> None:
    file = tmp_path / "data.csv"
    file.write_text(text, encoding="utf-8", errors="replace")
    try:
        found = read_columns(file, "1", "2")
    except SteelyardError:
        return
    assert found.x.size == found.y.size > 0


def test_columns_of_one_name_are_refused_and_may_be_numbered(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("size,time,time\n1,2,3\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"cannot choose a column `time` of .*: columns 2, 3 have this name"):
        read_columns(path, "size", "time")
    assert read_columns(path, "size", "3").y.tolist() == [3.0]


@pytest.mark.parametrize("text", ["size,time\n1,10,5\n", "size,time\n1_000,2\n"])
def test_decimal_commas_between_commas_and_marks_in_numbers_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="line 2"):
        read_columns(tmp_path / "a.csv", "size", "time")
