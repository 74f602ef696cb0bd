"""What is recorded is read back as it was."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.design.blocks import draw_batches
from steelyard.record.schema import METRICS, measurements_schema, runs_schema, table_metadata
from steelyard.record.table_file import TableWriter, read_table
from steelyard.studies.stability.export_csv import CsvFormat, export_csv
from steelyard.studies.stability.recodex import IMPORTER

if TYPE_CHECKING:
    from pathlib import Path


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.none() | st.integers(-(2**63), 2**63 - 1)
SMALL = st.integers(0, 2**31 - 1)
METADATA = table_metadata("steelyard/runs/1", "plan", "generation")

RUNS = st.fixed_dictionaries(
    {
        **dict.fromkeys(("run_id", "study", "host_id", "isolation", "status"), TEXTS),
        **dict.fromkeys(("cell", "block", "batch", "attempt", "position", "worker", "iteration"), SMALL),
        **dict.fromkeys(("start_ns", "end_ns", "start_utc_ns", *METRICS), INTEGERS),
        **dict.fromkeys(("message", "worker_label", "limit", "wall_ns_source"), st.none() | TEXTS),
        "flags": st.none() | st.lists(TEXTS, max_size=3),
    }
)
MEASUREMENTS = st.fixed_dictionaries(
    {
        **dict.fromkeys(("run_id", "phase", "metric", "unit"), TEXTS),
        "iteration": SMALL,
        "value": st.floats(allow_nan=False),
        "printed": st.none() | TEXTS,
    }
)


@settings(max_examples=40, deadline=None)
@given(st.lists(RUNS, max_size=8))
def test_runs_survive_parquet(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    path = tmp_path_factory.getbasetemp() / "runs.parquet"
    schema = runs_schema(["isolation"], METADATA)
    with TableWriter(path, schema) as writer:
        for row in rows:
            writer.add(row)
    expected = [{name: row.get(name) for name in schema.names} for row in rows]
    found = read_table(path, "steelyard/runs/1")
    assert found.to_pylist() == expected
    assert found.schema.equals(schema)
    assert found.schema.metadata == METADATA
    for field in schema:
        assert field.metadata.items() <= found.schema.field(field.name).metadata.items()


@settings(max_examples=60, deadline=None)
@given(st.lists(MEASUREMENTS, max_size=20))
def test_measurements_survive_parquet(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "values.parquet"
    with TableWriter(path, measurements_schema(METADATA)) as writer:
        for row in rows:
            writer.add(row)
    assert read_table(path, "steelyard/runs/1").to_pylist() == [
        {name: row[name] for name in measurements_schema({}).names} for row in rows
    ]


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6)
SECONDS = st.decimals(0, 10**7, allow_nan=False, places=7).map(lambda value: f"{value:f}") | st.sampled_from(
    ["0", "1.", "0.10", "1e-05", "12.3400"]
)
KEYS = st.tuples(
    st.sampled_from(["bare", "isolate", "docker-isolate"]),
    st.sampled_from(
        ["single", "single-noht", "parallel-homogenous-taskset", "parallel-homogenous-taskset-multi"]
    ),
    st.integers(1, 40),
    NAMES,
    NAMES,
    st.sampled_from(["", "65536", "65536_1048576"]),
    st.integers(0, 200),
    st.sampled_from(["cpu", "wall", "iso-cpu", "iso-wall", "start-wall"]),
)


@pytest.mark.long("many tables through every format")
@settings(max_examples=60, deadline=None)
@given(st.dictionaries(KEYS, SECONDS, min_size=1, max_size=25))
def test_nine_columns_survive_import_and_export(
    tmp_path_factory: pytest.TempPathFactory, values: dict[tuple[Any, ...], str]
) -> None:
    folder: Path = tmp_path_factory.mktemp("import")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([*key, value] for key, value in values.items())
    (folder / "in.csv").write_text(out.getvalue(), encoding="utf-8")
    IMPORTER.import_file(folder / "in.csv", folder / "result")
    again = io.StringIO()
    export_csv(folder / "result", CsvFormat.RECODEX, again)
    assert Counter(again.getvalue().splitlines()) == Counter(out.getvalue().splitlines())


@settings(max_examples=100)
@given(st.integers(1, 60), st.integers(1, 6), st.integers(0, 2**63 - 1))
def test_an_order_is_a_permutation_of_the_cells_in_every_block(cells: int, blocks: int, seed: int) -> None:
    batches = draw_batches(range(cells), blocks=blocks, seed=seed)
    assert [batch.number for batch in batches] == list(range(cells * blocks))
    for block in range(blocks):
        assert sorted(batch.cell for batch in batches if batch.block == block) == list(range(cells))
    assert batches == draw_batches(range(cells), blocks=blocks, seed=seed)
