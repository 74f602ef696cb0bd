"""`steelyard compare --mode` and `--layout` with real programs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from steelyard.cli import execute
from steelyard.model.finding import read_findings
from steelyard.model.plan import read_plan
from steelyard.record.provenance import read_provenance
from steelyard.run.machine.host import read_topology

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timing
CORES = len({cpu.core for cpu in read_topology().cpus if cpu.id in read_topology().allowed})
needs_two_cores = pytest.mark.skipif(CORES < 2, reason="a duet needs two cores")
STACK_WORDS = Path(__file__).parents[1] / "fixtures" / "stack_words.c"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sy-") as state:  # short: sockets lie below it
        monkeypatch.setenv("STEELYARD_STATE", state)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", sys.argv)  # what is recorded, and goes on
        yield tmp_path
        assert list(Path(state).iterdir()) == [], "private folders were left behind"


@pytest.fixture(scope="module")
def stack_words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Build the program whose speed depends on the place of its stack."""
    program = tmp_path_factory.mktemp("program") / "stack-words"
    subprocess.run(["cc", "-O2", "-o", program, STACK_WORDS], check=True)
    return str(program)


def compared(capfd: pytest.CaptureFixture[str], *words: str) -> tuple[dict[str, Any], str]:
    capfd.readouterr()
    sys.argv = ["steelyard", "compare", "--json", *words]
    code = execute(sys.argv[1:])
    output, error = capfd.readouterr()
    assert code in {0, 1}, output[:2000] + error
    document: dict[str, Any] = json.loads(output)
    return document, error


CLEAN = ("--clean-environment", "--metric", "cpu", "--budget", "40s")


def sized(program: str, size: int, rounds: str) -> str:
    return f"setarch -R env SIZE={'x' * size} {program} {rounds}"


def places(capfd: pytest.CaptureFixture[str], program: str, told: Path) -> list[int]:
    """Give the size of a variable with which words lie inside of cache lines, and one with which they cross.

    They are looked for by the way in which the program is measured later: its environment is the same.
    """
    commands = [sized(program, size, "0000000") for size in range(0, 64, 16)]
    compared(capfd, "--no-record", *CLEAN, "--output", str(told), "--runs-max", "10", *commands)
    found = dict(map(int, line.split()) for line in told.read_text().splitlines())
    return [found[0], found[48]]


@needs_two_cores
@pytest.mark.slow
def test_both_sides_of_a_duet_run_at_once_on_cores_that_they_swap(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    tell = (
        "import os, time; time.sleep(0.1); "
        "open(f'cpus-{os.getpid()}', 'w').write(str(os.sched_getaffinity(0)))"
    )
    command = shlex.join([sys.executable, "-c", tell])
    extent = ("--runs-min", "6", "--runs-max", "6", "--budget", "60s")
    found, _ = compared(capfd, "--out", "r", "--mode", "duet", *extent, command, command)
    assert found["terms"]["mode"] == "duet"
    assert found["duet"]["blocks"] >= 5
    assert found["duet"]["median"] > 0.5
    runs = pl.read_parquet(here / "r" / "runs.parquet").filter(pl.col("phase") == "measure")
    for _, block in runs.group_by("block"):
        assert sorted(block["worker"]) == [0, 1]
        assert block["start_ns"].max() < block["end_ns"].min(), "the sides take turns"
    sides = runs.filter(pl.col("cell") == 2).sort("block")
    workers = dict(zip(sides["block"], sides["worker"], strict=True))
    assert all(workers[block] != workers[block + 1] for block in (2, 4))
    told = [path.read_text() for path in here.glob("cpus-*")]
    sets = {frozenset(map(int, text.strip("{}").split(","))) for text in told}
    assert len(sets) == 2, told
    first, second = sets
    assert first.isdisjoint(second)
    cores = {cpu.id: cpu.core for cpu in read_topology().cpus}
    assert {cores[cpu] for cpu in first}.isdisjoint(cores[cpu] for cpu in second), "threads of one core"
    assert execute(["verify", "r"]) == 0
    overlaps = read_findings(here / "r" / "findings.json").of("overlap")
    assert overlaps[0].facts["sentence"].startswith("duet: both sides ran at the same time in ")


@needs_two_cores
@pytest.mark.slow
def test_blocks_with_a_small_overlap_are_named(capfd: pytest.CaptureFixture[str]) -> None:
    extent = ("--runs-min", "5", "--runs-max", "5", "--budget", "60s", "--no-record")
    found, _ = compared(capfd, "--mode", "duet", *extent, "sleep 0.1", "sleep 0.4")
    assert found["duet"]["small"] == [1, 2, 3, 4, 5]
    assert found["duet"]["median"] == pytest.approx(0.25, abs=0.1)
    assert all(command["flags"]["small_overlap"] == 5 for command in found["commands"])


@needs_two_cores
@pytest.mark.slow
def test_a_mode_is_chosen_by_a_trial_and_kept_when_it_goes_on(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = "sleep 0.01"
    words = ("--mode", "auto", "--budget", "4s", "--runs-max", "200", command, command)
    found, error = compared(capfd, "--out", "r", "--margin", "0.001%", *words)
    choice = found["mode_choice"]
    assert choice["baseline"] == f"{command} [1]"
    assert min(choice["pairs"]) > 2
    assert "mode: " in error
    assert found["terms"]["mode"] == ("duet" if choice["verdict"] == "duet" else "turns")
    plan = read_plan(here / "r" / "plan.json")
    assert len(json.loads(str(plan.options["trial"]))["duet"]) == choice["pairs"][1]
    (finding,) = read_findings(here / "r" / "findings.json").of("mode")
    assert (finding.verdict, finding.facts["mode"]) == (choice["verdict"], found["terms"]["mode"])
    before = len(found["runs"])
    assert execute(["compare", "--json", "--resume", "r", "--budget", "2s"]) in {0, 1}
    output, error = capfd.readouterr()
    again = json.loads(output)
    assert again["mode_choice"] == choice
    assert again["terms"]["mode"] == found["terms"]["mode"]
    assert len(again["runs"]) > before
    assert str(choice["pairs"][0]) in error
    assert execute(["verify", "r"]) == 0


def test_what_a_duet_cannot_do_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    assert execute(["compare", "--mode", "duet", "true", "true", "true"]) == 2
    assert "`--mode duet` runs two commands at the same time; given: 3" in capfd.readouterr().err
    assert execute(["compare", "--mode", "duet", "--cpus", "0", "true", "true"]) == 2
    error = capfd.readouterr().err
    assert "`--mode duet`: two programs at the same time need two cores of one kind; usable here: 1" in error
    assert "hint: let them take turns: `--mode turns`" in error
    assert execute(["compare", "--mode", "both", "true", "true"]) == 2
    assert execute(["compare", "--layout", "fixed", "true", "true"]) == 2
    assert "duet" in capfd.readouterr().err


@pytest.mark.long("an effect of layout is measured")
def test_the_place_of_the_stack_is_no_difference_where_it_is_drawn(
    stack_words: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good, bad = places(capfd, stack_words, here / "told")
    sides = [sized(stack_words, size, "9000000") for size in (good, bad)]
    names = ("--name", "small", "--name", "large")
    fixed, _ = compared(capfd, "--no-record", *CLEAN, *names, "--runs-max", "60", *sides)
    if fixed["claims"][0]["ratio"] < 1.1:
        pytest.skip("this processor does not care about words on the end of a cache line")
    assert fixed["verdict"] == "slower", "the same program, in environments of two sizes"
    drawn, _ = compared(
        capfd, "--out", "r", "--layout", "random", *CLEAN, *names, "--runs-max", "120", *sides
    )
    assert drawn["verdict"] not in {"slower", "faster"}
    (share,) = drawn["layouts"]
    assert share["verdict"] == "present"
    assert share["low"] > 0
    runs = pl.read_parquet(here / "r" / "runs.parquet").sort("position")
    own, repeated = (runs.filter(pl.col("phase") == phase) for phase in ("measure", "repeat"))
    assert own["environment_padding_bytes"].n_unique() > 50
    assert own["randomised_addresses"].all()
    assert repeated.group_by("cell").agg(pl.col("environment_padding_bytes").n_unique())[
        "environment_padding_bytes"
    ].to_list() == [2, 2]
    assert not repeated["randomised_addresses"].any()
    assert execute(["report", "r"]) == 0
    page = (here / "r" / "report.html").read_text(encoding="utf-8")
    assert "in layouts that came back" in page


@pytest.mark.slow
def test_layouts_go_on_as_they_were_drawn_and_are_recorded(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Not all 20 pairs fit into the budget, on whatever machine.
    command = shlex.join(["sh", "-c", "echo ${#STEELYARD_PADDING}; sleep 0.04"])
    words = ("--layout", "random", "--output", str(here / "sizes"), "--runs-min", "5", "--runs-max", "20")
    endless = ("--margin", "0.001%", "--level", "99.9999%")
    found, _ = compared(capfd, "--out", "r", *endless, *words, "--budget", "1s", command, command)
    assert execute(["compare", "--resume", "r", "--budget", "20s", "--json"]) in {0, 1}
    capfd.readouterr()
    runs = pl.read_parquet(here / "r" / "runs.parquet").sort("position")
    assert len(runs) > len(found["runs"])
    told = list(map(int, (here / "sizes").read_text().split()))
    recorded = runs["environment_padding_bytes"].to_list()
    first = len(found["runs"])
    assert told[:first] == recorded[:first]
    assert told[first + 2 :] == recorded[first:], "the warm-up is repeated, and not recorded again"
    assert set(runs["phase"].to_list()) == {"warmup", "measure", "repeat"}
    measured = runs.filter(pl.col("phase") == "measure")
    assert found["layouts"][0]["verdict"] == "undecided"
    (finding,) = read_findings(here / "r" / "findings.json").of("layout")
    assert finding.facts["blocks_own_layout"] == len(measured) // 2
    assert finding.facts["blocks_repeated_layout"] == (len(runs) - len(measured)) // 2 - 1
    assert "kernel_randomises_addresses" in read_provenance(here / "r").environment
    assert execute(["verify", "r"]) == 0


def test_a_result_without_these_columns_is_what_it_was(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found, _ = compared(capfd, "--out", "r", "--runs-max", "10", "true", "true")
    assert (found["terms"]["mode"], found["terms"]["layout"]) == ("turns", "host")
    assert (found["duet"], found["mode_choice"], found["layouts"]) == (None, None, [])
    columns = pl.read_parquet_schema(here / "r" / "runs.parquet")
    assert not {"environment_padding_bytes", "randomised_addresses"} & set(columns)
    assert {"mode", "layout", "trial"}.isdisjoint(read_plan(here / "r" / "plan.json").options)
    assert execute(["verify", "r"]) == 0
