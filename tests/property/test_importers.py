"""Importers on mutated, truncated and random files: a result or the documented error."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.errors import DataError
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.seal import altered_tables

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN: Final = Path(__file__).resolve().parents[1] / "golden/importers"
JMH: Final = [
    {
        "jmhVersion": "1.37",
        "benchmark": "b",
        "mode": "avgt",
        "threads": 1,
        "params": {"n": "1"},
        "primaryMetric": {
            "score": 1.5,
            "scoreError": "NaN",
            "scoreUnit": "ms/op",
            "rawData": [[1.0, 2.0], [1.5]],
        },
        "secondaryMetrics": {"gc": {"score": 1, "scoreUnit": "MB/s", "rawData": [[1], [2]]}},
    }
]
DOTNET: Final = json.loads((GOLDEN / "harnesses/benchmark-dotnet.json").read_bytes())
del DOTNET["Benchmarks"][1:]
SEEDS: Final[dict[str, bytes]] = {
    "jmh": json.dumps(JMH).encode(),
    "hyperfine": (GOLDEN / "hyperfine.json").read_bytes(),
    "google-benchmark": json.dumps(
        json.loads((GOLDEN / "google-benchmark.json").read_bytes()), separators=(",", ":")
    ).encode(),
    "criterion": (GOLDEN / "criterion/sum/iter/64/new/sample.json").read_bytes(),
    "pyperf": (GOLDEN / "pyperf.json").read_bytes(),
    "pytest-benchmark": (GOLDEN / "pytest-benchmark.json").read_bytes(),
    **{
        form: (GOLDEN / "harnesses" / name).read_bytes()
        for form, name in {
            "go-bench": "go-bench/run-1.txt",
            "libtest": "libtest.txt",
            "gungraun": "gungraun/mixing/mixing/bench_mix.short/summary.json",
            "catch2": "catch2.xml",
            "nanobench": "nanobench.json",
            "tinybench": "tinybench.json",
            "vitest": "vitest.json",
            "benchmark-js": "benchmark-js.json",
            "asv": "asv/bench/2e82f51b-virtualenv-py3.11.json",
            "julia": "julia.json",
        }.items()
    },
    "benchmark-dotnet": json.dumps(DOTNET).encode(),
    "moobench": b"0;30360\n0;18140\n1;13792\n",
    "skampi": b'# begin result "P"\ncount= 1        1     109.2       0.2       32     106.7     107.7\n',
    "mpi": b"MPI_Send,765921,32.477584,5.012126e-03\nMPI_Recv,26,32.477584,8.841378e-03\n",
    "zoo": b"1024 MPI_Send 0.5 0.51 MPI_Recv 0.49 0.52\n7 MPI_Send 0.6 0.61 MPI_Recv 0.6 0.61\n",
    "plogp": b"# size os or g\n0: 5.1 6.2 9\n1024: 5.3 6.9 12.5\n",
    "messages": b"seq,op,size,start0,end0,start1,end1\n"
    b"0,ping,26,541,546,540,552\n0,pong,26,546,569,552,557\n1,send,7,600,610,590,620\n",
    "packets": b"M,n,W,U,D,L,S,Speedup\n2000,1,1000,t,32,nan,L,0.89233 \n2000,2,1000,f,32,p,A,1.75431\n",
    "csv": b"run,value,block\n1,2.5,a\n2,3.5,b\n",
}
OPTIONS: Final = {
    "csv": ReadOptions(unit="ms"),
    "plogp": ReadOptions(unit="us"),
    "messages": ReadOptions(unit="ns"),
}
ODD: Final = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        10**30,
        1e308,
        "",
        "NaN",
        "\x00",
        "\u00e9",
        "\ud800",
        [],
        {},
        [[]],
        {"name": 1},
        [1, "x"],
    ]
)


def outcome(form: str, content: bytes) -> None:
    """Import some bytes; anything but a sealed result or a `DataError` is a failure."""
    found = importer(form)
    assert isinstance(found, ForeignImporter)
    with TemporaryDirectory() as folder:
        path, result = Path(folder) / "file", Path(folder) / "result"
        path.write_bytes(content)
        refusal = None
        try:
            summary = found.import_files([path], result, OPTIONS.get(form))
        except DataError as error:
            refusal = error
        if refusal is None:
            assert summary.measurements > 0
            assert altered_tables(result) == []
        else:
            assert str(path) in refusal.message
            assert refusal.hint
            assert not result.exists()


@pytest.mark.parametrize("form", SEEDS)
@given(content=st.binary(max_size=200))
@settings(max_examples=25, deadline=None)
def test_random_bytes(form: str, content: bytes) -> None:
    outcome(form, content)


@pytest.mark.parametrize("form", SEEDS)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_truncated_and_overwritten_files(form: str, data: st.DataObject) -> None:
    content = bytearray(SEEDS[form])
    for _ in range(data.draw(st.integers(0, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
        if not content:
            break
    outcome(form, bytes(content[: data.draw(st.integers(0, len(content)))]))


@pytest.mark.parametrize("form", [form for form, seed in SEEDS.items() if seed.lstrip()[:1] in b"[{"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_json_with_values_replaced_or_removed(form: str, data: st.DataObject) -> None:
    document = json.loads(SEEDS[form])
    for _ in range(data.draw(st.integers(1, 3))):
        document = mutated(document, data.draw)
    outcome(form, json.dumps(document).encode())


def mutated(value: object, draw: Callable[[st.SearchStrategy[object]], object]) -> object:
    """Replace or remove one value somewhere inside."""
    if not value or not isinstance(value, dict | list) or not draw(st.integers(0, 5)):
        return draw(ODD)
    if isinstance(value, dict):
        name = draw(st.sampled_from(sorted(value)))
        if not draw(st.integers(0, 5)):
            return {key: part for key, part in value.items() if key != name}
        return {key: mutated(part, draw) if key == name else part for key, part in value.items()}
    place = draw(st.integers(0, len(value) - 1))
    if not draw(st.integers(0, 5)):
        return value[:place] + value[place + 1 :]  # type: ignore[operator]
    return [mutated(part, draw) if at == place else part for at, part in enumerate(value)]
