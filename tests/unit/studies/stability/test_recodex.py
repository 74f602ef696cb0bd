from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import pytest

from steelyard.errors import DataError, UsageError
from steelyard.model.plan import read_plan
from steelyard.record.importers.interface import importer
from steelyard.record.provenance import read_provenance
from steelyard.record.seal import altered_tables
from steelyard.record.tables import read_measurements, read_runs
from steelyard.studies.stability.export_csv import CsvFormat, export_csv
from steelyard.studies.stability.recodex import IMPORTER, join_setup, split_setup

RECOVERED = Path(__file__).resolve().parents[5] / "shared/data/stability"

NINE = """\
bare,single,1,cpu-0,exp/exp_float,65536,1,cpu,0.10230
bare,single,1,cpu-0,exp/exp_float,65536,10,cpu,0.1
bare,single,1,cpu-0,exp/exp_float,65536,2,cpu,0.2030
isolate,parallel-homogenous-taskset-multi,2,w10,bsearch/bsearch,65536_1048576,1,iso-wall,0.500
isolate,parallel-homogenous-taskset-multi,2,w10,bsearch/bsearch,65536_1048576,1,wall,0.4991
isolate,parallel-homogenous-taskset-multi,2,w9,bsearch/bsearch,65536_1048576,1,start-wall,1524485924.123456789
isolate,parallel-synth-cpu,10,0,bsearch/bsearch,65536_1048576,1,iso-cpu,1.5e-05
"""

PAIRED = """\
metric,workload,program_seconds,isolate_seconds
cpu,qsort.py,0.8587,0.8990
cpu,qsort.py,0.8587,0.8990
wall,qsort.py,0.9000,0.9400
cpu,bsearch,0.3000,0.3020
"""


def imported(folder: Path, text: str) -> Path:
    source = folder / "timings.csv"
    source.write_text(text, encoding="utf-8")
    IMPORTER.import_file(source, folder / "result")
    return folder / "result"


def complaint(folder: Path, content: bytes) -> str:
    source = folder / "timings.csv"
    source.write_bytes(content)
    with pytest.raises(DataError) as caught:
        IMPORTER.import_file(source, folder / "result")
    assert str(source) in caught.value.message
    assert caught.value.hint
    assert not (folder / "result").exists()
    return caught.value.message


def exported(result: Path) -> Counter[str]:
    out = io.StringIO()
    export_csv(result, CsvFormat.RECODEX, out)
    return Counter(out.getvalue().splitlines())


def test_import_then_export_is_identity(tmp_path: Path) -> None:
    assert exported(imported(tmp_path, NINE)) == Counter(NINE.splitlines())


def test_values_keep_their_digits_and_their_seconds(tmp_path: Path) -> None:
    table = read_measurements(imported(tmp_path, NINE)).to_pylist()
    first = table[0]
    assert (first["metric"], first["value"], first["unit"], first["printed"]) == (
        "cpu",
        0.1023,
        "s",
        "0.10230",
    )


def test_iterations_are_numbers_and_workers_sort_by_their_numbers(tmp_path: Path) -> None:
    runs = read_runs(imported(tmp_path, NINE)).to_pylist()
    assert [run["iteration"] for run in runs if run["isolation"] == "bare"] == [1, 2, 10]
    pinned = [(run["worker"], run["worker_label"]) for run in runs if run["affinity"] == "taskset-multi"]
    assert pinned == [(0, "w9"), (1, "w10")]


def test_the_start_stamp_is_exact(tmp_path: Path) -> None:
    starts = [run["start_utc_ns"] for run in read_runs(imported(tmp_path, NINE)).to_pylist()]
    assert 1_524_485_924_123_456_789 in starts


def test_the_affinity_becomes_a_factor_and_absent_combinations_are_missing_cells(tmp_path: Path) -> None:
    plan = read_plan(imported(tmp_path, NINE) / "plan.json")
    assert plan.factors["affinity"] == ("none", "taskset-multi")
    assert plan.factors["setup_size"] == ("1", "2", "10")
    present = [cell for cell in plan.cells if cell.missing is None]
    assert len(present) == 3
    assert len(plan.cells) == 2 * 3 * 2 * 2
    assert {cell.missing for cell in plan.cells} == {None, "not in the imported file"}
    synthetic = next(cell for cell in present if cell.levels["setup_type"] == "parallel-synth-cpu")
    assert synthetic.execution is not None
    assert synthetic.execution.neighbours is not None
    assert (synthetic.execution.workers, synthetic.execution.neighbours.count) == (1, 9)
    assert plan.options["origin"] == "recodex"


def test_provenance_names_the_file_and_its_hash(tmp_path: Path) -> None:
    provenance = read_provenance(imported(tmp_path, NINE))
    assert provenance.origin is not None
    assert provenance.origin.form == "nine-columns"
    assert provenance.origin.byte_count == len(NINE)
    assert set(provenance.tables) >= {"runs.parquet", "measurements/values.parquet", "plan.json"}
    assert provenance.sessions[0].ended_utc is not None


def test_the_same_import_again_is_the_same_and_another_one_is_refused(tmp_path: Path) -> None:
    result = imported(tmp_path, NINE)
    before = (result / "runs.parquet").read_bytes()
    imported(tmp_path, NINE)
    assert (result / "runs.parquet").read_bytes() == before
    with pytest.raises(DataError, match="is not empty and contains another result"):
        imported(tmp_path, NINE.replace("0.1\n", "0.4\n"))


def test_a_byte_order_mark_line_ends_of_windows_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    text = "\ufeff" + NINE.replace("\n", "\r\n") + "\r\n\r\n"
    assert exported(imported(tmp_path, text)) == Counter(NINE.splitlines())


def test_pairs_are_imported_as_isolate_against_the_program(tmp_path: Path) -> None:
    result = imported(tmp_path, PAIRED)
    runs = read_runs(result).to_pylist()
    assert {run["isolation"] for run in runs} == {"isolate"}
    assert {run["setup_type"] for run in runs} == {"unstated"}
    rows = [(row["run_id"], row["metric"], row["printed"]) for row in read_measurements(result).to_pylist()]
    assert [row[1:] for row in rows[:4]] == [("cpu", "0.8587"), ("outside-cpu", "0.8990")] * 2
    assert len({row[0] for row in rows}) == 4, "each pair is a run of its own, equal pairs too"
    assert {row[1] for row in rows} == {"cpu", "outside-cpu", "wall", "outside-wall"}
    assert len(read_provenance(result).notes) == 2


def test_every_problem_is_listed_with_its_line_and_what_was_expected(tmp_path: Path) -> None:
    good = "bare,single,1,0,w,1,{},cpu,0.5\n"
    text = (
        good.format(1)
        + "bare,single,1,0,w,1,2,cpu\n"
        + "bare,single,1,0,w,1,3,cpu,fast\n"
        + "bare,single,1,0,w,1,4,clock,0.5\n"
        + "bare,single,1,0,w,1,5,cpu,-0.5\n"
        + good.format("01")
        + ",single,0,0,w,1,x,cpu,nan\n"
    )
    message = complaint(tmp_path, text.encode())
    for part in (
        "has 6 problems",
        "line 2: 8 columns; expected 9",
        "line 3: value `fast` is not a number; expected seconds, 0 or more",
        "line 4: metric is `clock`; expected one of cpu, wall, iso-cpu, iso-wall, start-wall",
        "line 5: value `-0.5` is negative; expected seconds, 0 or more",
        "line 6: the same run and metric as line 1; expected each once",
        "line 7: isolation is empty; expected a name; setup size is `0`; expected a whole number from 1",
        "iteration is `x`; expected a whole number; value `nan` is not a number",
    ):
        assert part in message


def test_the_first_twenty_problems_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    rows = [f"x{line},single,1,0,y,z,1,m{line},1.0" for line in range(1, 51)]
    message = complaint(tmp_path, "\n".join(rows).encode())
    assert "line 20: metric is `m20`; expected one of" in message
    assert "line 21" not in message
    assert "and 30 more" in message


def test_the_same_problem_is_listed_once_with_all_of_its_lines(tmp_path: Path) -> None:
    message = complaint(tmp_path, b"x\n" * 50 + b"a,b\n" + b"x\n")
    assert "lines 1-50, 52: 1 column; expected 9" in message
    assert "line 51: 2 columns; expected 9" in message


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"", "is empty"),
        (b"\n\n", "is empty"),
        (b"bare,single,1,0,w,1,1,cpu,0.5\nb\xffre,single", "line 2: byte 0xff is not UTF-8"),
        (b'bare,"single,1,0,w,1,1,cpu,0.5\n', "not CSV"),
        (b"metric,workload,program_seconds,isolate_seconds\n", "no row after the header"),
        (b"metric,workload,program_seconds,isolate_seconds\ncpu,w,1\nx,,-1,z\n", "line 3: metric is `x`"),
    ],
)
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes, part: str) -> None:
    assert part in complaint(tmp_path, content)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*absent.csv`: No such file"):
        IMPORTER.import_file(tmp_path / "absent.csv", tmp_path / "result")


def test_an_unknown_format_names_the_known_ones() -> None:
    with pytest.raises(
        UsageError, match=r"`hourglass` is not a format that can be imported; allowed: .*`iperf3`, `jmh`"
    ):
        importer("hourglass")


@pytest.mark.parametrize("suffix", ["", "-taskset", "-taskset-multi", "-numa", "-noht"])
@pytest.mark.parametrize("kind", ["single", "parallel-homogenous", "parallel-synth-memcpy"])
def test_folding_the_affinity_is_the_inverse_of_splitting_it(kind: str, suffix: str) -> None:
    assert split_setup(kind + suffix) == (kind, suffix.removeprefix("-") or "none")
    assert join_setup(*split_setup(kind + suffix)) == kind + suffix


@pytest.mark.needs_recorded_data
def test_the_recovered_warm_up_series_survives_import_and_export(tmp_path: Path) -> None:
    source = RECOVERED / "recovered-warmup-bare-single.csv"
    summary = IMPORTER.import_file(source, tmp_path / "result")
    assert (summary.runs, summary.cells) == (400, 4)
    assert exported(tmp_path / "result") == Counter(source.read_text(encoding="utf-8").splitlines())
    runs = {run["run_id"]: run for run in read_runs(tmp_path / "result").to_pylist()}
    bsearch = [
        row["value"]
        for row in read_measurements(tmp_path / "result").to_pylist()
        if runs[row["run_id"]]["workload"] == "bsearch/bsearch"
    ]
    # SOURCE: published facts of the series
    assert bsearch[0] == 0.39314
    assert sorted(bsearch)[49:51][0] <= 0.33735 <= sorted(bsearch)[49:51][1]


@pytest.mark.needs_recorded_data
def test_the_recovered_pairs_keep_the_grid_of_the_outside_clock(tmp_path: Path) -> None:
    IMPORTER.import_file(RECOVERED / "recovered-isolate-vs-program.csv", tmp_path / "result")
    rows = read_measurements(tmp_path / "result").to_pylist()
    assert len(rows) == 4000
    outside = [row["printed"] for row in rows if row["metric"] == "outside-cpu"]
    program = [row["printed"] for row in rows if row["metric"] == "cpu"]
    # Read off a figure, so some points are a last digit beside the grid.
    assert sum(digits.endswith("0") for digits in outside) > 0.7 * len(outside)
    assert sum(digits.endswith("0") for digits in program) < 0.2 * len(program)
    plan = json.loads((tmp_path / "result" / "plan.json").read_text(encoding="utf-8"))
    assert len(plan["factors"]["workload"]) == 6


ROW = "bare,single,1,cpu-0,exp,8,{iteration},wall,{value}\n"


def nine(path: Path, values: list[float]) -> Path:
    path.write_text("".join(ROW.format(iteration=at, value=value) for at, value in enumerate(values)))
    return path


def test_each_of_several_files_is_a_block(tmp_path: Path) -> None:
    files = [nine(tmp_path / f"{name}.csv", [value, value]) for name, value in (("b", 1.5), ("a", 2.5))]
    summary = IMPORTER.import_files(files, tmp_path / "r")
    assert (summary.cells, summary.runs, summary.measurements) == (1, 4, 4)
    plan = read_plan(tmp_path / "r" / "plan.json")
    assert plan.blocks == 2
    assert json.loads(str(plan.options["block_labels"])) == ["b.csv", "a.csv"], "in the order given"
    assert plan.cells[0].execution is not None
    assert plan.cells[0].execution.iterations == 2
    blocks = {run["run_id"]: run["block"] for run in read_runs(tmp_path / "r").to_pylist()}
    rows = read_measurements(tmp_path / "r").to_pylist()
    assert sorted((blocks[row["run_id"]], row["value"]) for row in rows) == [
        (0, 1.5),
        (0, 1.5),
        (1, 2.5),
        (1, 2.5),
    ]
    origins = read_provenance(tmp_path / "r").origins
    assert [origin.file_name for origin in origins] == ["b.csv", "a.csv"]
    assert altered_tables(tmp_path / "r") == []


def test_one_file_gives_what_it_always_gave(tmp_path: Path) -> None:
    path = nine(tmp_path / "a.csv", [1.0, 2.0])
    IMPORTER.import_file(path, tmp_path / "one")
    IMPORTER.import_files([path], tmp_path / "list")
    assert (tmp_path / "one" / "plan.json").read_bytes() == (tmp_path / "list" / "plan.json").read_bytes()
    assert "block_labels" not in read_plan(tmp_path / "one" / "plan.json").options


def test_what_is_wrong_with_several_files_is_said_at_once(tmp_path: Path) -> None:
    good, bad, worse = nine(tmp_path / "g.csv", [1.0]), tmp_path / "b.csv", tmp_path / "absent.csv"
    bad.write_text("x\n")
    with pytest.raises(DataError) as caught:
        IMPORTER.import_files([good, bad, worse], tmp_path / "r")
    assert "line 1: 1 column; expected 9" in caught.value.message
    assert "absent.csv`: No such file" in caught.value.message
    assert not (tmp_path / "r").exists()


def test_files_of_two_forms_are_refused(tmp_path: Path) -> None:
    paired = tmp_path / "p.csv"
    paired.write_text("metric,workload,program_seconds,isolate_seconds\ncpu,exp,1.0,1.1\n")
    with pytest.raises(DataError, match="of the form nine-columns"):
        IMPORTER.import_files([nine(tmp_path / "g.csv", [1.0]), paired], tmp_path / "r")
