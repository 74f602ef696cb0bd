"""Verdicts for pull requests, annotations, test reports and dashboards, from comparisons made of numbers."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import numpy as np
import pytest

from steelyard.analyse.comparison.duel import Duel, difference_of
from steelyard.analyse.comparison.equivalence import Margin
from steelyard.analyse.comparison.quantile_ratio import Quantile
from steelyard.analyse.comparison.sequential import Design, Location, SequentialComparison
from steelyard.studies.comparison.contender import Commands, Side
from steelyard.studies.comparison.export import Form, export, to_json
from steelyard.studies.comparison.findings import claim_of_finding, findings_of
from steelyard.studies.comparison.outcome import Comparison, Measured, conclude
from steelyard.studies.comparison.sample import Run
from steelyard.studies.comparison.terms import MEASURE, Terms
from steelyard.studies.comparison.verdict_files import (
    STICKY,
    to_action_benchmark,
    to_annotations,
    to_bencher,
    to_junit,
    to_pull_request,
)
from steelyard.studies.comparison.verdict_table import render_suite, rows_of, summary_of

HOSTILE = "a|b <script>`x` %0A::error::\x1b[31m\u202e*_*"


def suite(
    ratios: dict[str, float],
    noise: float = 0.01,
    blocks: int = 40,
    margin: float = 0.02,
    contenders: tuple[str, ...] = ("HEAD 222",),
) -> Comparison:
    """Give a suite of benchmarks whose other sides take so many times as long."""
    draw = np.random.default_rng(1)
    sides = (Side("main 111", Path()), *(Side(name, Path()) for name in contenders))
    entrants = Commands(("./x",) * len(ratios), tuple(ratios), sides=sides).field()
    terms = Terms(margin=Margin(margin))
    runs: list[Run] = []
    duels = []
    design = Design(Margin(margin), len(entrants.pairs))
    each = [ratio for ratio in ratios.values() for _ in contenders]
    for pair, ratio in zip(entrants.pairs, each, strict=True):
        duel = Duel(*pair, SequentialComparison(design))
        for block in range(blocks):
            walls = [1e7 * math.exp(draw.normal(0, noise)), 1e7 * ratio * math.exp(draw.normal(0, noise))]
            duel.differences.append(difference_of(*walls))
            runs += [
                Run(
                    number,
                    block,
                    0,
                    MEASURE,
                    "completed",
                    0,
                    wall_ns=int(wall),
                    cpu_ns=1,
                    peak_memory_bytes=1,
                )
                for number, wall in zip(pair, walls, strict=True)
            ]
        if blocks:
            duel.look(1.0)
        duels.append(duel)
    measured = Measured(terms, entrants.contenders, tuple(runs), tuple(duels), "settled", 3.0)
    return conclude(measured, ["noisy | machine"], None)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return suite({"same": 1.0, "worse": 1.2, "better": 0.8, HOSTILE: 1.1, "slight": 1.018})


def test_what_changed_stands_first_and_the_larger_change_before_the_smaller(found: Comparison) -> None:
    rows = rows_of(found)
    assert [row.benchmark for row in rows][:3] == ["worse", HOSTILE, "better"]
    assert [row.word for row in rows] == ["slower", "slower", "faster", "slightly slower", "equivalent"]


def test_the_comment_can_be_found_again_and_shows_no_markup_of_a_stranger(found: Comparison) -> None:
    text = to_pull_request(found)
    assert text.startswith(f"{STICKY}\n### Steelyard: 2 slower, 1 faster, 1 slightly slower, 1 equivalent\n")
    assert "`HEAD 222` against `main 111`, wall time" in text
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert "\x1b" not in text
    assert "\u202e" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {9}
    assert "at most 5 % of jobs for all 5 verdicts together" in text


def test_a_suite_of_many_benchmarks_is_folded_and_never_too_long() -> None:
    text = to_pull_request(suite({"bad": 1.5} | {f"b{at}": 1.0 for at in range(20)}))
    assert "<details><summary>20 equivalent</summary>" in text
    assert text.index("| bad |") < text.index("<details>")
    assert text.count("<details>") == text.count("</details>") == 1


def test_what_has_no_room_in_a_comment_is_counted_and_the_rest_of_it_stays() -> None:
    ratios = {f"{at} {'n' * 900}": 1.5 if at % 2 else 1.0 for at in range(500)}
    found = suite(ratios, blocks=30)
    found = replace(found, warnings=tuple(f"failed: {at} {'w' * 900}" for at in range(100)))
    text = to_pull_request(found)
    assert 55_000 < len(text) < 65_536
    assert text.splitlines()[1] == f"### Steelyard: {summary_of(rows_of(found))}"
    shown, left = text.count("**slower**"), re.search(r"Without room here: (\d+) slower", text)
    assert left is not None
    assert shown + int(left[1]) == 250
    assert "247 equivalent; the output of the job and `verdicts.json` have all" in text
    assert "Smallest slowdown that this job finds" in text
    assert "- 100 more remarks; the output of the job" in text
    # A name of any length leaves room for what it is about.
    text = to_pull_request(suite({f"{at}{'n' * 70_000}": 1.5 for at in range(3)}))
    assert text.count("**slower**") == 3
    assert len(text) < 2_000


def test_annotations_are_one_line_each_and_cannot_begin_others(found: Comparison) -> None:
    lines = to_annotations(found).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::notice"]
    title = lines[1].split("title=")[1].split("::")[0]
    assert ":" not in title
    assert "," not in title
    assert "\x1b" not in "".join(lines)


def test_a_test_report_fails_what_is_slower_and_skips_what_is_open() -> None:
    text = to_junit(suite({"worse": 1.3, HOSTILE: 1.0, "open": 1.03}, noise=0.05, blocks=12))
    suite_of_tests = ET.fromstring(text)  # noqa: S314 - our own
    assert suite_of_tests.attrib["tests"] == "3"
    assert suite_of_tests.attrib["failures"] == "1"
    assert int(suite_of_tests.attrib["skipped"]) == len(suite_of_tests.findall("testcase/skipped"))
    failed = [case.attrib["name"] for case in suite_of_tests if case.find("failure") is not None]
    assert failed == ["worse"]


def test_dashboards_get_the_medians(found: Comparison) -> None:
    entries = {entry["name"]: entry for entry in json.loads(to_action_benchmark(found))}
    assert entries["worse"]["unit"] == "s"
    assert entries["worse"]["value"] == pytest.approx(0.012, rel=0.01)
    latency = json.loads(to_bencher(found))["better"]["latency"]["value"]
    assert latency == pytest.approx(8e6, rel=0.01)


def test_quantiles_are_rows_of_their_own_with_their_own_values() -> None:
    entrants = Commands(("./x", "./y"), ("old", "new")).field()
    terms = Terms(statistics=(Location.TYPICAL, Quantile(95)))
    duels = [Duel(*pair, SequentialComparison(design)) for pair, design in terms.questions(entrants.pairs)]
    runs: list[Run] = []
    for block in range(200):
        walls = (1e7 + block, (2e7 if block % 10 == 0 else 1e7) + block)
        for duel in duels:
            duel.add(*walls)
        runs += [
            Run(number, block, 0, MEASURE, "completed", 0, wall_ns=int(wall), cpu_ns=1, peak_memory_bytes=1)
            for number, wall in enumerate(walls)
        ]
    for duel in duels:
        duel.look(1.0)
    found = conclude(
        Measured(terms, entrants.contenders, tuple(runs), tuple(duels), "settled", 3.0), [], None
    )
    comment = to_pull_request(found)
    assert "| new (p95) | 10.00 ms | 20.00 ms |" in comment
    assert "| new | 10.00 ms | 10.00 ms |" in comment
    entries = json.loads(to_action_benchmark(found))
    assert {entry["name"] for entry in entries} == {"new", "new (p95)"}
    assert all(claim.family == 2 for claim in found.claims)


def test_two_revisions_are_told_apart_everywhere() -> None:
    found = suite({"a": 1.3, "b": 1.0}, contenders=("next | 222", "HEAD 333"))
    text = to_pull_request(found)
    rows = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert rows[0].startswith("| benchmark | revision | before |")
    assert {line.count("|") for line in rows} == {10}
    assert {tuple(line.split(" | ")[:2]) for line in rows[2:]} == {
        (f"| {name}", side) for name in "ab" for side in ("next  222", "HEAD 333")
    }
    names = {f"{name} @ {side}" for name in "ab" for side in ("next | 222", "HEAD 333")}
    assert set(json.loads(to_bencher(found))) == names
    assert {entry["name"] for entry in json.loads(to_action_benchmark(found))} == names
    assert "title=a @ HEAD 333%3A slower" in to_annotations(found)


def test_one_revision_keeps_the_names_of_a_dashboard(found: Comparison) -> None:
    assert "worse" in json.loads(to_bencher(found))
    assert "| revision |" not in to_pull_request(found)


def test_no_secret_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UPLOAD_TOKEN", "s3*cr_3t\u202e")
    monkeypatch.setenv("STEELYARD_COMMENT_KEY", "linux")
    found = suite({"curl -H s3*cr_3t\u202e linux": 1.3, "b": 1.0})
    for write in (to_pull_request, to_annotations, to_junit, to_action_benchmark, to_bencher):
        text = write(found)
        assert "cr_3t" not in text.replace("\\", "")
        assert "linux" in text


def test_what_a_command_calls_a_secret_is_published_nowhere(tmp_path: Path) -> None:
    names = {"curl --token s3cr3t a": 1.3, "curl --token s3cr3u a": 1.0, "API_KEY=s3cr3t b": 1.0}
    found = suite(names)
    for form in Form:
        if form is not Form.LINKS:  # that needs builds
            export(found, form, tmp_path / form)
            assert "s3cr3" not in (tmp_path / form).read_text(encoding="utf-8"), form
    published = {"API_KEY=*** b", "curl --token *** a", "curl --token *** a (2)"}
    assert set(json.loads(to_bencher(found))) == published


def test_no_name_is_a_command_of_github() -> None:
    found = suite({"a\n  ::error::x": 1.3, "::add-mask::b": 1.0, "##[add-mask]c": 1.0})
    text = render_suite(found)
    assert not [line for line in text.split("\n") if line.strip().startswith("::")]
    assert "##[" not in text
    lines = to_annotations(found).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error"]


@pytest.mark.parametrize(
    ("noise", "blocks", "margin"), [(0.02, 40, 0.02), (0.02, 100, 0.05), (0.01, 50, 0.1), (0.05, 40, 0.02)]
)
def test_what_could_have_been_seen_is_found_in_about_80_of_100_cases(
    noise: float, blocks: int, margin: float
) -> None:
    same = suite({f"b{at}": 1.0 for at in range(4)}, noise, blocks, margin)
    seen = [row.visible for row in rows_of(same)]
    visible = sum(value for value in seen if value is not None) / len(seen)
    count = 100
    names = {f"b{at}": 1 + visible for at in range(count)}
    rows = rows_of(suite_alone(names, noise, blocks, margin))
    share = sum(row.claim.is_regression for row in rows) / count
    # What the looks cost is counted as if it were noise: it is found rather more often than said.
    assert 0.65 < share < 0.99


def suite_alone(ratios: dict[str, float], noise: float, blocks: int, margin: float) -> Comparison:
    """Give as many benchmarks, the error divided among four only."""
    draw = np.random.default_rng(2)
    sides = (Side("main", Path()), Side("HEAD", Path()))
    entrants = Commands(("./x",) * len(ratios), tuple(ratios), sides=sides).field()
    duels = []
    for pair, ratio in zip(entrants.pairs, ratios.values(), strict=True):
        duel = Duel(*pair, SequentialComparison(Design(Margin(margin), 4)))
        duel.differences = [
            math.log(ratio) + draw.normal(0, noise) - draw.normal(0, noise) for _ in range(blocks)
        ]
        duel.look(1.0)
        duels.append(duel)
    measured = Measured(Terms(), entrants.contenders, (), tuple(duels), "settled", 3.0)
    return conclude(measured, [], None)


def test_nothing_measured_is_no_verdict() -> None:
    empty = suite({"a": 1.0, "b": 1.0}, blocks=0)
    assert {row.word for row in rows_of(empty)} == {"not measured"}
    assert 'errors="2"' in to_junit(empty)
    for write in (to_pull_request, to_annotations, to_junit, to_action_benchmark, to_bencher, render_suite):
        assert "nan" not in write(empty).lower().replace("annotation", "")


def test_the_terminal_has_one_line_for_each_benchmark(found: Comparison) -> None:
    text = render_suite(found)
    lines = text.splitlines()
    assert lines[0] == "2 slower, 1 faster, 1 slightly slower, 1 equivalent"
    assert sum(line.startswith(("worse ", "better ", "same ", "slight ")) for line in lines) == 4
    assert max(map(len, lines[:9])) <= 80


def test_the_statistic_of_a_process_is_said_everywhere() -> None:
    found = suite({"core/a": 1.1, "core/b": 1.0, "wall": 1.0})
    found = replace(
        found,
        claims=tuple(
            replace(claim, metric="reported", within="min" if claim.contender.startswith("core") else "")
            for claim in found.claims
        ),
    )
    said = "The time of `core/a`, `core/b` is the minimum of what a process measures, not the mean."
    assert said in render_suite(found)
    assert said.replace("`", "\\`") in to_pull_request(found)
    assert "reported time, the minimum of a process)" in to_junit(found)
    claims = [claim_of_finding(each) for each in findings_of(found) if each.claim == "comparison"]
    assert [claim.sentence for claim in claims] == [claim.sentence for claim in found.claims]
    jsonschema.validate(json.loads(to_json(found)), SCHEMA)


SCHEMA = json.loads((Path(__file__).parents[4] / "docs/reference/comparison.schema.json").read_bytes())


def test_the_document_is_as_its_schema_says() -> None:
    build = {"name": "HEAD 222", "commit": "a" * 40, "tree": "b" * 40, "committed_s": 1, "status": "built"}
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for found in (
        suite({"sort": 1.2, HOSTILE: 1.0}),
        replace(suite({"few": 1.0}, blocks=2), builds=(build,)),
        suite({"none": 1.0}, blocks=0),
    ):
        jsonschema.validate(json.loads(to_json(found)), SCHEMA)
    wrong = json.loads(to_json(suite({"sort": 1.2})))
    wrong["claims"][0]["verdict"] = "better"
    with pytest.raises(jsonschema.ValidationError, match="'better' is not one of"):
        jsonschema.validate(wrong, SCHEMA)
