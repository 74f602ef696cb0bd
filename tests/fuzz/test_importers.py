"""Every importer on damaged files: a result, or an error that names the file and the next step.

`STEELYARD_FUZZ_SECONDS` is the time for each importer; without it a few examples are tried.
`STEELYARD_FUZZ_SEED` is the first seed. A failure prints the file that caused it.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, seed, settings

from fuzz.damage import files
from property.test_importers import GOLDEN, SEEDS
from steelyard.cli import execute

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

SECONDS: Final = float(os.environ.get("STEELYARD_FUZZ_SECONDS", "0"))
FIRST_SEED: Final = int(os.environ.get("STEELYARD_FUZZ_SEED", "1"))
FEW: Final = 40
MANY: Final = 400
LONGEST_S: Final = 30
MOST_BYTES: Final = 1 << 30
"""Memory that all imports of one process together may add; no file here is larger than 1 MB."""

RECODEX: Final = (
    b"""bare,single,1,cpu-0,exp/exp_float,65536,1,cpu,0.10230
bare,single,1,cpu-0,exp/exp_float,65536,2,cpu,0.2030
isolate,parallel-homogenous-taskset-multi,2,w10,bsearch/bsearch,65536_1048576,1,iso-wall,0.500
isolate,parallel-homogenous-taskset,2,w10,bsearch/bsearch,65536,1,start-wall,1524485924.123456789
""",
    b"""metric,workload,program_seconds,isolate_seconds
cpu,qsort.py,0.8587,0.8990
wall,qsort.py,0.9000,0.9400
""",
)
ANSWERS: Final = {0, 2, 5}


def parquet() -> bytes:
    table = pa.table({"run": [1, 1, 2], "value": [1.5, 2.5, float("nan")], "block": ["a", "a", "b"]})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def valid_files() -> dict[str, tuple[bytes, ...]]:
    found = {form: (content,) for form, content in SEEDS.items()}
    found["google-benchmark"] += ((GOLDEN / "google-benchmark.json").read_bytes(),)
    found["csv"] += (
        b"value;run\n1;1\n2,5;2\n",
        b"1.5\n2.5\n",
        b"run,iteration,value,phase\n1,1,2,warmup\n1,2,3,measure\n",
    )
    return {**found, "parquet": (parquet(),), "recodex": RECODEX}


class Hanging(Exception):  # noqa: N818 - what happened
    """An import took longer than any should."""


@contextlib.contextmanager
def in_time(limit_s: int) -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        message = f"longer than {limit_s} s"
        raise Hanging(message)

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit_s)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def outcome(form: str, content: bytes) -> None:
    """Import a file as a user does; what was imported can be analysed."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("file.parquet" if form == "parquet" else "file")
        result = Path(folder) / "result"
        path.write_bytes(content)
        verb = "csv" if form == "parquet" else form
        unit = ["--unit", "ms"] if verb == "csv" else []
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()), in_time(LONGEST_S):
            code = execute(["import", verb, str(path), *unit, "--out", str(result)])
            analysed = execute(["analyse", str(result)]) if code == 0 and verb != "recodex" else 0
        text = said.getvalue()
        assert code in ANSWERS, text
        assert analysed in {0, 6}, f"analyse: {analysed}: {text}"
        assert "Traceback" not in text
        if code:
            assert text.startswith("error: "), text
            assert "\nhint: " in text, text
            assert not result.exists()
        assert len(text) < 20_000, "an error is a sentence"


def one_round(form: str, number: int, examples: int) -> None:
    """Try some examples; the same number, the same examples."""

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(content=files(valid_files()[form]))
    def try_file(content: bytes) -> None:
        outcome(form, content)

    try_file()


@pytest.mark.timeout(0)
@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@pytest.mark.parametrize("form", sorted(valid_files()))
def test_damaged_files_get_an_answer(form: str) -> None:
    outcome(form, valid_files()[form][0])
    before = peak_bytes()
    began_s = time.monotonic()
    number = FIRST_SEED
    one_round(form, number, MANY if SECONDS else FEW)
    while time.monotonic() - began_s < SECONDS:
        number += 1
        one_round(form, number, MANY)
    assert peak_bytes() - before < MOST_BYTES
