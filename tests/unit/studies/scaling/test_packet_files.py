from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError
from steelyard.model.plan import read_plan
from steelyard.record.importers.interface import importer
from steelyard.record.importers.reading import ReadOptions
from steelyard.record.published import read_published
from steelyard.record.tables import read_measurements
from steelyard.studies.scaling.packet_files import MEDIANS_ONLY, OVERHEAD_HEADING, SPEEDUP_HEADING

if TYPE_CHECKING:
    from pathlib import Path

OVERHEAD = (
    ",".join(OVERHEAD_HEADING) + "\n2000,1,25,t,32,p,1668.035,1513.486,1.10211 \n"
    "2000,1,25,t,32,a,1668.035,1555.401,1.07241 \n"
)
SPEEDUP = ",".join(SPEEDUP_HEADING) + "\n2000,1,1000,t,32,nan,L,0.89233 \n2000,27,8000,f,32,a,A,1.50043 \n"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_both_tables_become_cells_of_one_study(tmp_path: Path) -> None:
    paths = [written(tmp_path, "overhead.csv", OVERHEAD), written(tmp_path, "speedup.csv", SPEEDUP)]
    summary = importer("packets").import_files(paths, tmp_path / "r")  # type: ignore[attr-defined]
    assert (summary.study, summary.cells, summary.measurements) == ("scaling", 5, 5)
    assert summary.notes == (MEDIANS_ONLY,)
    plan = read_plan(tmp_path / "r/plan.json")
    assert plan.factors["strategy"] == ("LockFree", "HomeQueue", "Awesome")
    assert plan.factors["lock"] == ("none", "pthread mutex", "Anderson")
    measured = read_measurements(tmp_path / "r").to_pylist()
    assert {(row["metric"], row["unit"], row["printed"]) for row in measured} >= {
        ("rate", "packets/ms", "1668.035"),
        ("speedup", "ratio", "1.50043"),
    }
    published = read_published(tmp_path / "r")
    assert published is not None
    assert sorted(published["value"].to_pylist()) == [1.07241, 1.10211]


@pytest.mark.parametrize(
    ("text", "place", "fault"),
    [
        ("M,n\n1,2\n", "line 1", "the heading is `M,n`"),
        (SPEEDUP.replace(",t,", ",x,"), "line 2", "U is `x`; expected `t`, `f`"),
        (SPEEDUP.replace("0.89233", "-1"), "line 2", "expected a number from 0"),
        (SPEEDUP.replace(",27,", ",0,"), "line 3", "n is `0`; expected a whole number from 1"),
        (SPEEDUP.replace(",L,0.89233 ", ",L"), "line 2", "1 field(s) too few"),
        (OVERHEAD.replace("a,1668.035", "a,1668.036"), "line 3", "is `1668.035` above and `1668.036` here"),
        ("", "line 1", "the file is empty"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, text: str, place: str, fault: str) -> None:
    path = written(tmp_path, "t.csv", text)
    with pytest.raises(DataError) as caught:
        importer("packets").import_file(path, tmp_path / "r")
    assert place in caught.value.message
    assert fault in caught.value.message
    assert not (tmp_path / "r").exists()


def test_a_strategy_that_the_headings_say_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "overhead.csv", OVERHEAD)
    with pytest.raises(
        DataError, match="`--strategy` is given, but the headings of idle lock overhead state it"
    ):
        importer("packets").import_files(  # type: ignore[attr-defined]
            [path], tmp_path / "r", ReadOptions(levels={"S": "L"})
        )
    assert not (tmp_path / "r").exists()
