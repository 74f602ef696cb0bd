"""Planted trials through analysis, tables, report and verification."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from fixtures.colocation_trials import Planted, build_result, planted_trial
from steelyard.errors import AnalysisError, DataError
from steelyard.report.html import render_html
from steelyard.report.page import Prose
from steelyard.share.verify import verify
from steelyard.studies.colocation.analysis import analyse
from steelyard.studies.colocation.report.page import build
from steelyard.studies.colocation.tables import BIN_COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Finding, FindingSet
    from steelyard.studies.colocation.trial import Trial

COUNTERS: dict[str, Any] = {
    "format": "steelyard/scheduler-counters/1",
    "active": True,
    "ejections": 0,
    "last_exit": "",
    "switches": {"local": True, "entry": True, "exit": False},
    "counters": {
        "scheduling_events": 110_000,
        "entry_runs": 60_000,
        "entry_successes": 12_500,
        "exit_runs": 20_000,
        "exit_successes": 10_000,
        "local_lc_picks": 30_000,
    },
    "histograms_ns": {"entry": [0] * 10 + [30, 5], "exit": [], "local": []},
    "strictness": {"violation_ns": 5_000_000, "violations": 100, "longest_ns": 9_000_000, "events": 110_000},
}
UNAVAILABLE = "this kernel has no sched_ext (repair: Linux 6.12 or newer)"
PARKED = (9.0, 11.5)


def _of(findings: FindingSet, claim: str, policy: str, **subject: str) -> Finding:
    wanted = {"policy": policy, **subject}
    (found,) = (each for each in findings.of(claim) if wanted.items() <= each.subject.items())
    return found


def _value(finding: Finding, role: str) -> float:
    value = finding.estimates[role].value
    assert value is not None
    return value


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cells: dict[tuple[str, int], Any] = {
        ("none", 50): Planted(load=0.5, is_uniform=True, jobs=0),
        ("weights", 50): Planted(load=0.5, is_uniform=True, slowdown=1.5, rate_per_s=100),
        ("idle", 50): Planted(load=0.5, is_uniform=True, slowdown=1.1, rate_per_s=80, lost=4),
        ("be", 50): Planted(load=0.5, is_uniform=True, rate_per_s=70, parked=(PARKED,), scheduler=COUNTERS),
        ("be-no-exit", 50): UNAVAILABLE,
        ("fifo", 50): Planted(
            load=0.5, is_uniform=True, rate_per_s=0.05, late_s=0.002, policy={"service_class": "fifo"}
        ),
    }
    return build_result(tmp_path_factory.mktemp("planted") / "result", cells, blocks=5, twin=("none", 50))


@pytest.fixture(scope="module")
def findings(result: Path) -> FindingSet:
    return analyse(result)


def test_planted_slowdowns_are_found_inside_their_limits(findings: FindingSet) -> None:
    for policy, slowdown in (("none", 1.0), ("weights", 1.5), ("be", 1.0)):
        ratio = _of(findings, "isolation", policy).estimates["ratio"]
        assert ratio.low is not None
        assert ratio.high is not None
        assert ratio.low - 0.002 <= slowdown <= ratio.high + 0.002
        assert ratio.high - ratio.low < 0.02
        assert ratio.units == 5


def test_verdicts_follow_from_what_was_planted(findings: FindingSet) -> None:
    verdicts = {each.subject["policy"]: each.verdict for each in findings.of("isolation")}
    assert verdicts == {
        "none": "steady",
        "weights": "not isolated",
        "idle": "inconclusive",
        "be": "isolated",
        "fifo": "isolated",
    }
    tails = {
        each.subject["policy"]: each.verdict
        for each in findings.of("tail")
        if each.subject["quantile"] == "p99"
    }
    assert tails["weights"] == "grown"
    assert tails["be"] == "kept"


def test_the_price_is_the_planted_one(findings: FindingSet) -> None:
    idle = _of(findings, "price", "idle")
    assert idle.subject["reference"] == "weights"
    assert idle.verdict == "less work"
    assert _value(idle, "ratio") == pytest.approx(0.8, abs=0.04)
    assert _of(findings, "best_effort", "fifo").verdict == "starved"


def test_the_class_is_held_against_every_other_policy(findings: FindingSet) -> None:
    assert {each.subject["rival"] for each in findings.of("contest")} == {"weights", "idle", "fifo"}
    weights = _of(findings, "contest", "be", rival="weights")
    assert weights.verdict == "faster"
    assert _value(weights, "mean") == pytest.approx(1 / 1.5, abs=0.01)
    assert weights.facts["p99_verdict"] == "faster"
    assert weights.facts["work_verdict"] == "less work"
    fifo = _of(findings, "contest", "be", rival="fifo")
    assert fifo.verdict == "faster"  # fifo sends 2 ms late


def test_parked_jobs_are_seen_and_that_they_went_on(findings: FindingSet) -> None:
    be = _of(findings, "best_effort", "be")
    assert be.verdict == "parked"
    assert (be.facts["parked"], be.facts["resumed"]) == (5, 5)
    assert be.facts["longest_parked_s"] == pytest.approx(PARKED[1] - PARKED[0], abs=0.15)
    assert _of(findings, "best_effort", "weights").facts["parked"] == 0


def test_checks_and_strictness_are_sums_over_the_trials(findings: FindingSet) -> None:
    entry = _of(findings, "check", "be", check="entry")
    assert (entry.verdict, entry.facts["runs"], entry.facts["successes"]) == ("on", 300_000, 62_500)
    assert _value(entry, "success") == pytest.approx(100 * 12.5 / 60)
    assert _value(entry, "cost") == pytest.approx(math.sqrt(2**10 * 2**11) * 1e-9)
    assert _of(findings, "check", "be", check="exit").verdict == "off"
    assert not findings.of("exit_cost")  # nobody timed it
    strict = _of(findings, "strictness", "be")
    assert strict.verdict == "violated"
    assert _value(strict, "mean") == pytest.approx(50e-6)
    assert _value(strict, "longest") == pytest.approx(9e-3)
    assert not [each for each in findings.of("check") if each.subject["policy"] != "be"]


def test_a_client_that_sends_late_is_told(findings: FindingSet) -> None:
    assert _of(findings, "client_error", "none").verdict == "on time"
    late = _of(findings, "client_error", "fifo")
    assert late.verdict == "late"
    assert _value(late, "p99") == pytest.approx(0.002, rel=1e-6)


def test_utilisation_is_that_of_the_work(findings: FindingSet) -> None:
    used = _of(findings, "utilisation", "weights")
    assert _value(used, "service_before") == pytest.approx(50, abs=1.5)
    assert _value(used, "service_beside") == pytest.approx(75, abs=1.5)
    assert _of(findings, "throttled", "fifo").verdict == "not throttled"


def test_requests_without_an_answer_are_counted_and_never_dropped(result: Path, findings: FindingSet) -> None:
    drain = _of(findings, "drain", "idle")
    assert (drain.verdict, drain.facts["unanswered"]) == ("not drained", 20)
    bins = pl.read_csv(result / "tables" / "bins.csv", null_values="NA")
    assert tuple(bins.columns) == BIN_COLUMNS
    idle = bins.filter(pl.col("policy") == "idle")
    assert idle["unanswered"].sum() == 20
    counted = idle.group_by("repetition").agg(pl.col("n").sum())["n"].to_list()
    folders = [json.loads(path.read_text()) for path in sorted(result.glob("traces/*/trial.json"))]
    assert len(counted) == 5
    assert min(counted) >= 0.99 * 17.9 * folders[0]["client"]["rate_per_s"]


def _timed(exit_ns: list[int]) -> dict[str, Any]:
    return {**COUNTERS, "switches": None, "histograms_ns": {"exit": exit_ns}}


@pytest.mark.parametrize(
    ("options", "instructions"),
    [({"in_vm": True, "guest_clock_shift": 2}, "128 to 256"), ({}, "not measured here")],
)
def test_the_exit_check_has_its_price(
    tmp_path: Path, options: dict[str, int | bool], instructions: str
) -> None:
    """Of 20 000 runs in each of two trials most take 512 to 1024 ns, a few 64 times as long."""
    planted = Planted(servers=2, load=0.5, scheduler=_timed([0] * 9 + [19_900, 0, 0, 0, 0, 0, 100]))
    result = build_result(tmp_path / "result", {("be", 50): planted}, blocks=2, options=options)
    (cost,) = analyse(result).of("exit_cost")
    assert (cost.facts["runs"], cost.facts["steals"], cost.facts["events"]) == (40_000, 20_000, 220_000)
    # Jobs are there for ten seconds on two CPUs, twice.
    assert _value(cost, "rate") == pytest.approx(40_000 / 40)
    assert _value(cost, "steals") == pytest.approx(50)
    limits = {name: (each.low, each.high) for name, each in cost.estimates.items() if each.low is not None}
    assert limits["median"] == limits["p99"] == pytest.approx((512e-9, 1024e-9))
    least_ns = 2 * (19_900 * 2**9 + 100 * 2**15)
    # In a guest only one CPU executes instructions at a time.
    spent_ns = 20e9 if options else 40e9
    assert limits["share"] == pytest.approx((100 * least_ns / spent_ns, 200 * least_ns / spent_ns))
    (table,) = (each for each in build(result).tables() if each.id == "exit_costs")
    row = {column.key: cell.text for column, cell in zip(table.columns, table.rows[0], strict=True)}
    assert (row["instructions"], row["median"]) == (instructions, "512.0 ns to 1.024 us")
    assert (result / "tables" / "exit_costs.csv").exists()


def test_two_cells_that_are_alike_are_said_to_be(findings: FindingSet) -> None:
    (control,) = findings.of("a_a")
    assert control.verdict == "no difference within the tolerance"
    assert control.facts["repetitions"] == 5


def test_what_is_unavailable_has_its_reason_and_no_number(result: Path, findings: FindingSet) -> None:
    absent = _of(findings, "availability", "be-no-exit")
    assert (absent.verdict, absent.facts["reason"]) == ("unavailable", UNAVAILABLE)
    assert not [each for each in findings.of("isolation") if each.subject["policy"] == "be-no-exit"]
    page = build(result)
    assert any(UNAVAILABLE in item for notice in page.notices for item in notice.items)
    assert UNAVAILABLE in (result / "tables" / "availability.csv").read_text()


def test_the_verdict_names_every_policy_and_all_figures_are_there(result: Path, findings: FindingSet) -> None:
    page = build(result)
    judged = [each for each in findings.of("isolation") if each.subject["policy"] != "none"]
    assert set(page.answer[0].findings) == {each.id for each in judged}
    assert [figure.id for figure in page.figures()] == [
        "changes_of_latency",
        "latency_over_time",
        "protection_and_price",
        "policies_over_time",
        "tail_of_latency",
    ]
    prose = [block for section in page.sections for block in section.blocks if isinstance(block, Prose)]
    assert any("starved" in one.text for block in prose for one in block.statements)
    text = render_html(page)
    assert "simulated" not in text.split("<script", 1)[0].lower()
    assert "unavailable here" in text.lower()


def test_verify_derives_every_finding_again(result: Path, findings: FindingSet) -> None:
    assert findings.findings
    assert verify(result) == []
    trial = next(iter(sorted(result.glob("traces/*/requests.bin"))))
    original = trial.read_bytes()
    try:
        trial.write_bytes(original[:16] + bytes(8) + original[24:])
        assert verify(result)
    finally:
        trial.write_bytes(original)


def test_overload_is_named_instead_of_a_mean(tmp_path: Path) -> None:
    cells = {
        ("be", 110): Planted(load=1.1, is_uniform=True),
        ("weights", 110): Planted(load=1.1, slowdown=1.3),
    }
    found = analyse(build_result(tmp_path / "result", cells, blocks=2))
    for each in found.of("isolation"):
        assert each.verdict == "growing queue"
        assert each.facts["growth"] == "before the jobs and beside them"
    # Latency grows by load - 1 per second, and by load times slowdown - 1 beside the jobs.
    assert _value(_of(found, "isolation", "be"), "slope_beside") == pytest.approx(0.1, abs=0.02)
    assert _value(_of(found, "isolation", "weights"), "slope_beside") == pytest.approx(0.43, abs=0.06)
    text = " ".join(statement.text for statement in build(tmp_path / "result").answer)
    assert "the requests need more than the CPUs can do" in text


def test_a_queue_that_grows_beside_the_jobs_only_is_not_isolated(tmp_path: Path) -> None:
    cells = {("weights", 90): Planted(load=0.9, is_uniform=True, slowdown=1.3)}
    found = analyse(build_result(tmp_path / "result", cells, blocks=2))
    (weights,) = found.of("isolation")
    assert weights.verdict == "not isolated"
    assert weights.facts["growth"] == "beside them"


def test_a_guest_that_had_not_settled_says_nothing_of_its_policy(tmp_path: Path) -> None:
    cells = {
        # Slower still before the jobs than beside them: one server at 95 %, then at 76 %.
        ("weights", 70): Planted(servers=1, load=0.95, slowdown=0.8, phases_s=(1.0, 20.0, 20.0, 1.0)),
        ("nice", 70): Planted(load=0.4, slowdown=2.2),
        ("fifo", 70): Planted(load=0.5),
    }
    found = analyse(build_result(tmp_path / "result", cells, blocks=2, options={"in_vm": True}))
    verdicts = {each.subject["policy"]: each.verdict for each in found.of("isolation")}
    assert verdicts == {"weights": "not settled", "nice": "not isolated", "fifo": "the best"}
    text = " ".join(statement.text for statement in build(tmp_path / "result").answer)
    assert "had not settled, so there is no verdict on the policy" in text


def test_a_guest_shows_the_others_against_the_best_and_the_best_against_nothing(tmp_path: Path) -> None:
    cells = {
        ("idle", 70): Planted(load=0.4, slowdown=2.2, rate_per_s=80),
        ("fifo", 70): Planted(load=0.4, slowdown=1.6, rate_per_s=80),
    }
    analyse(build_result(tmp_path / "result", cells, blocks=2, options={"in_vm": True}))
    page = build(tmp_path / "result")
    (effects,) = (table for table in page.tables() if table.id == "effects")
    headings = [column.key for column in effects.columns]
    assert "reference" in headings
    assert "before" not in headings
    rows = [{heading: cell.text for heading, cell in zip(headings, row, strict=True)} for row in effects.rows]
    assert [(row["policy"], row["mean"] == "NA") for row in rows] == [("idle", False), ("fifo", True)]
    (figure,) = (each for each in page.figures() if each.id == "protection_and_price")
    assert "% more than under fifo" in json.dumps(figure.spec)
    shown = figure.datasets["policies"].columns
    changes = dict(zip(shown["policy"], shown["change_percent"], strict=True))
    assert changes["fifo"] == 0
    assert changes["idle"] > 10
    (card,) = (each for group in page.cards for each in group.cards if each.title.startswith("fifo"))
    assert "mean latency" not in card.note


def test_a_tail_that_grows_alone_is_not_isolated_and_not_alike(tmp_path: Path) -> None:
    """Jobs that hold up two requests in a hundred leave the mean within the tolerance."""
    quiet = Planted(servers=16, load=0.3, is_uniform=True, work_cv=0.02, phases_s=(1.0, 8.0, 8.0, 1.0))
    cells = {("be", 50): replace(quiet, tail=(0.03, 2.0)), ("idle", 50): quiet}
    found = analyse(build_result(tmp_path / "result", cells, blocks=5))
    by_tail, calm = _of(found, "isolation", "be"), _of(found, "isolation", "idle")
    assert calm.verdict == "isolated"
    assert (by_tail.verdict, by_tail.facts["beyond"]) == ("not isolated", "p99")
    assert _value(by_tail, "ratio") < 1.1
    contest = _of(found, "contest", "be", rival="idle")
    assert (contest.facts["mean_verdict"], contest.verdict) == ("alike", "slower")


def test_long_requests_hold_up_short_ones(tmp_path: Path) -> None:
    """Two servers and requests of 50 times the work: who comes behind one waits for it."""
    blocked = Planted(servers=2, load=0.7, long_share=0.02, policy={"service_class": "fifo"})
    found = analyse(build_result(tmp_path / "result", {("fifo", 70): blocked}))
    head = _of(found, "head_of_line", "fifo")
    assert head.verdict == "blocked"
    assert _value(head, "short_p99") > 0.15
    assert not analyse(build_result(tmp_path / "other", {("fifo", 70): Planted(servers=2)})).of(
        "head_of_line"
    )


def test_waiting_clients_hide_what_overload_does(tmp_path: Path) -> None:
    cells = {("weights", 70): Planted(load=0.7, slowdown=1.35)}
    (hidden,) = analyse(build_result(tmp_path / "result", cells)).of("waiting_client")
    assert hidden.verdict == "hides"
    assert _value(hidden, "p99_seen") < _value(hidden, "p99")
    assert _value(hidden, "hidden") > 5


def test_trials_that_came_to_no_end_are_named_with_their_reason(tmp_path: Path) -> None:
    def ended(block: int) -> Trial:
        header = {} if block else {"is_complete": False, "missing": [{"setting": "x", "reason": "gone"}]}
        return planted_trial(Planted(seed=block, header=header))

    found = analyse(build_result(tmp_path / "result", {("be", 70): ended}, blocks=2))
    (early,) = found.of("ended_early")
    assert early.subject["repetition"] == "1"
    assert "gone" in str(early.facts["reason"])
    assert _of(found, "isolation", "be").facts["trials"] == 1
    assert any(notice.title == "Trials that ended early" for notice in build(tmp_path / "result").notices)


def test_a_result_without_a_whole_trial_says_why(tmp_path: Path) -> None:
    cells = {
        ("be", 70): Planted(header={"is_complete": False, "missing": ["the class could not be attached"]})
    }
    folder = build_result(tmp_path / "result", cells)
    with pytest.raises(AnalysisError, match="the class could not be attached"):
        analyse(folder)


def test_simulated_trials_are_marked_wherever_they_are_shown(tmp_path: Path) -> None:
    cells = {("be", 70): Planted(header={"simulated": True})}
    folder = build_result(tmp_path / "result", cells)
    assert analyse(folder).of("isolation")[0].facts["origin"] == "simulated"
    page = build(folder)
    assert page.notices[0].title == "Simulated"
    assert "simulated" in page.answer[0].text
    assert all("simulated" in figure.title for figure in page.figures())


@pytest.mark.parametrize("load", [0.6, 0.85])
def test_trials_with_nothing_planted_are_not_called_slowed_down(tmp_path: Path, load: float) -> None:
    """One trial each, arrivals by chance: at most the nominal share may be called not isolated."""
    trials = 24
    cells = {(f"p{number}", 70): Planted(seed=number, load=load) for number in range(trials)}
    found = analyse(build_result(tmp_path / "result", cells))
    assert sum(each.verdict == "not isolated" for each in found.of("isolation")) <= 2
    grown = [
        each for each in found.of("tail") if each.verdict == "grown" and each.subject["quantile"] == "p99"
    ]
    assert len(grown) <= 2


def test_tables_of_an_older_version_are_to_be_written_again(tmp_path: Path) -> None:
    result = build_result(tmp_path / "my result", {("be", 50): Planted(load=0.5)}, blocks=2)
    analyse(result)
    path = result / "tables" / "bins.csv"
    pl.read_csv(path, null_values="NA").drop("p99_s").write_csv(path, null_value="NA")
    with pytest.raises(DataError, match="without the column `p99_s`") as raised:
        build(result)
    assert raised.value.hint == f"steelyard analyse '{result}'"
