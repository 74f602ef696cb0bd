"""Tables as people have them: wide, with comments, decimal commas, failed launches and wrong cells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.cli import execute
from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.record.importers.foreign_importer import ForeignImporter
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.tables import read_measurements, read_runs

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.record.importers.interface import ImportSummary

Place = tuple[str, int, float]


def imported(folder: Path, text: str, options: ReadOptions) -> tuple[ImportSummary, list[Place]]:
    """Import a table, and give program, launch and value of each measurement."""
    (folder / "t.csv").write_text(text, encoding="utf-8")
    csv = importer("csv")
    assert isinstance(csv, ForeignImporter)
    summary = csv.import_files([folder / "t.csv"], folder / "r", options)
    runs = {run["run_id"]: run for run in read_runs(folder / "r").to_pylist()}
    rows = read_measurements(folder / "r").to_pylist()
    places = [(runs[row["run_id"]], row["value"]) for row in rows]
    return summary, sorted((run["workload"], run["iteration"], value) for run, value in places)


def refused(folder: Path, text: str, options: ReadOptions | None = None) -> DataError:
    with pytest.raises(DataError) as caught:
        imported(folder, text, options or ReadOptions(unit="ns"))
    assert not (folder / "r").exists()
    return caught.value


def test_files_of_one_program_are_repetitions_of_one_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Forty files were forty cells, named after the files, and a history saw one result of each."""
    files = []
    for at in range(40):
        (tmp_path / f"night-{at:02d}.csv").write_text("run,value\n1,1.0\n2,1.1\n", encoding="utf-8")
        files.append(str(tmp_path / f"night-{at:02d}.csv"))
    words = ["import", "csv", *files, "--unit", "s", "--out"]
    assert execute([*words, str(tmp_path / "r")]) == 0
    said = capsys.readouterr().out
    assert "columns: value `value`; run `run`; unit s" in said
    assert "all rows are of one program, `unnamed`, and each file is a repetition of it" in said
    plan = read_plan(tmp_path / "r" / "plan.json")
    assert (len(plan.cells), plan.blocks) == (1, 40)
    assert execute(["history", str(tmp_path / "r")]) == 0
    assert "1 series over 40 results" in capsys.readouterr().out
    assert execute([*words, str(tmp_path / "f"), "--workload", "{file}"]) == 0
    assert len(read_plan(tmp_path / "f" / "plan.json").cells) == 40
    assert execute([*words, str(tmp_path / "n"), "--workload", "sort"]) == 0
    assert read_plan(tmp_path / "n" / "plan.json").cells[0].levels == {"workload": "sort"}


def test_every_wrong_cell_is_said_at_once_with_the_option_that_may_be_meant(tmp_path: Path) -> None:
    lines = ["run,value", *(f"{at},{'NA' if at % 10 == 3 else at}" for at in range(1, 101)), "x,fast"]
    error = refused(tmp_path, "\n".join(lines))
    assert "has 11 problems" in error.message
    assert "lines 4, 14, 24, 34, 44, 54, 64, 74, 84, 94: value is `NA`; expected a number" in error.message
    assert "line 102: value is `fast`" in error.message
    assert "`--missing NA` leaves such values out" in (error.hint or "")


def test_what_is_wrong_with_several_files_is_said_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, cell in (("a", "x"), ("b", "1"), ("c", "y")):
        (tmp_path / f"{name}.csv").write_text(f"value\n{cell}\n", encoding="utf-8")
    files = [str(tmp_path / f"{name}.csv") for name in "abc"]
    assert execute(["import", "csv", *files, "--unit", "ms", "--out", str(tmp_path / "r")]) == 5
    said = capsys.readouterr().err
    assert f"`{files[0]}` has 1 problem" in said
    assert f"`{files[2]}` has 1 problem" in said


def test_missing_values_are_left_out_and_counted(tmp_path: Path) -> None:
    options = ReadOptions(unit="ns", missing=("NA", ""))
    found, rows = imported(tmp_path, "run,value\n1,1\n2,na\n3,\n4,4\n", options)
    assert [value for _, _, value in rows] == [1.0, 4.0]
    assert "values that are not there: 2" in found.notes


@pytest.mark.parametrize(
    "text",
    ["run;value\n1;0,5\n2;1,25\n", "run\tvalue\n1\t0,5\n2\t1,25\n", 'run,value\n1,"0,5"\n2,"1,25"\n'],
    ids=["semicolon", "tab", "quoted"],
)
def test_decimals_may_stand_behind_a_comma(tmp_path: Path, text: str) -> None:
    assert "`--decimal ,` reads decimal commas" in (refused(tmp_path, text).hint or "")
    _, rows = imported(tmp_path, text, ReadOptions(unit="ns", decimal=","))
    assert [value for _, _, value in rows] == [0.5, 1.25]
    printed = read_measurements(tmp_path / "r")["printed"].to_pylist()
    assert printed == ["0,5", "1,25"], "as the file has them"


def test_blanks_may_stand_between_values_with_decimal_commas(tmp_path: Path) -> None:
    options = ReadOptions({"run": "1", "value": "2"}, "ms", decimal=",")
    _, rows = imported(tmp_path, "1 0,5\n2 1,25\n", options)
    assert [value for _, _, value in rows] == [500_000.0, 1_250_000.0]


def test_a_number_with_both_signs_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, "run;value\n1;1.234,5\n", ReadOptions(unit="ns", decimal=","))
    assert "value is `1.234,5`" in error.message


def test_lines_of_comments_are_left_out_and_lines_keep_their_numbers(tmp_path: Path) -> None:
    text = "# made by a tool; 2 columns\nrun,value\n# warm\n1,5\n  # more\n2,6\n"
    assert "`--comment '#'`" in (
        refused(tmp_path, text.replace("# made by a tool; 2 columns\n", "")).hint or ""
    )
    _, rows = imported(tmp_path, text, ReadOptions(unit="ns", comment="#"))
    assert [value for _, _, value in rows] == [5.0, 6.0]
    (tmp_path / "bad").mkdir()
    error = refused(tmp_path / "bad", text + "3,x\n", ReadOptions(unit="ns", comment="#"))
    assert "line 7: value is `x`" in error.message


WIDE = "night,old,new\n1,10,20\n2,11,21\n3,,22\n4,,23\n"


def test_columns_of_a_wide_table_are_programs(tmp_path: Path) -> None:
    found, rows = imported(tmp_path, WIDE, ReadOptions({"run": "night"}, "ns", wide="workload"))
    assert rows == [
        *(("new", launch, 19.0 + launch) for launch in (1, 2, 3, 4)),
        ("old", 1, 10.0),
        ("old", 2, 11.0),
    ]
    assert "values that are not there: 2" in found.notes
    assert any("values, each of one workload `old`, `new`" in note for note in found.notes)


def test_columns_of_a_wide_table_are_levels_of_a_factor(tmp_path: Path) -> None:
    _, rows = imported(
        tmp_path, "size,1,2,4\na,8,4,2\nb,9,5,3\n", ReadOptions({"size": "size"}, "ns", wide="threads")
    )
    cells = {
        (cell.levels["size"], cell.levels["threads"]) for cell in read_plan(tmp_path / "r/plan.json").cells
    }
    assert cells == {(size, threads) for size in "ab" for threads in "124"}
    assert len(rows) == 6


def test_columns_of_a_wide_table_are_iterations_and_its_rows_runs(tmp_path: Path) -> None:
    _, rows = imported(tmp_path, "i1,i2,i3\n1,2,3\n4,5,6\n", ReadOptions(unit="ns", wide="iteration"))
    assert rows == [("unnamed", 1, value) for value in (1.0, 2.0, 3.0)] + [
        ("unnamed", 2, value) for value in (4.0, 5.0, 6.0)
    ]
    assert read_measurements(tmp_path / "r")["iteration"].to_pylist() == [1, 2, 3, 1, 2, 3]


def test_columns_of_a_wide_table_are_metrics(tmp_path: Path) -> None:
    imported(tmp_path, "run,user,system\n1,5,1\n2,6,2\n", ReadOptions({"run": "run"}, "ms", wide="metric"))
    metrics = read_measurements(tmp_path / "r")["metric"].to_pylist()
    assert sorted(metrics) == ["system", "system", "user", "user"]


def test_a_wrong_cell_of_a_wide_table_is_named_with_its_column(tmp_path: Path) -> None:
    error = refused(tmp_path, "old,new\n1,x\n2,3\n", ReadOptions(unit="ns", wide="workload"))
    assert "line 2: column `new`: value is `x`; expected a number" in error.message


def test_a_wide_table_of_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"old": [1.0, 2.0, None], "new": [3.0, 4.0, 5.0]}), tmp_path / "t.parquet")
    csv = importer("csv")
    assert isinstance(csv, ForeignImporter)
    options = ReadOptions(unit="ns", wide="workload", rows="run")
    found = csv.import_files([tmp_path / "t.parquet"], tmp_path / "r", options)
    assert (found.cells, found.runs, found.measurements) == (2, 5, 5)


def test_rows_may_be_launches_or_results_of_a_history(tmp_path: Path) -> None:
    text = "value\n" + "\n".join(str(at) for at in range(1, 31)) + "\n"
    imported(tmp_path, text, ReadOptions(unit="ns", rows="run"))
    assert read_runs(tmp_path / "r").num_rows == 30
    (tmp_path / "h").mkdir()
    imported(tmp_path / "h", text, ReadOptions(unit="ns", rows="block"))
    plan = read_plan(tmp_path / "h" / "r" / "plan.json")
    assert (plan.blocks, json.loads(str(plan.options["block_labels"]))[:2]) == (30, ["row 1", "row 2"])


def test_a_table_without_header_may_be_wide(tmp_path: Path) -> None:
    _, rows = imported(tmp_path, "1 2\n3 4\n", ReadOptions(unit="ns", wide="run", has_header=False))
    assert sorted(value for _, _, value in rows) == [1.0, 2.0, 3.0, 4.0]
    assert read_runs(tmp_path / "r").num_rows == 2


def test_columns_by_number_do_not_take_a_header_for_values(tmp_path: Path) -> None:
    _, rows = imported(tmp_path, "size,time\n1,5\n2,6\n", ReadOptions({"value": "2"}, "ns"))
    assert [value for _, _, value in rows] == [5.0, 6.0]


def test_launches_with_an_exit_code_are_failed_ones(tmp_path: Path) -> None:
    text = "run,value,exit_code\n1,5,0\n2,6,1\n3,7,-9\n4,8,\n"
    found, _ = imported(tmp_path, text, ReadOptions(unit="ns"))
    assert read_runs(tmp_path / "r")["status"].to_pylist() == ["completed", "nonzero_exit"] * 1 + [
        "nonzero_exit",
        "completed",
    ]
    assert any("launches that failed: 2" in note for note in found.notes)
    (tmp_path / "bad").mkdir()
    assert "exit code is `oom`" in refused(tmp_path / "bad", "run,value,exit_code\n1,5,oom\n").message


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--rows", "cell"], "`--rows cell`: allowed: `iteration`, `run`, `block`"),
        (["--decimal", ";"], "`--decimal ;`: allowed: `.`, `,`"),
        (["--wide", "workload", "--column", "value=value"], "a wide table has no column of the role `value`"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tmp_path: Path, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("value\n1\n", encoding="utf-8")
    given = ["import", "csv", str(tmp_path / "t.csv"), "--unit", "ms", "--out", str(tmp_path / "r"), *words]
    assert execute(given) in {2, 5}
    assert part in capsys.readouterr().err
