"""JSON lines that are read by column: the same as line by line, or left to the reader of lines."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError
from steelyard.record.importers import column_blocks, point_runs
from steelyard.record.importers.column_blocks import PlainText
from steelyard.record.importers.foreign import ForeignFile, Section, Source
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

OPTIONS: Final = ReadOptions()
K6: Final = (
    '{"type":"Metric","data":{"name":"own","type":"trend","contains":"time"},"metric":"own"}',
    '{"metric":"http_reqs","type":"Point","data":{"time":"t","value":1,"tags":{"name":"A","scenario":"s"}}}',
    '{"metric":"own","type":"Point","data":{"value":1.50,"tags":{"url":"B"}}}',
    '{"metric":"own","type":"Point","data":{"value":0.25,"tags":{"name":"","url":"A","scenario":"s"}}}',
    '{"metric":"checks","type":"Point","data":{"value":0,"tags":{"group":""}}}',
    '{"metric":"vus","type":"Point","data":{"value":3}}',
)
REQUESTS: Final = (
    ("home", 200, 20_525_166, "http://h/"),
    ("", 204, 7, "http://h/a?b=1&c=2"),
    ("home", 500, 9, "http://h/"),
)
VEGETA: Final = tuple(
    json.dumps(
        {"attack": attack, "seq": 0, "code": code, "latency": latency, "bytes_out": 0, "bytes_in": 13}
        | {"error": "", "method": "GET", "url": url, "headers": {"A": ["1"], "B": ["2"]}}
    )
    for attack, code, latency, url in REQUESTS
)
LINES: Final = {"k6": K6, "vegeta": VEGETA}


def foreign(form: str) -> ForeignImporter:
    found = importer(form)
    assert isinstance(found, ForeignImporter)
    return found


def by_column(form: str, content: bytes) -> ForeignFile | None:
    """Read as it comes, by column if it can be."""
    read_plain = foreign(form).read_plain
    assert read_plain is not None
    return read_plain(Source(Path("t.json"), b"", ""), PlainText(io.BytesIO(content)), OPTIONS)


def by_line(form: str, content: bytes) -> ForeignFile:
    """Read line by line."""
    return foreign(form).read(Source(Path("t.json"), content.removeprefix(b"\xef\xbb\xbf"), ""), OPTIONS)


def facts(found: ForeignFile) -> list[Any]:
    """Give all that a file tells, in order; a value to the last bit."""
    runs = [
        [run.levels, run.exit_code, run.block, run.worker_label, [_fields(each) for each in run.sections]]
        for run in found.table or found.runs
    ]
    return [found.form, found.facts, found.notes, found.published, runs]


def _fields(section: Section) -> tuple[Any, ...]:
    value = np.float64(section.value).tobytes()
    return section.metric, section.unit, value, section.iteration, section.phase, section.printed


def check(form: str, content: bytes) -> bool:
    """Compare both readers; give whether the file was read by column."""
    found = by_column(form, content)
    if found is None:
        return False
    assert facts(found) == facts(by_line(form, content))
    return True


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few lines be several blocks and tables."""
    monkeypatch.setattr(column_blocks, "_JSON_BYTES", 512)
    monkeypatch.setattr(point_runs, "_ROWS", 6)


@pytest.mark.parametrize("form", LINES)
def test_lines_read_by_column_are_what_each_gives(form: str) -> None:
    for end in ("\n", "\r\n", "\n\n", "\n \t\n", "  \n"):
        assert check(form, end.join(LINES[form] * 7).encode())
        assert check(form, b"\xef\xbb\xbf" + end.join((*LINES[form] * 7, "")).encode())


ODD: Final[dict[str, Callable[[str], str]]] = {
    "a member is missing": lambda line: line.replace('"value"', '"other"').replace('"latency"', '"other"'),
    "null": lambda line: line.replace('"tags":{', '"tags":null,"x":{').replace('"home"', "null"),
    "no number": lambda line: line.replace('"value":', '"value":"1"').replace('"latency": ', '"latency": "x'),
    "NaN": lambda line: line.replace(":1.50", ":NaN").replace(": 7,", ": NaN,"),
    "infinity": lambda line: line.replace(":1.50", ":-Infinity").replace(": 7,", ": Infinity,"),
    "huge whole number": lambda line: line.replace(":1.50", ":" + "9" * 60).replace(": 7,", f": {2**70},"),
    "thousands of digits": lambda line: line.replace(":1.50", ":" + "9" * 5000),
    "too large": lambda line: line.replace(":1.50", ":1e200").replace(": 7,", ": 7e60,"),
    "twice, equal": lambda line: line.replace("{", '{"twin":1,"twin":1,', 1),
    "twice, other": lambda line: line.replace("{", '{"twin":1,"twin":2,', 1),
    "twice, escaped": lambda line: line.replace("{", '{"twin":1,"tw\\u0069n":2,', 1),
    "twice below": lambda line: line.replace('"group":""', '"group":"","group":"x"').replace('"B"', '"A"'),
    "half a character": lambda line: line.replace("{", '{"x":"\\ud800",', 1),
    "both halves": lambda line: line.replace("{", '{"x":"\\ud83d\\ude00",', 1),
    "line separator": lambda line: line.replace("{", '{"x":"\u2028",', 1),
    "next line": lambda line: line.replace("{", '{"x":"\x85",', 1),
    "control character": lambda line: line.replace("{", '{"x":"\x01",', 1),
    "a return inside": lambda line: line.replace(",", ",\r", 1),
    "form feed": lambda line: "\x0c" + line,
    "deep": lambda line: line.replace("{", '{"x":' + "[" * 100 + "]" * 100 + ",", 1),
    "too deep": lambda line: line.replace("{", '{"x":' + "[" * 100_000 + "]" * 100_000 + ",", 1),
    "two on a line": lambda line: line + line,
    "cut": lambda line: line[: len(line) // 2],
    "more behind": lambda line: line + " x",
    "a list": lambda line: f"[{line}]",
    "single quotes": lambda line: line.replace('"', "'"),
    "leading zero": lambda line: line.replace(":1.50", ":01.50").replace(": 7,", ": 07,"),
    "blank name": lambda line: line.replace('"own"', '" "').replace('"GET"', '" "'),
    "number for a tag": lambda line: line.replace('"url":"B"', '"url":7').replace('"home"', "7"),
    "a tag that is a list": lambda line: line.replace('"url":"B"', '"url":["B"]').replace('"home"', "[]"),
    "tags are a text": lambda line: line.replace('"tags":{"url":"B"}', '"tags":"B"'),
    "data is a list": lambda line: line.replace('"data":{', '"data":[{').replace("}}}", "}}]}"),
    "a decimal code": lambda line: line.replace("204", "204.0").replace(":1.50", ":15e-1"),
    "negative": lambda line: line.replace(":1.50", ":-1.5").replace(": 7,", ": -7,"),
    "minus zero": lambda line: line.replace(":1.50", ":-0.0").replace(": 7,", ": -0,"),
    "exponents": lambda line: line.replace(":1.50", ":6.3e-05").replace(":0.25", ":1E+2"),
    "tiny": lambda line: line.replace(":1.50", ":0.0000001").replace(":0.25", ":0.000000"),
    "many digits": lambda line: line.replace(":1.50", ":0.1234567890123456789012345"),
    "a sum to be rounded": lambda line: line.replace('"value":1,', f'"value":1.{"0" * 29}1,'),
    "half of a sum": lambda line: line.replace('"value":1,', '"value":0.5,'),
    "escapes": lambda line: line.replace('"B"', '"\\u00e9\\n\\/\\"\\\\"').replace("&", "\\u0026"),
    "letters": lambda line: line.replace('"B"', '"\u00e9 \U0001f600"').replace("a?b", "\u00e9"),
    "redefined": lambda line: f"{line}\n{K6[0].replace('trend', 'counter')}",
    "defined again": lambda line: f"{line}\n{K6[0]}",
    "only a definition": lambda _: K6[0],
    "a kind nobody knows": lambda line: line.replace('"trend"', '"heap"'),
    "a summary's first line": lambda line: '{"latencies": {}}' if '"seq"' in line else '{"root_group": {}}',
}


@pytest.mark.parametrize("form", LINES)
@pytest.mark.parametrize("what", ODD)
def test_odd_lines_are_what_a_reader_of_lines_takes_them_for(form: str, what: str) -> None:
    for end in ("", "\n"):
        check(form, "\n".join([*LINES[form] * 3, *map(ODD[what], LINES[form])]).encode() + end.encode())
        check(form, "\n".join([*map(ODD[what], LINES[form]), *LINES[form] * 3]).encode())
        check(form, "\n".join(map(ODD[what], LINES[form])).encode())


@pytest.mark.parametrize(
    "what", ["exponents", "tiny", "escapes", "letters", "half of a sum", "defined again", "null", "negative"]
)
def test_usual_lines_are_read_by_column(what: str) -> None:
    assert check("k6", "\n".join(map(ODD[what], K6 * 3)).encode())


@pytest.mark.parametrize("form", LINES)
@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}", b"{}\n{}", b"null\nnull", b"\x00", b"\xff\xfe", b"a,b\n1,2\n", b"{\n}\n"]
)
def test_no_lines_of_objects_are_left_to_the_reader_of_lines(form: str, content: bytes) -> None:
    assert by_column(form, content) is None


@pytest.mark.parametrize("form", LINES)
@given(data=st.data())
@settings(max_examples=60)
def test_any_lines_and_damage(form: str, data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from(LINES[form]), min_size=1, max_size=25))
    for place in data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=2)):
        lines[place] = ODD[data.draw(st.sampled_from(sorted(ODD)))](lines[place])
    content = bytearray("\n".join(lines).encode())
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=2))
    check(form, bytes(content))


NUMBERS: Final = st.one_of(
    st.floats(0, 1e9).map(repr),
    st.floats(-1e3, 1e90).map(repr),
    st.decimals(0, 10**6, places=9).map("{:f}".format),
    st.integers(0, 10**19).map(str),
)


@given(st.lists(st.tuples(st.integers(0, len(K6) - 2), NUMBERS), min_size=2, max_size=40))
@settings(max_examples=60)
def test_any_numbers_of_points(points: list[tuple[int, str]]) -> None:
    lines = []
    for place, number in points:
        point = json.loads(K6[place + 1])
        point["data"]["value"] = "NUMBER"
        lines.append(json.dumps(point).replace('"NUMBER"', number))
    check("k6", "\n".join(lines).encode())


def _tables(result: Path) -> list[pa.Table]:
    return [pq.read_table(result / name) for name in ("runs.parquet", "measurements/values.parquet")]


@pytest.mark.parametrize("form", LINES)
def test_results_are_the_same_packed_or_read_line_by_line(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "\n".join(LINES[form] * 9).encode()
    (tmp_path / "t.json").write_bytes(content)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(content))
    foreign(form).import_file(tmp_path / "t.json", tmp_path / "plain")
    foreign(form).import_file(tmp_path / "t.json.gz", tmp_path / "packed")
    monkeypatch.setattr(column_blocks, "_json_columns", _refused)
    foreign(form).import_file(tmp_path / "t.json", tmp_path / "lines")
    plain, packed, lines = (_tables(tmp_path / name) for name in ("plain", "packed", "lines"))
    assert plain == lines
    assert plain[1].drop_columns("run_id") == packed[1].drop_columns("run_id")


def _refused(_content: bytes, _paths: object) -> None:
    raise column_blocks.NotPlainError


@pytest.mark.parametrize("form", LINES)
def test_what_is_wrong_is_named_as_ever(form: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text("\n".join((*LINES[form] * 9, LINES[form][0][:50])))
    with pytest.raises(DataError, match=rf"t.json`, line {9 * len(LINES[form]) + 1}, column \d+: not JSON"):
        foreign(form).import_file(tmp_path / "t.json", tmp_path / "r")
    assert not (tmp_path / "r").exists()
