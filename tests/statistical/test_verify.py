"""A result that was touched is not confirmed."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from fixtures.simulated_result import Spec, Study, lognormal
from steelyard.cli import execute
from steelyard.share.verify import verify
from steelyard.studies.stability.analysis import analyse

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPECS = [
    Spec(name, "single", 1, "sort/qsort", lognormal(mean, 0.01, 0.01))
    for name, mean in (("bare", 0.3), ("docker", 0.4))
]


@pytest.fixture
def result(make_result: Callable[..., Path]) -> Path:
    folder = make_result(SPECS, Study(blocks=5, iterations=8))
    analyse(folder)
    return folder


def test_an_untouched_result_is_confirmed(result: Path) -> None:
    before = sorted(path.name for path in result.rglob("*"))
    assert verify(result) == []
    assert sorted(path.name for path in result.rglob("*")) == before


@pytest.mark.parametrize("field", ["value", "low", "units"])
def test_a_changed_number_in_a_finding_is_found(result: Path, field: str) -> None:
    path = result / "findings.json"
    content = json.loads(path.read_text())
    [finding] = [each for each in content["findings"] if each["claim"] == "mean_comparison"]
    finding["estimates"]["ratio"][field] *= 1 + 2**-40 if field != "units" else 2
    path.write_text(json.dumps(content))
    [problem] = verify(result)
    assert f"estimates.ratio.{field}" in problem


def test_removed_and_invented_findings_are_found(result: Path) -> None:
    path = result / "findings.json"
    content = json.loads(path.read_text())
    moved = content["findings"].pop(0)
    content["findings"].append({**moved, "id": "invented"})
    path.write_text(json.dumps(content))
    problems = verify(result)
    assert any("`invented` does not follow" in problem for problem in problems)
    assert any("is absent from `findings.json`" in problem for problem in problems)


def test_changed_raw_data_are_found_by_hash_and_by_number(result: Path) -> None:
    path = result / "measurements" / "values.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("value")
    values = table.column("value").to_pylist()
    values[0] *= 1.5
    pq.write_table(table.set_column(at, table.schema.field(at), [values]), path)
    problems = verify(result)
    assert any("was changed after it was written" in problem for problem in problems)
    assert any("is not the file that `findings.json`" in problem for problem in problems)
    assert any("the tables give" in problem for problem in problems)


def test_changed_absent_and_added_tables_are_found(result: Path) -> None:
    tables = result / "tables"
    (tables / "sd_comparison.csv").unlink()
    text = (tables / "mean_comparison.csv").read_text().replace("slower", "faster")
    (tables / "mean_comparison.csv").write_text(text)
    shutil.copy(tables / "outside_error.csv", tables / "extra.csv")
    problems = verify(result)
    assert "`tables/sd_comparison.csv` is absent" in problems
    assert "`tables/extra.csv` is not a table of the analysis" in problems
    assert any(
        problem.startswith("`tables/mean_comparison.csv`, line 2, `")
        and problem.endswith("` is faster, the findings give slower")
        for problem in problems
    )


@pytest.mark.parametrize("move", [shutil.move, shutil.copytree])
def test_a_result_with_its_report_is_confirmed_wherever_it_lies(
    result: Path, tmp_path: Path, move: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert execute(["report", str(result)]) == 0
    elsewhere = tmp_path / "another place" / "renamed"
    elsewhere.parent.mkdir()
    move(result, elsewhere)
    assert verify(elsewhere) == []
    monkeypatch.chdir(elsewhere)
    assert execute(["verify", "."]) == 0


def test_a_changed_number_in_the_report_is_quoted(result: Path) -> None:
    assert execute(["report", str(result)]) == 0
    path = result / "report.html"
    text = path.read_text(encoding="utf-8")
    assert "<b>5\xa0%</b>" not in text
    path.write_text(text.replace("<b>2\xa0%</b>", "<b>5\xa0%</b>", 1), encoding="utf-8")
    [problem] = verify(result)
    assert problem.startswith("`report.html` is not what the findings render to: it says `")
    assert "5 %</b>" in problem.partition("the findings `")[0]
    assert "2 %</b>" in problem.partition("the findings `")[2]


def test_settings_of_the_reader_are_confirmed_too(result: Path) -> None:
    assert execute(["analyse", str(result), "--tolerance", "0.5"]) == 0
    assert verify(result) == []


def test_exit_codes_tell_confirmed_denied_and_unusable(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["verify", str(result)]) == 0
    (result / "tables" / "warm_up.csv").unlink()
    capsys.readouterr()
    assert execute(["verify", str(result), "--json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    assert answer["confirmed"] is False
    assert answer["problems"] == ["`tables/warm_up.csv` is absent"]
    assert execute(["verify", str(tmp_path / "nothing")]) == 5
    (result / "measurements" / "values.parquet").write_bytes(b"damaged")
    assert execute(["verify", str(result)]) == 5
    assert "Traceback" not in capsys.readouterr().err


def test_analyse_prints_a_summary_or_the_findings(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["analyse", str(result)]) == 0
    assert "mean_comparison" in capsys.readouterr().out
    assert execute(["analyse", str(result), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "steelyard/findings/1"
    assert execute(["analyse", str(result), "--margin", "-1"]) == 2
    assert execute(["analyse", str(result / "nothing")]) == 5
