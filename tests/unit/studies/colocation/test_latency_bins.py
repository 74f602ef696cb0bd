from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from steelyard.errors import DataError
from steelyard.record.tables import read_measurements
from steelyard.studies.colocation.latency_bins import HEADING, IMPORTER

if TYPE_CHECKING:
    from pathlib import Path

TEXT = ",".join(HEADING) + "\n0.0,6.048,6.760,0\n0.1,6.0,,3\n0.2,,,18\n"


def _file(tmp_path: Path, text: str, name: str = "srv-bg-idle-high.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_values_are_kept_to_the_digit_and_absent_ones_stay_absent(tmp_path: Path) -> None:
    summary = IMPORTER.import_file(_file(tmp_path, TEXT), tmp_path / "out")
    assert (summary.study, summary.cells, summary.runs, summary.measurements) == ("colocation", 1, 1, 11)
    table = pl.DataFrame(read_measurements(tmp_path / "out"))
    means = table.filter(pl.col("metric") == "mean_latency")
    assert means["value"].to_list() == [6_048_000.0, 6_000_000.0]
    assert means["printed"].to_list() == ["6.048", "6.0"]
    assert means["iteration"].to_list() == [1, 2]
    moments = table.filter(pl.col("metric").is_in(["jobs_start", "jobs_stop"]))
    assert moments["value"].to_list() == [11e9, 30e9]
    work = table.filter(pl.col("metric") == "best_effort_iterations")
    assert work["value"].to_list() == [0.0, 3.0, 18.0]


@pytest.mark.parametrize(
    ("name", "policy", "load"),
    [
        ("srv-bg-unedited-low.csv", "weights", "85"),
        ("srv-bg-rt-high.csv", "fifo", "95"),
        ("kubernetes-unedited.csv", "weights", "kubernetes"),
        ("overload-schedbe.csv", "be", "100"),
        ("mine.csv", "mine", "unknown load"),
        ("baseline.csv", "none", "unknown load"),
    ],
)
def test_names_of_the_sources_files_tell_policy_and_load(
    tmp_path: Path, name: str, policy: str, load: str
) -> None:
    from steelyard.model.plan import read_plan  # noqa: PLC0415 - used here only

    IMPORTER.import_file(_file(tmp_path, TEXT, name), tmp_path / "out")
    levels = read_plan(tmp_path / "out" / "plan.json").cells[0].levels
    assert (levels["policy"], levels["load"]) == (policy, load)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1"),
        ("time,mean\n", "line 1: `time` states no unit"),
        ("time_s,mean_ms,avg_ms,work\n", "line 1: cannot choose between `mean_ms` and `avg_ms`"),
        ("time_s,latency_ms,mean_ms\n", "line 1: the heading is"),
        ("mean_ms,p99_ms\n", "line 1: the heading is"),
        (TEXT + ",1,1,1\n", "line 5: the time is missing"),
        (TEXT + "0.3,1,1\n", "line 5: 3 fields"),
        (TEXT + "0.3,x,1,1\n", "line 5: mean_ms is `x`"),
        (TEXT + "0.3,-1,1,1\n", "line 5: mean_ms is `-1`"),
        (TEXT + "0.2,1,1,1\n", "line 5: time_s is `0.2` after `0.2`"),
        (",".join(HEADING) + "\n", "no value"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(DataError) as caught:
        IMPORTER.import_file(_file(tmp_path, text), tmp_path / "out")
    assert place in str(caught.value)
    assert not (tmp_path / "out").exists()
