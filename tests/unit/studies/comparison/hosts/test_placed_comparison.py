"""A comparison whose hosts are played: what they lose, tear or do twice counts once."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import numpy as np
import pytest

from fixtures.outcomes import make_outcome
from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.errors import CapabilityError, RunError, UsageError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.ledger_reader import LedgerReader
from steelyard.record.placed.journal import JOURNAL_NAME, Journal, JournalReader
from steelyard.record.provenance import begin_provenance, read_provenance, write_provenance
from steelyard.record.tables import read_runs
from steelyard.run.hosts.engine import Pending
from steelyard.run.progress import Silent
from steelyard.studies.comparison.contender import Commands, Hooks
from steelyard.studies.comparison.export import to_json
from steelyard.studies.comparison.hosts.execution import compare_on_hosts, continue_on_hosts
from steelyard.studies.comparison.hosts.part import BlockSink
from steelyard.studies.comparison.hosts.request import PlacedRequest
from steelyard.studies.comparison.report.page import build
from steelyard.studies.comparison.terms import Mode, Terms
from steelyard.studies.comparison.text import render
from steelyard.studies.placed import driver
from steelyard.studies.placed.part import execute_part
from steelyard.studies.placed.parts import read_part, result_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.comparison.outcome import Comparison

RUNS = 12
SCHEMA = Path(__file__).parents[5] / "docs/reference/comparison.schema.json"
TOLD = (("steelyard", "compare"), Silent())
TWO = Commands(("/bin/true", "/bin/false"), names=("old", "new"))
TERMS = Terms(warmup=1, extent=Extent(RUNS, RUNS))


class KilledError(BaseException):
    """The submitting process is gone."""


class Played:
    """An engine whose hosts write what planted effects give, and do one part badly."""

    is_here = False
    names = ()

    def __init__(self, effects: Sequence[float], fault: str = "", status: str = "completed") -> None:
        self.effects = effects
        self.fault = fault
        self.status = status
        self.machine = ""
        self.size = self.width = len(effects)
        self.placed: list[tuple[int, ...]] = []
        self._rng = np.random.default_rng(1)

    def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
        """Run all parts at once, each on the next host."""
        for host, part in enumerate(parts):
            self.placed.append(read_part(part).batches)
            fault, self.fault = self.fault, ""
            if fault == "lost":
                continue
            journal = self.run(part, host % self.size)
            if fault == "twice":
                self.run(part, (host + 1) % self.size)
            if fault == "torn":
                content = journal.read_bytes()
                journal.write_bytes(content[: len(content) * 2 // 3])
            if fault == "killed":
                raise KilledError

    def pending(self) -> Pending:
        """Nothing: all are over."""
        return Pending(frozenset())

    def cancel(self) -> None:
        """Nothing."""

    def run(self, part: Path, host: int) -> Path:
        """Write what a host would."""
        plan = read_plan(result_of(part) / PLAN_NAME)
        wanted = frozenset(read_part(part).batches)
        start = part / "starts" / f"h{host}.{len(list(part.glob('starts/*')))}"
        start.mkdir(parents=True)
        provenance = begin_provenance(
            plan, ["run-part"], host_id=f"{self.machine}:n{host}" if self.machine else f"{host:016x}"
        )
        write_provenance(start, replace(provenance, host={"hostname": f"h{host}"}))
        blocks = defaultdict(list)
        for batch in plan.batches:
            if batch.number in wanted:
                blocks[batch.block].append(batch)
        with Journal(start / JOURNAL_NAME) as journal:
            sink = BlockSink(journal, wanted, ignores_failure=False)
            for block in blocks.values():
                for batch in block:
                    wall_ns = round(
                        1e9
                        * np.exp(
                            host + self.effects[host] * (batch.cell % 2) + 0.01 * self._rng.standard_normal()
                        )
                    )
                    wall = {"value": wall_ns, "source": "perf_record", "granularity": 1}
                    outcome = make_outcome(status=self.status, quantities={"wall_ns": wall}, own=[])
                    sink.record(batch.number, sink.begin_attempt(batch.number), 0, outcome)
                sink.block_done(None)  # type: ignore[arg-type]
                sink.complete_together([(batch.number, 1) for batch in block])
        return journal.path


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "SETTLE_S", 0.0)
    monkeypatch.setattr(driver, "LOOK_S", 0.0)


def compared(result: Path, engine: Played, terms: Terms = TERMS) -> Comparison:
    return compare_on_hosts(TWO, terms, result, lambda _: engine, TOLD)


def check_whole(result: Path, hosts: int) -> None:
    """Check that each run of the plan counts once, and that each block was measured by one host."""
    plan = read_plan(result / PLAN_NAME)
    assert plan.blocks == 1 + RUNS * hosts
    runs = read_runs(result).to_pylist()
    assert sorted(run["batch"] for run in runs) == [batch.number for batch in plan.batches]
    of_block = defaultdict(set)
    for run in runs:
        of_block[run["block"]].add(run["host_id"])
    assert {len(of) for of in of_block.values()} == {1}


@pytest.mark.parametrize("fault", ["", "lost", "twice", "torn"])
@pytest.mark.parametrize("hosts", [1, 2, 4])
def test_whatever_a_host_does_each_block_counts_once(tmp_path: Path, hosts: int, fault: str) -> None:
    effects = [0.1, 0.101, 0.099, 0.1][:hosts]
    found = compared(tmp_path / "r", Played(effects, fault))
    check_whole(tmp_path / "r", hosts)
    (claim,) = found.claims
    # What a host lost is dealt to four: its own three blocks give no interval, which is said.
    few = RUNS // hosts if (fault, hosts) == ("lost", 4) else 0
    assert any("`h0` does not count: its 3 runs" in each for each in found.warnings) == bool(few)
    assert claim.runs == (RUNS * hosts - few, RUNS * hosts - few)
    assert (str(claim.verdict), found.end) == ("slower", "spent")
    assert claim.low <= np.exp(np.mean(effects)) <= claim.high
    assert [part.runs for part in found.hosts[0].parts].count(RUNS) == hosts or fault in {"lost", "torn"}
    # Speeds differ by a factor of e between hosts, which falls out where each compares on itself.
    assert claim.high / claim.low < 1.2
    with LedgerReader(tmp_path / "r" / "ledger.sqlite") as ledger:
        late = [reasons for reasons in ledger.disturbances().values() if "another host" in reasons[0]]
    assert bool(late) == (fault == "twice")


def test_a_killed_submitter_goes_on_with_what_is_left(tmp_path: Path) -> None:
    result = tmp_path / "r"
    with pytest.raises(KilledError):
        compared(result, Played((0.1, 0.1, 0.1), "killed"))
    journal = next(result.glob(f"placed/*/starts/*/{JOURNAL_NAME}"))
    before = {each.batch for each in JournalReader(journal).completed()}
    assert before
    engine = Played((0.1, 0.1, 0.1))
    found = continue_on_hosts(result, lambda _: engine, TOLD)
    assert not before & {batch for batches in engine.placed for batch in batches}
    check_whole(result, 3)
    assert "on hosts like these 3" in found.claims[0].sentence
    again = continue_on_hosts(result, lambda _: engine, TOLD)
    assert again.claims == found.claims
    assert [session.host_id for session in read_provenance(result).sessions].count("") == 3


def test_findings_and_report_say_what_each_host_says(tmp_path: Path) -> None:
    result = tmp_path / "r"
    found = compared(result, Played((0.05, 0.1, 0.15, 0.02)))
    findings = json.loads((result / "findings.json").read_text())["findings"]
    alone = {each["subject"]["host"]: each for each in findings if each["claim"] == "on_host"}
    assert set(alone) == {"h0", "h1", "h2", "h3"}
    for host, effect in zip(alone, (0.05, 0.1, 0.15, 0.02), strict=True):
        ratio = alone[host]["estimates"]["ratio"]
        assert ratio["low"] < np.exp(effect) < ratio["high"]
    (over,) = (each for each in findings if each["claim"] == "comparison")
    assert over["facts"]["sentence"] == found.claims[0].sentence
    new = over["estimates"]["new_host"]
    assert new["low"] < np.exp(0.02) < np.exp(0.15) < new["high"]
    jsonschema.validate(json.loads(to_json(found)), json.loads(SCHEMA.read_bytes()))
    assert "one more host like these: expected" in render(found)
    page = build(result)
    assert any(section.id == "hosts" for section in page.sections)
    assert any("on hosts like these 4" in statement.text for statement in page.answer)


def test_nodes_of_one_machine_are_one_host(tmp_path: Path) -> None:
    engine = Played((0.1, 0.1, 0.1))
    engine.machine = "a" * 16
    found = compared(tmp_path / "r", engine)
    assert "on this host alone" in found.claims[0].sentence
    assert found.claims[0].runs == (3 * RUNS, 3 * RUNS)


def test_a_failed_run_ends_it_and_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"`(old|new)` failed on host `h0` with"):
        compared(tmp_path / "r", Played((0.1, 0.1), status="nonzero_exit"))
    found = compared(
        tmp_path / "s", Played((0.1, 0.1), status="nonzero_exit"), replace(TERMS, ignores_failure=True)
    )
    assert str(found.claims[0].verdict) == "slower"


def planned(folder: Path, commands: Commands, terms: Terms) -> Path:
    """Give a part of a comparison that nobody has run."""

    class Stop(Played):
        def place(self, parts: Sequence[Path], _hosts: Sequence[str] = (), /) -> None:
            raise KilledError

    with pytest.raises(KilledError):
        compare_on_hosts(commands, terms, folder, lambda _: Stop((0.0,)), TOLD)
    return folder / "placed" / "part-0001"


@pytest.mark.parametrize("change", ["another", "no"])
def test_a_host_with_another_program_or_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    part = planned(tmp_path / "r", Commands(("./program a", "./program b")), TERMS)
    if change == "no":
        program.unlink()
    else:
        program.write_text("#!/bin/sh\nexit 0\n")
    with pytest.raises(CapabilityError, match=f"has {change} `{program}`"):
        execute_part(part, ["run-part"], Silent())
    (start,) = part.glob("starts/*")
    assert f"has {change} `{program}`" in read_provenance(start).notes[-1]
    assert not (start / JOURNAL_NAME).exists()
    with pytest.raises(UsageError, match="has changed since"):
        continue_on_hosts(tmp_path / "r", lambda _: Played((0.0,)), TOLD)


def test_a_host_without_the_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    part = planned(tmp_path / "r", TWO, TERMS)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work").rmdir()
    with pytest.raises(CapabilityError, match=f"has no folder `{tmp_path / 'work'}`"):
        execute_part(part, ["run-part"], Silent())
    assert Path.cwd() == tmp_path


def test_what_a_plan_says_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").write_text("x")
    hooks = (Hooks(setup="true"), Hooks(prepare="true"))
    terms = replace(TERMS, cpus=(1,), environment=("A=1", "PATH"), input=tmp_path / "in")
    commands = replace(TWO, hooks=hooks)
    part = planned(tmp_path / "r", commands, terms)
    plan = read_plan(tmp_path / "r" / PLAN_NAME)
    request = PlacedRequest.from_plan(plan)
    back = request.terms(plan, 5)
    assert (back.cpus, back.environment, back.input, back.hosts) == (
        (1,),
        ("A=1", "PATH"),
        tmp_path / "in",
        0,
    )
    entrants = request.entrants(plan)
    assert [each.hooks for each in entrants.contenders] == list(hooks)
    assert [each.words for each in entrants.contenders] == [("/bin/true",), ("/bin/false",)]
    assert request.folder == str(tmp_path)
    assert set(read_part(part).batches) == {batch.number for batch in plan.batches}


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (replace(TERMS, mode=Mode.DUET), "--mode"),
        (replace(TERMS, layout="random"), "--layout"),
        (replace(TERMS, environment=("API_TOKEN=x",)), "API_TOKEN"),
        (replace(TERMS, extent=Extent(5, 9)), "at least 10"),
    ],
)
def test_what_cannot_be_placed_is_refused(tmp_path: Path, terms: Terms, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compared(tmp_path / "r", Played((0.1,)), terms)
    assert not (tmp_path / "r").exists()
