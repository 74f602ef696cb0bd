"""`steelyard compare-results` as a gate: launches of imported files, and what leaves with exit code 1."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from steelyard.cli import execute

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def launches(ratio: float, seed: int, count: int = 20, spread: float = 0.02) -> NDArray[np.float64]:
    return ratio * np.exp(spread * np.random.default_rng(seed).standard_normal(count))


def hyperfine(folder: Path, name: str, **commands: NDArray[np.float64] | dict[str, object]) -> str:
    """Import one file of hyperfine, analyse it, and give the result folder."""
    results = [
        {"command": command, **(times if isinstance(times, dict) else {"times": times.tolist()})}
        for command, times in commands.items()
    ]
    (folder / f"{name}.json").write_text(json.dumps({"results": results}), encoding="utf-8")
    return analysed(folder, name, "hyperfine", str(folder / f"{name}.json"))


def analysed(folder: Path, name: str, *words: str) -> str:
    result = str(folder / name)
    assert execute(["import", *words, "--out", result]) == 0
    assert execute(["analyse", result]) == 0
    return result


@pytest.mark.parametrize(
    ("ratio", "codes"),
    [(1.1, (1, 1, 1)), (0.9, (0, 1, 0)), (1.0, (0, 0, 0))],
    ids=["slower", "faster", "same"],
)
def test_launches_of_one_file_a_side_are_units(
    tmp_path: Path, ratio: float, codes: tuple[int, int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    base = hyperfine(tmp_path, "base", sort=launches(1.0, 1), sum=launches(2.0, 2))
    new = hyperfine(tmp_path, "new", sort=launches(ratio, 3), sum=launches(2.0, 4))
    words = ["compare-results", base, new, "--margin", "4%"]
    given = [execute([*words, "--fail-on", each]) for each in ("slower", "changed", "undecided")]
    assert tuple(given) == codes
    capsys.readouterr()
    assert execute([*words, "--json"]) == codes[1], "`changed` is the default"
    found = json.loads(capsys.readouterr().out)
    cells = {each["levels"]["workload"]: each for each in found["cells"]}
    assert cells["sort"]["ratio"]["repetitions"] == [20, 20]
    assert (cells["sort"]["unit_level"], cells["sum"]["agreement"]) == ("launch", "agreed")
    assert cells["sort"]["guaranteed"] is False, "one session of measuring a side"
    assert found["exit_code"] == codes[1]


def test_without_a_margin_that_of_the_import_is_taken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base, new = (
        hyperfine(tmp_path, name, c=launches(ratio, seed))
        for name, ratio, seed in (("b", 1.0, 5), ("n", 1.1, 6))
    )
    capsys.readouterr()
    assert execute(["compare-results", base, new]) == 1
    text = capsys.readouterr().out
    assert "1 cell in both: 1 changed by more than 2 % (1 slower)" in text.splitlines()[0]
    assert "20 and 20 launches" in text
    assert "in no interval" in text, "one session of measuring after the other is said"


def test_launches_of_recodex_files_are_units_and_their_workers_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = []
    for name, ratio in (("b", 1.0), ("n", 1.1)):
        times = [launches(ratio, ord(name) + worker) for worker in range(2)]
        rows = [
            f"bare,parallel-homogenous,2,w{worker},exp,8,{at},wall,{times[worker][at]:.9f}"
            for worker in range(2)
            for at in range(20)
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows), encoding="utf-8")
        sides.append(analysed(tmp_path, name, "recodex", str(tmp_path / f"{name}.csv")))
    capsys.readouterr()
    assert execute(["compare-results", *sides, "--json"]) == 1
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["unit_level"], cell["ratio"]["repetitions"]) == ("launch", [20, 20])
    assert cell["ratio"]["value"] == pytest.approx(1.1, rel=0.02)


@pytest.mark.parametrize("count", [5, 8])
def test_so_few_launches_that_nothing_is_sure_fail_where_it_is_asked_for(tmp_path: Path, count: int) -> None:
    times = np.exp(0.2 * np.linspace(-1, 1, count))
    base, new = hyperfine(tmp_path, "b", c=times), hyperfine(tmp_path, "n", c=times[::-1])
    assert execute(["compare-results", base, new]) == 0
    assert execute(["compare-results", base, new, "--fail-on", "undecided"]) == 1


def test_files_are_units_where_there_are_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files that differ by 5 % each: their launches alone would call the same program changed."""
    rng = np.random.default_rng(9)
    sides = []
    for side in ("b", "n"):
        files = []
        for at in range(4):
            times = launches(float(np.exp(0.05 * rng.standard_normal())), int(rng.integers(1000)), 20, 0.005)
            path = tmp_path / f"{side}{at}.json"
            path.write_text(json.dumps({"results": [{"command": "c", "times": times.tolist()}]}))
            files.append(str(path))
        sides.append(analysed(tmp_path, side, "hyperfine", *files))
    capsys.readouterr()
    assert execute(["compare-results", *sides, "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["unit_level"], cell["ratio"]["repetitions"]) == ("repetition", [4, 4])
    assert cell["guaranteed"] is False, "four files are too few for that"


def test_less_throughput_is_slower(tmp_path: Path) -> None:
    sides = []
    for name, rate in (("b", 100.0), ("n", 90.0)):
        rows = [f"{at},{value}" for at, value in enumerate(launches(rate, ord(name)).tolist())]
        (tmp_path / f"{name}.csv").write_text("\n".join(["run,value", *rows]))
        sides.append(analysed(tmp_path, name, "csv", str(tmp_path / f"{name}.csv"), "--unit", "ops/s"))
    assert execute(["compare-results", *sides, "--fail-on", "slower"]) == 1
    assert execute(["compare-results", *sides[::-1], "--fail-on", "slower"]) == 0


def test_two_programs_measured_one_by_one_are_laid_over_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = hyperfine(tmp_path, "b", **{"./old": launches(1.0, 11)})
    new = hyperfine(tmp_path, "n", **{"./new": launches(1.1, 12)})
    capsys.readouterr()
    assert execute(["compare-results", base, new]) == 1
    assert "`./new` is compared with `./old`" in capsys.readouterr().out


def test_results_with_nothing_in_common_are_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    base = hyperfine(tmp_path, "b", one=launches(1.0, 13), two=launches(1.0, 14))
    new = hyperfine(tmp_path, "n", three=launches(1.0, 15), four=launches(1.0, 16))
    capsys.readouterr()
    assert execute(["compare-results", base, new]) == 6
    said = capsys.readouterr().err
    assert all(f"`{name}: wall [ns]`" in said for name in ("one", "two", "three", "four")), said


def test_a_program_that_only_one_result_has_is_undecided(tmp_path: Path) -> None:
    base = hyperfine(tmp_path, "b", one=launches(1.0, 17, spread=0.001), two=launches(1.0, 18))
    new = hyperfine(tmp_path, "n", one=launches(1.0, 19, spread=0.001))
    assert execute(["compare-results", base, new]) == 0
    assert execute(["compare-results", base, new, "--fail-on", "undecided"]) == 1


def test_failed_launches_do_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the new launches fail at once, and the others are slower: no mean of both."""
    times = np.concatenate([launches(0.1, 21, 10), launches(1.1, 22, 10)])
    failing: dict[str, object] = {"times": times.tolist(), "exit_codes": [1] * 10 + [0] * 10}
    base, new = hyperfine(tmp_path, "b", c=launches(1.0, 20)), hyperfine(tmp_path, "n", c=failing)
    assert "launches that failed: 10" in capsys.readouterr().out
    assert execute(["compare-results", base, new, "--json"]) == 1
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["ratio"]["repetitions"] == [20, 10]
    assert cell["ratio"]["value"] == pytest.approx(1.1, rel=0.02)


def test_only_failed_launches_are_nothing_to_analyse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"results": [{"command": "c", "times": [1.0, 1.1], "exit_codes": [2, None]}]}
    (tmp_path / "h.json").write_text(json.dumps(content))
    assert execute(["import", "hyperfine", str(tmp_path / "h.json"), "--out", str(tmp_path / "r")]) == 0
    assert execute(["analyse", str(tmp_path / "r")]) == 6
    assert "launch that completed" in capsys.readouterr().err


def test_a_history_of_one_result_is_no_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = hyperfine(tmp_path, "one", c=launches(1.0, 23))
    capsys.readouterr()
    assert execute(["history", one]) == 6
    assert "a history needs at least two results; given: `one.json`" in capsys.readouterr().err


def test_a_history_whose_results_share_no_cell_is_no_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [hyperfine(tmp_path, f"r{at}", **{f"c{at}": launches(1.0, at)}) for at in range(4)]
    capsys.readouterr()
    assert execute(["history", *folders]) == 6
    assert "4 results contain 4 different cells" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "codes"), [(1.2, (1, 1, 1)), (0.8, (0, 1, 0)), (1.0, (0, 0, 0))], ids=["up", "down", "none"]
)
def test_what_fails_a_history_is_chosen(tmp_path: Path, change: float, codes: tuple[int, int, int]) -> None:
    files = []
    for at in range(20):
        times = launches(change if at >= 10 else 1.0, at, 10, 0.01).tolist()
        (tmp_path / f"{at:02d}.json").write_text(
            json.dumps({"results": [{"command": "c", "times": times}]}), encoding="utf-8"
        )
        files.append(str(tmp_path / f"{at:02d}.json"))
    result = str(tmp_path / "all")
    assert execute(["import", "hyperfine", *files, "--out", result]) == 0
    words = ["history", result, "--independent", "--fail-on"]
    assert tuple(execute([*words, each]) for each in ("slower", "changed", "undecided")) == codes


def test_an_answer_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["history", str(tmp_path), "--fail-on", "red"]) == 2
    said = capsys.readouterr().err
    assert all(each in said for each in ("slower", "undecided", "changed"))


@pytest.mark.parametrize("sizes", [(2, 200), (200, 2)])
def test_longer_runs_of_the_same_program_pass_and_what_counts_is_said(
    tmp_path: Path, sizes: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    sides = []
    for name, size in zip("bn", sizes, strict=True):
        values = np.random.default_rng([7, ord(name)]).exponential(1.0, (30, size))
        rows = [f"{run},{value}" for run in range(30) for value in values[run].tolist()]
        (tmp_path / f"{name}.csv").write_text("\n".join(["run,value", *rows]))
        sides.append(analysed(tmp_path, name, "csv", str(tmp_path / f"{name}.csv"), "--unit", "s"))
    capsys.readouterr()
    assert execute(["compare-results", *sides, "--margin", "2%"]) == 0
    said = f"the launches hold {sizes[0]} against {sizes[1]} values"
    assert said in capsys.readouterr().out
    assert execute(["compare-results", *sides, "--margin", "2%", "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert said in cell["remark"]
    assert cell["ratio"]["low"] < 1 < cell["ratio"]["high"]


def table(folder: Path, name: str, unit: str, values: NDArray[np.float64]) -> str:
    (folder / f"{name}.csv").write_text("\n".join(["value", *map(str, values)]) + "\n", encoding="utf-8")
    words = ["--unit", unit, "--rows", "run", "--workload", "w"]
    return analysed(folder, name, "csv", str(folder / f"{name}.csv"), *words)


@pytest.mark.parametrize(
    ("units", "scale", "is_slower"),
    [
        (("MB/s", "MB/s"), 0.5, True),
        (("GiB/s", "GiB/s"), 2.0, False),
        (("requests/min", "requests/min"), 0.5, True),
        (("fps", "fps"), 0.5, True),
        (("Mbps", "Mbps"), 2.0, False),
        (("errors/s", "errors/s"), 0.5, False),
        (("ops/s", "ops/ms"), 0.0005, True),
        (("ops/ms", "ops/s"), 2000.0, False),
        (("ms", "\u00b5s"), 2000.0, True),
        (("us", "usec"), 0.5, False),
    ],
)
def test_half_of_a_rate_is_slower_and_half_of_a_time_is_not(
    tmp_path: Path,
    units: tuple[str, str],
    scale: float,
    is_slower: bool,  # noqa: FBT001 - a case
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = table(tmp_path, "base", units[0], launches(1.0, 1))
    new = table(tmp_path, "new", units[1], scale * launches(1.0, 2))
    capsys.readouterr()
    assert execute(["compare-results", base, new, "--fail-on", "slower", "--json"]) == int(is_slower)
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["agreement"] == "moved"
    assert cell["is_slower"] is is_slower
    assert min(abs(cell["ratio"]["value"] - each) for each in (0.5, 2.0)) < 0.03


def test_results_of_other_units_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, new = (table(tmp_path, f"r-{unit}", unit, launches(1.0, 1)) for unit in ("ms", "boxes"))
    capsys.readouterr()
    assert execute(["compare-results", base, new]) != 0
    said = capsys.readouterr().err
    assert "`w: value [ns]`" in said
    assert "`w: value [boxes]`" in said
