"""Imported results are described, compared, laid beside published numbers, reported and verified."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import stats

from steelyard.analyse.intervals.estimate import interval
from steelyard.cli import execute
from steelyard.model.finding import read_findings
from steelyard.report.page import Prose
from steelyard.share.verify import verify
from steelyard.studies.imported.analysis import analyse
from steelyard.studies.imported.report.page import build

if TYPE_CHECKING:
    from steelyard.model import FindingSet
    from steelyard.report.sentence import Statement

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests/golden/importers"
SHARED = ROOT.parent / "shared/data/replication"


def analysed(folder: Path, *words: str) -> FindingSet:
    assert execute(["import", *words, "--out", str(folder)]) == 0
    assert execute(["analyse", str(folder)]) == 0
    return read_findings(folder / "findings.json")


def hyperfine(path: Path, **commands: np.ndarray) -> str:
    results = [{"command": name, "times": times.tolist()} for name, times in commands.items()]
    path.write_text(json.dumps({"results": results}), encoding="utf-8")
    return str(path)


@pytest.mark.needs_recorded_data
@pytest.mark.parametrize(
    ("name", "entries"), [("JakobMei+ba_grpc_rest", 8), ("twineworks+collections-benchmarks", 80)]
)
def test_every_shared_jmh_score_and_error_follows_from_the_raw_data(
    tmp_path: Path, name: str, entries: int
) -> None:
    source = SHARED / f"{name}-jmh-result.json"
    found = analysed(tmp_path / "r", "jmh", str(source)).of("published_value")
    assert len(found) == 2 * entries
    content = {
        (entry["benchmark"], statistic): entry["primaryMetric"][statistic]
        for entry in json.loads(source.read_text(encoding="utf-8"))
        for statistic in ("score", "scoreError")
    }
    for finding in found:
        published, ours = (finding.estimates[role].value for role in ("published", "ours"))
        assert published is not None
        assert ours == pytest.approx(published, rel=1e-9, abs=0)
        assert finding.verdict == "agrees"
        printed = finding.facts["printed"]
        assert (
            float(str(printed).split()[0])
            == content[finding.subject["workload"], finding.subject["statistic"]]
        )


def test_numbers_of_other_tools_are_recomputed_too(tmp_path: Path) -> None:
    for form in ("hyperfine", "google-benchmark", "pytest-benchmark"):
        found = analysed(tmp_path / form, form, str(GOLDEN / f"{form}.json")).of("published_value")
        assert len(found) >= 10
        assert {finding.verdict for finding in found} == {"agrees"}
    own = ("tinybench", "vitest", "benchmark-js", "nanobench", "benchmark-dotnet")
    for form, file in {**{form: f"{form}.json" for form in own}, "asv": "asv/bench"}.items():
        path = GOLDEN / "harnesses" / file
        source = next(path.glob("*.json")) if path.is_dir() else path
        found = analysed(tmp_path / form, form, str(source)).of("published_value")
        assert len(found) >= 3
        assert {finding.verdict for finding in found} == {"agrees"}


def test_values_without_an_order_are_no_series(tmp_path: Path) -> None:
    rows = [{"name": "a", "result": {"latency": {"mean": 20.0, "samples": list(range(1, 41))}}}]
    (tmp_path / "t.json").write_text(json.dumps(rows), encoding="utf-8")
    (found,) = analysed(tmp_path / "t", "tinybench", str(tmp_path / "t.json")).of("cell")
    assert (found.verdict, found.facts["lag_1"], found.facts["effective_size"]) == (
        "order unknown",
        None,
        None,
    )
    assert (found.estimates["mean"].value, found.estimates["mean"].low) == (20.5e6, None)
    (tmp_path / "c.csv").write_text("".join(f"{value}\n" for value in range(1, 41)), encoding="utf-8")
    options = ("--unit", "ms", "--no-header", "--column", "value=1")
    (known,) = analysed(tmp_path / "c", "csv", str(tmp_path / "c.csv"), *options).of("cell")
    assert known.verdict not in ("order unknown", "too few to tell")
    assert known.estimates["mean"].low is not None
    (said,) = build(tmp_path / "c").answer
    assert said.text.startswith("The mean value of unnamed is 20.50 ms, 95 % interval ")


def test_several_processes_without_an_order_have_an_interval(tmp_path: Path) -> None:
    names = []
    for process in range(6):
        rows = [{"name": "a", "result": {"latency": {"mean": 2.0, "samples": [1 + process / 10, 2, 3]}}}]
        (tmp_path / f"t{process}.json").write_text(json.dumps(rows), encoding="utf-8")
        names.append(str(tmp_path / f"t{process}.json"))
    (found,) = analysed(tmp_path / "t", "tinybench", *names).of("cell")
    assert found.estimates["mean"].low is not None


def test_a_published_number_that_does_not_follow_is_said(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    result = {"command": "c", "times": [1.0, 2.0, 3.0], "mean": 2.1}
    path.write_text(json.dumps({"results": [result]}), encoding="utf-8")
    (finding,) = analysed(tmp_path / "r", "hyperfine", str(path)).of("published_value")
    assert finding.verdict == "differs"


def test_a_published_number_of_all_launches_follows_from_failed_ones_too(tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    result = {"command": "c", "times": [1.0, 2.0, 6.0], "exit_codes": [0, 0, 1], "mean": 3.0, "max": 6.0}
    path.write_text(json.dumps({"results": [result]}), encoding="utf-8")
    found = analysed(tmp_path / "r", "hyperfine", str(path))
    assert {finding.verdict for finding in found.of("published_value")} == {"agrees"}
    (cell,) = found.of("cell")
    assert cell.estimates["mean"].value == 1.5e9
    assert cell.warnings == ("failed launches left out: 1; they say how fast a program failed",)


def test_slower_equivalent_and_too_few_are_told_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    base = np.exp(0.005 * rng.standard_normal((4, 40)))
    times = {"base": base[0], "same": base[1], "slow": 1.1 * base[2], "few": base[3][:3]}
    found = analysed(tmp_path / "r", "hyperfine", hyperfine(tmp_path / "h.json", **times)).of("comparison")
    verdicts = {finding.subject["second"]: finding.verdict for finding in found}
    assert verdicts == {"same": "equivalent", "slow": "slower", "few": "descriptive"}
    ratio = next(f for f in found if f.subject["second"] == "slow").estimates["ratio"]
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 1.1 < ratio.high


def test_commands_that_ran_one_after_the_other_are_not_guaranteed(tmp_path: Path) -> None:
    rng = np.random.default_rng(17)

    def files(count: int, launches: int) -> list[str]:
        times = [np.exp(0.01 * rng.standard_normal((2, launches))) for _ in range(count)]
        return [
            hyperfine(tmp_path / f"h{count}-{place}.json", base=both[0], new=1.1 * both[1])
            for place, both in enumerate(times)
        ]

    (in_turn,) = analysed(tmp_path / "one", "hyperfine", *files(1, 40)).of("comparison")
    assert in_turn.verdict == "slower"
    assert not in_turn.estimates["ratio"].guaranteed
    assert any("one after the other" in warning for warning in in_turn.warnings)
    (mixed,) = analysed(tmp_path / "six", "hyperfine", *files(6, 5)).of("comparison")
    assert mixed.estimates["ratio"].guaranteed, mixed.warnings
    assert mixed.warnings == ()


def test_as_many_values_of_every_block_count_where_their_number_makes_a_difference(tmp_path: Path) -> None:
    rng = np.random.default_rng(29)
    files = []
    for block in range(20):
        path = tmp_path / f"{block:02d}.csv"
        times = [("old", rng.exponential(100, 1)), ("new", rng.exponential(100, 100))]
        rows = [f"{build},1,{time!r}" for build, each in times for time in each.tolist()]
        path.write_text("\n".join(["build,run,value", *rows]), encoding="utf-8")
        files.append(str(path))
    columns = [word for name in ("build", "run", "value") for word in ("--column", f"{name}={name}")]
    (found,) = analysed(tmp_path / "r", "csv", *files, "--unit", "ms", *columns).of("comparison")
    assert found.verdict == "inconclusive"
    assert found.estimates["ratio"].guaranteed
    uneven = "of every block only the first value counts: the blocks hold 1 against 100 values"
    assert found.warnings == (
        f"{uneven}; a single value may be the mean of many: what does not hold then is left open",
    )
    assert [each.statistic for each in found.evidence] == [
        "ratio of the geometric means of the block means, second over first"
    ]


def test_few_launches_against_many_are_relabelled(tmp_path: Path) -> None:
    rng = np.random.default_rng(19)
    times = {"old": np.exp(0.05 * rng.standard_normal(60)), "new": np.exp(0.05 * rng.standard_normal(5))}
    (found,) = analysed(tmp_path / "r", "hyperfine", hyperfine(tmp_path / "h.json", **times)).of("comparison")
    assert "relabelling" in found.estimates["ratio"].method
    assert found.verdict == "inconclusive"


def test_more_operations_per_time_are_faster(tmp_path: Path) -> None:
    rows = [f"{size},{run},{rate}" for size, rate in (("a", 100), ("b", 200)) for run in range(6)]
    (tmp_path / "t.csv").write_text("\n".join(["size,run,value", *rows]), encoding="utf-8")
    words = ["csv", str(tmp_path / "t.csv"), "--column", "value=value", "--column", "run=run"]
    (finding,) = analysed(tmp_path / "r", *words, "--column", "size=size", "--unit", "ops/s").of("comparison")
    assert (finding.subject["first"], finding.subject["second"], finding.verdict) == ("a", "b", "faster")


def test_the_interval_of_a_cell_is_of_its_runs_and_holds_that_of_student(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    values = 10 + rng.standard_normal((8, 1)) + 0.1 * rng.standard_normal((8, 20))
    rows = [f"{run},{value!r}" for run in range(8) for value in values[run].tolist()]
    (tmp_path / "t.csv").write_text("\n".join(["run,value", *rows]), encoding="utf-8")
    (cell,) = analysed(tmp_path / "r", "csv", str(tmp_path / "t.csv"), "--unit", "ns").of("cell")
    means = values.mean(axis=1)
    low, high = stats.t.interval(0.95, 7, means.mean(), means.std(ddof=1) / np.sqrt(8))
    mean = cell.estimates["mean"]
    found = interval(values.ravel(), clusters=np.repeat(np.arange(8), 20), resamples=2000, seed=0)
    assert mean.value == pytest.approx(means.mean(), rel=1e-12)
    assert mean.low is not None
    assert mean.high is not None
    assert mean.low <= low * (1 + 1e-12)
    assert mean.high >= high * (1 - 1e-12)
    assert mean.high - mean.low < 2 * (high - low)
    assert (mean.method, found.method) == ("wider of clusters (runs)", "wider of clusters")
    assert (mean.units, mean.measurements, mean.guaranteed) == (8, 160, True)


def test_one_run_is_marked_and_a_dependent_series_gets_its_effective_size(tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    series = np.empty(200)
    state = 0.0
    for place in range(200):
        state = 0.9 * state + rng.standard_normal()
        series[place] = 1000 + state
    (tmp_path / "t.csv").write_text("value\n" + "\n".join(map(repr, series.tolist())), encoding="utf-8")
    (cell,) = analysed(tmp_path / "r", "csv", str(tmp_path / "t.csv"), "--unit", "ns").of("cell")
    assert cell.estimates["mean"].method == "wider, of iterations"
    assert cell.estimates["mean"].guaranteed is False
    assert "one run" in cell.warnings[0]


def test_the_sentence_of_a_comparison_names_the_program(tmp_path: Path) -> None:
    """Of several programs with the same two settings, nobody could tell which sentence is about which."""
    rows = [
        f"{program},{setting},{run},{1000 + 300 * (setting == 'new') + 7 * run}"
        for program in ("sort", "parse")
        for setting in ("old", "new")
        for run in range(6)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["program,setting,run,value", *rows]), encoding="utf-8")
    columns = ("workload=program", "setting=setting", "run=run", "value=value")
    options = [word for column in columns for word in ("--column", column)]
    analysed(tmp_path / "r", "csv", str(tmp_path / "t.csv"), *options, "--unit", "ns")
    said = [one.text for block in build(tmp_path / "r").sections[1].blocks for one in statements_of(block)]
    assert [text.partition(" is slower against old")[0] for text in said] == ["sort: new", "parse: new"]


def statements_of(block: object) -> tuple[Statement, ...]:
    return block.statements if isinstance(block, Prose) else ()


def test_one_value_constants_and_zeros_get_a_clear_answer(tmp_path: Path) -> None:
    times = {
        "one": np.array([1.0]),
        "constant": np.full(30, 2.0),
        "zero": np.zeros(30),
        "two": np.array([1.0, 2.0]),
    }
    found = analysed(tmp_path / "r", "hyperfine", hyperfine(tmp_path / "h.json", **times))
    means = {finding.subject["workload"]: finding.estimates["mean"] for finding in found.of("cell")}
    assert (means["one"].value, means["one"].low) == (1e9, None)
    assert (means["constant"].low, means["constant"].high) == (2e9, 2e9)
    assert means["zero"].value == 0.0
    verdicts = {finding.subject["second"]: finding.verdict for finding in found.of("comparison")}
    assert verdicts == {"constant": "descriptive", "zero": "NA", "two": "descriptive"}


def test_report_verify_and_comparing_results_work_on_an_import(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tmp_path / "r"
    analysed(result, "hyperfine", str(GOLDEN / "hyperfine.json"))
    for form in ("text", "markdown", "latex", "html"):
        assert execute(["report", str(result), "--format", form]) == 0
    text = capsys.readouterr().out
    assert "sleep 0.002 is slower against true" in text
    assert "10 of 10 published numbers follow" in text
    assert verify(result) == []
    other = str(shutil.copytree(result, tmp_path / "other"))
    assert execute(["analyse", other, "--margin", "3"]) == 0
    assert execute(["compare-results", str(result), other]) == 0
    assert execute(["verify", str(result)]) == 0
    findings = (result / "findings.json").read_text(encoding="utf-8")
    (result / "findings.json").write_text(findings.replace('"slower"', '"faster"'), encoding="utf-8")
    assert execute(["verify", str(result)]) == 1


def test_two_modes_and_a_warm_up_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(17)
    noise = np.exp(0.01 * rng.standard_normal((2, 100)))
    times = {
        "modes": noise[0] * rng.permutation(np.repeat([1.0, 1.4], 50)),
        "warm": noise[1] * np.repeat([2.0, 1.0], [15, 85]),
    }
    cells = analysed(tmp_path / "r", "hyperfine", hyperfine(tmp_path / "h.json", **times)).of("cell")
    found = {cell.subject["workload"]: (cell.facts["modes"], cell.verdict) for cell in cells}
    assert found["modes"][0] == "several"
    assert found["warm"][1] == "warm-up"


def test_names_that_differ_in_signs_alone_keep_their_own_findings(tmp_path: Path) -> None:
    times = {"a b": np.array([1.0, 1.1]), "a-b": np.array([1.0, 1.2])}
    found = analysed(tmp_path / "r", "hyperfine", hyperfine(tmp_path / "h.json", **times))
    assert len({finding.id for finding in found.findings}) == len(found.findings)
    assert verify(tmp_path / "r") == []


def test_another_margin_is_kept_beside_the_result(tmp_path: Path) -> None:
    analysed(tmp_path / "r", "hyperfine", str(GOLDEN / "hyperfine.json"))
    assert execute(["analyse", str(tmp_path / "r"), "--margin", "900"]) == 2
    assert execute(["analyse", str(tmp_path / "r"), "--margin", "50"]) == 0
    assert analyse(tmp_path / "r").findings == read_findings(tmp_path / "r" / "findings.json").findings
    assert verify(tmp_path / "r") == []


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((1, 1), "2 samples (a cell and a metric) of one value each; no series is long enough (20 values)"),
        ((3, 2, 5), "3 samples (a cell and a metric) of at most 5 values each; no series is long enough"),
        (
            (30, 2, 40),
            "3 samples (a cell and a metric); their series: 2 flat, 1 with too few values to tell.",
        ),
        ((30, 40), "2 samples (a cell and a metric); their series: 2 flat."),
    ],
)
def test_the_answer_says_of_how_many_series_nothing_can_be_told(
    tmp_path: Path, sizes: tuple[int, ...], said: str
) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "t.csv"
    lines = [
        f"w{number},{value:.3f}" for number, size in enumerate(sizes) for value in rng.normal(9, 0.1, size)
    ]
    path.write_text("\n".join(["workload,time", *lines, ""]), encoding="utf-8")
    analysed(
        tmp_path / "r",
        "csv",
        str(path),
        "--column",
        "value=time",
        "--column",
        "workload=workload",
        "--unit",
        "ms",
    )
    assert any(said in each.text for each in build(tmp_path / "r").answer)
