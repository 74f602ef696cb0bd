"""Links of revisions: what a job knows, in a file, in a note, in a history."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.git_repository import MadeRepository
from steelyard.cli import execute
from steelyard.errors import DataError
from steelyard.revisions.notes import add_note, read_notes, trees_before
from steelyard.revisions.repository import Repository
from steelyard.studies.comparison.links import parse_links, series_of

if TYPE_CHECKING:
    from pathlib import Path


def revision(number: int) -> dict[str, Any]:
    return {
        "commit": f"{number:09x}{0:031x}",
        "tree": f"{number + 4096:040x}",
        "name": f"r{number}",
        "committed_s": 1000 * number,
    }


def job(first: int, second: int, log_ratio: float = 0.0, **other: Any) -> str:
    document = {
        "schema": "steelyard/links/1",
        "at": f"2026-01-01T00:{second:02}:00+00:00",
        "metric": "wall",
        "host": f"model {second % 3}",
        "baseline": revision(first),
        "contender": revision(second),
        "benchmarks": [
            {"benchmark": "sort", "log_ratio": log_ratio, "standard_error": 0.002, "freedom": 30},
            {"benchmark": "parse", "log_ratio": 0.0, "standard_error": 0.002, "freedom": 30},
        ],
    }
    return json.dumps(document | other)


def short(number: int) -> str:
    return f"{number:09x}"


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Give a file of twelve jobs, of which the eighth sees `sort` become 5 % slower."""
    path = tmp_path / "links.jsonl"
    lines = [job(number, number + 1, 0.0488 if number == 7 else 0.0) for number in range(12)]
    path.write_text("\n\n".join(reversed(lines)) + "\n", encoding="utf-8")
    return path


def test_a_slower_level_is_red_until_somebody_accepts_it(
    slow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["history", str(slow)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("13 revisions, linked by 12 jobs on 3 models of processor; 2 benchmarks")
    assert f"slower at `{short(8)}` (after `{short(7)}`): +5.0 % (interval +" in text
    assert "slower now than before: sort, wall time (+5.0 %)" in text
    assert execute(["history", str(slow), "--margin", "6"]) == 0
    assert execute(["history", str(slow), "--fail-on", "changed", "--margin", "6"]) == 1
    capsys.readouterr()
    assert execute(["history", str(slow), "--accept", short(8), "--why", "checks more"]) == 0
    assert f"accepted: the level at `{short(8)}`" in capsys.readouterr().out
    assert (slow.parent / "accepted-levels.json").exists()
    assert execute(["history", str(slow)]) == 0


def test_a_level_is_accepted_for_one_benchmark_and_the_others_stay_red(
    slow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = slow.parent / "accepted-levels.json"
    accept = ["--accept", short(8), "--why", "checks more"]
    for name in ("sort", "so*", "sort, wall time"):
        accepted.unlink(missing_ok=True)
        assert execute(["history", str(slow), *accept, "--series", name]) == 0
        assert f"accepted: the level of {name} at `{short(8)}`" in capsys.readouterr().out
    accepted.unlink()
    assert execute(["history", str(slow), *accept, "--series", "parse"]) == 1
    assert "slower now than before: sort" in capsys.readouterr().out
    accepted.unlink()
    assert execute(["history", str(slow), *accept, "--series", "merge"]) == 2
    assert "`--series merge` names no series of this history; it has `" in capsys.readouterr().err
    assert not accepted.exists()


def test_a_level_is_accepted_by_any_name_of_its_commit(
    slow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted = slow.parent / "accepted-levels.json"
    # A merge of the same files is the same revision, though no result is printed by its name.
    merge = revision(8) | {"commit": "feed" + "0" * 36}
    lines = slow.read_text() + json.dumps(json.loads(job(8, 9)) | {"baseline": merge}) + "\n"
    slow.write_text(lines)
    for name in (revision(8)["commit"], short(8), "feed0000", "FEED"):
        accepted.unlink(missing_ok=True)
        assert execute(["history", str(slow), "--accept", name, "--why", "checks more"]) == 0
        assert f"accepted: the level at `{short(8)}`" in capsys.readouterr().out
        assert execute(["history", str(slow)]) == 0
        capsys.readouterr()
    accepted.unlink()
    assert execute(["history", str(slow), "--accept", "00000", "--why", "checks more"]) == 2
    assert "`--accept 00000` begins several revisions: `0000" in capsys.readouterr().err
    assert not accepted.exists()
    for name in ("000", "beef", "no such"):
        assert execute(["history", str(slow), "--accept", name, "--why", "checks more"]) == 2
        assert f"`--accept` names `{name}`, which is not a result" in capsys.readouterr().err


def test_ratios_of_different_statistics_are_not_chained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mean that grew in ten jobs is not continued by ten jobs about medians, of runs or of processes."""
    benchmark = {"benchmark": "sort", "log_ratio": 0.0, "standard_error": 0.002, "freedom": 30}
    lines = [job(number, number + 1, is_mean=number < 10, benchmarks=[benchmark]) for number in range(20)]
    lines += [job(number, number + 1, benchmarks=[benchmark | {"within": "min"}]) for number in range(20, 30)]
    path = tmp_path / "links.jsonl"
    path.write_text("\n".join(lines))
    jobs = list(parse_links(path.read_text(), "here"))
    assert [len(each.revisions) for each in series_of(jobs)] == [11, 11, 11]
    assert [next(parse_links(each.as_line(), "here")) for each in jobs] == jobs
    assert execute(["history", str(path)]) == 0
    assert (
        "not linked, as their jobs compare different statistics: sort, geometric mean of wall time; "
        "sort, wall time; sort, wall time, the minimum of a process"
    ) in capsys.readouterr().out


def test_the_document_and_the_page_say_the_same(
    slow: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert execute(["history", str(slow), "--json", "--html", str(page)]) == 1
    document = json.loads(capsys.readouterr().out)
    sort, parse = document["series"]
    assert (sort["is_newest_slower"], parse["is_newest_slower"]) == (True, False)
    (change,) = sort["changes"]
    assert change["at"] == revision(8)["commit"]
    assert change["low"] < 1.05 < change["high"]
    assert [each["piece"] for each in sort["revisions"]] == [0] * 13
    text = re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))
    assert "1 of 2 benchmarks over 13 revisions changed" in text
    assert "value, first revision = 100 [%]" in text, "as its caption says"
    assert short(8) in text


def test_what_no_job_links_is_said_and_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "links.jsonl"
    path.write_text(f"{job(0, 1)}\n{job(2, 3, 0.5)}\n", encoding="utf-8")
    assert execute(["history", str(path)]) == 1
    text = capsys.readouterr().out
    assert f"steelyard bench --exact --rev {short(1)} --rev {short(2)}" in text
    assert f"slower at `{short(3)}`" in text
    path.write_text(f"{job(0, 1)}\n{job(2, 3)}\n", encoding="utf-8")
    assert execute(["history", str(path)]) == 0
    assert execute(["history", str(path), "--fail-on", "undecided"]) == 1


def test_two_commits_of_the_same_files_are_one_revision() -> None:
    again = json.loads(job(1, 2, 0.1))
    again["baseline"]["commit"] = "f" * 40
    jobs = list(parse_links(f"{job(0, 1)}\n{json.dumps(again)}\n", "x"))
    (sort, _) = series_of(jobs)
    assert [each.name for each in sort.revisions] == ["r0", "r1", "r2"]
    assert [(link.first, link.second) for link in sort.links] == [(0, 1), (1, 2)]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"schema": "steelyard/links/2"}, "schema"),
        ({"at": "yesterday"}, "at"),
        ({"metric": "a\nb"}, "metric"),
        ({"surplus": 1}, "surplus"),
        ({"baseline": revision(0) | {"tree": "../../x"}}, "baseline.tree"),
        (
            {"benchmarks": [{"benchmark": "x", "log_ratio": 1, "standard_error": -1, "freedom": 1}]},
            "benchmarks.0",
        ),
        (
            {"benchmarks": [{"benchmark": "x", "log_ratio": 1e9, "standard_error": 1, "freedom": 1}]},
            "benchmarks.0",
        ),
    ],
)
def test_a_line_that_is_wrong_is_named(change: dict[str, Any], place: str) -> None:
    with pytest.raises(DataError, match=r"line 2 of `x`") as raised:
        list(parse_links(f"{job(0, 1)}\n{job(0, 1, **change)}\n", "x"))
    assert place in raised.value.message


@pytest.mark.parametrize("text", ["", "{", "[]", "\0", '{"schema": NaN}', "[" * 100_000])
def test_what_is_no_link_is_refused(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "links.jsonl"
    path.write_text(text, encoding="utf-8")
    assert execute(["history", str(path)]) in {5, 6}
    assert "Traceback" not in capsys.readouterr().err


def test_options_of_other_histories_are_refused(slow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["history", str(slow), "--independent"]) == 2
    assert execute(["history", str(slow), "--notes"]) == 2
    assert execute(["history", str(slow), "--margin", "-1"]) == 2
    assert execute(["history", str(slow), str(slow.parent)]) != 0
    assert "Traceback" not in capsys.readouterr().err


def test_notes_are_read_in_the_order_of_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeRepository(tmp_path)
    monkeypatch.chdir(tmp_path)
    commits = [made.commit(f"c{number}", file=str(number)) for number in range(5)]
    repository = Repository(tmp_path)
    facts = [
        {
            "commit": each,
            "tree": repository.commit(each).tree,
            "name": f"c{number}",
            "committed_s": 5 - number,
        }
        for number, each in enumerate(commits)
    ]
    assert list(trees_before(repository)) == [each["tree"] for each in facts]
    for number in range(1, 5):
        document = json.loads(job(0, number)) | {"baseline": facts[number - 1], "contender": facts[number]}
        document["benchmarks"][0]["log_ratio"] = 0.2 if number == 3 else 0.0
        add_note(repository, commits[number], json.dumps(document))
    add_note(repository, commits[4], job(7, 8))
    assert len(dict(read_notes(repository))) == 4
    assert execute(["history", "--notes"]) == 1
    told = capsys.readouterr()
    assert f"slower at `{commits[3][:9]}` (after `{commits[2][:9]}`)" in told.out
    assert "left out: 1 jobs about revisions that are not in the history of HEAD" in told.err
    made.git("notes", "--ref=steelyard", "append", "-m", "not a link", commits[1])
    assert execute(["history", "--notes"]) == 5
    assert f"note of {commits[1][:9]}" in capsys.readouterr().err


def test_a_repository_without_notes_is_no_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    MadeRepository(tmp_path).commit("c", file="1")
    monkeypatch.chdir(tmp_path)
    assert execute(["history", "--notes"]) == 6
    assert "--note" in capsys.readouterr().err


def test_jobs_that_note_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path)
    commit = made.commit("c", file="1")
    repository = Repository(tmp_path)
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: add_note(repository, commit, f"line {number}"), range(6)))
    ((_, text),) = read_notes(repository)
    assert {line for line in text.splitlines() if line} == {f"line {number}" for number in range(6)}


def test_a_note_that_cannot_be_written_is_said_and_a_huge_one_refused(tmp_path: Path) -> None:
    made = MadeRepository(tmp_path)
    commit = made.commit("c", file="1")
    repository = Repository(tmp_path)
    locked = tmp_path / ".git/refs/notes/steelyard.lock"
    locked.parent.mkdir()
    locked.touch()
    with pytest.raises(DataError, match="git notes"):
        add_note(repository, commit, "line")
    locked.unlink()
    (tmp_path / "huge").write_text("x" * 10_000_001)
    made.git("notes", "--ref=steelyard", "add", "-F", "huge", commit)
    with pytest.raises(DataError, match="more than 10000000 bytes"):
        list(read_notes(repository))


@pytest.mark.parametrize("damage", ["garbage", "no tree", "absent"])
def test_notes_that_cannot_be_read_are_not_none(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeRepository(tmp_path)
    commit = made.commit("c", file="1")
    monkeypatch.chdir(tmp_path)
    reference = tmp_path / ".git/refs/notes/steelyard"
    reference.parent.mkdir()
    if damage == "garbage":
        reference.write_text("garbage\n")
    elif damage == "no tree":
        made.git("update-ref", "refs/notes/steelyard", made.git("rev-parse", "HEAD:file"))
    else:
        add_note(Repository(tmp_path), commit, job(0, 1))
        note = made.git("notes", "--ref=steelyard", "list", commit)
        (tmp_path / ".git/objects" / note[:2] / note[2:]).unlink()
    assert execute(["history", "--notes"]) == 5
    told = capsys.readouterr().err
    assert "cannot read" in told
    assert "git fsck" in told


def test_a_note_is_repaired_by_the_command_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeRepository(tmp_path)
    commit = made.commit("c", file="1")
    monkeypatch.chdir(tmp_path)
    add_note(Repository(tmp_path), commit, "é\r not a link")
    assert dict(read_notes(Repository(tmp_path))) == {commit: "é\r not a link\n"}
    assert execute(["history", "--notes"]) == 5
    assert f"git notes --ref=steelyard edit {commit}" in capsys.readouterr().err


def test_what_a_shallow_clone_lacks_is_fetched_by_the_command_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = MadeRepository(tmp_path / "whole")
    commits = [made.commit(f"c{number}", file=str(number)) for number in range(2)]
    trees = [Repository(made.folder).commit(each).tree for each in commits]
    sides = [revision(place) | {"commit": commits[place], "tree": trees[place]} for place in range(2)]
    document = json.loads(job(0, 1)) | {"baseline": sides[0], "contender": sides[1]}
    add_note(Repository(made.folder), commits[1], json.dumps(document))
    made.git("clone", "--quiet", "--depth=1", f"file://{made.folder}", str(tmp_path / "clone"))
    monkeypatch.chdir(tmp_path / "clone")
    for fetched in ("refs/notes/steelyard:refs/notes/steelyard", "--unshallow"):
        assert execute(["history", "--notes"]) == 6
        assert f"`git fetch {'origin ' if 'refs' in fetched else ''}{fetched}`" in capsys.readouterr().err
        made.git(
            "-C", str(tmp_path / "clone"), "fetch", "--quiet", *(["origin"] * ("refs" in fetched)), fetched
        )
    assert execute(["history", "--notes"]) == 0


def test_a_job_that_went_on_counts_once(slow: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = slow.read_text()
    last = json.loads(text.splitlines()[0])
    for each in last["benchmarks"]:
        each["freedom"] = 10
    assert execute(["history", str(slow), "--json"]) == 1
    once = capsys.readouterr().out
    # Before it went on, and a copy of all of it.
    slow.write_text(json.dumps(last) + "\n" + text + text)
    assert execute(["history", str(slow), "--json"]) == 1
    assert capsys.readouterr().out == once


def test_a_change_that_was_taken_back_is_none_of_the_newest_revision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The third commit has the files of the first."""
    undone = json.loads(job(1, 2, -0.1))
    undone["contender"]["tree"] = revision(0)["tree"]
    path = tmp_path / "links.jsonl"
    path.write_text(f"{job(0, 1, 0.1)}\n{json.dumps(undone)}\n")
    assert execute(["history", str(path)]) == 0
    assert f"faster at `{short(2)}` (after `{short(1)}`)" in capsys.readouterr().out
