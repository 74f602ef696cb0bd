from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from fixtures.git_repository import MadeRepository
from steelyard.errors import UsageError
from steelyard.revisions.history import span_between
from steelyard.revisions.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """Three commits, a branch of two from the second, and the merge."""
    made = MadeRepository(tmp_path / "source")
    for number in "123":
        made.commit(number, main=number)
    made.git("checkout", "--quiet", "-b", "side", "main~1")
    for number in "ab":
        made.commit(number, side=number)
    made.git("checkout", "--quiet", "main")
    made.git("merge", "--quiet", "--no-ff", "--message", "merge", "side")
    made.commit("4", main="4")
    return made


def subjects(made: MadeRepository, good: str, bad: str, *, first_parent: bool = False) -> list[str]:
    span = span_between(Repository(made.folder), good, bad, first_parent=first_parent)
    return [each.subject for each in span.history.commits]


def test_merges_are_followed_or_count_as_one_change(made: MadeRepository) -> None:
    found = subjects(made, "main~3", "main")
    assert sorted(found) == ["3", "4", "a", "b", "merge"]
    assert found[-2:] == ["merge", "4"]
    history = span_between(Repository(made.folder), "main~3", "main").history
    place = {each.subject: at for at, each in enumerate(history.commits)}
    assert history.commits[place["merge"]].parents == tuple(sorted((place["3"], place["b"])))
    assert not history.contains(place["b"])[place["3"]]
    assert subjects(made, "main~3", "main", first_parent=True) == ["3", "merge", "4"]


def test_commits_that_change_no_file_are_left_out(made: MadeRepository) -> None:
    made.commit("nothing")
    made.commit("5", main="5")
    made.commit("nothing again")
    span = span_between(Repository(made.folder), "HEAD~3", "HEAD")
    assert [each.subject for each in span.history.commits] == ["5"]
    assert span.history.commits[0].parents == ()
    assert span.remarks == ("2 of 3 commits change no file and are left out",)
    with pytest.raises(UsageError, match="no commit between `HEAD~1` and `HEAD` changes a file"):
        span_between(Repository(made.folder), "HEAD~1", "HEAD")


def test_a_good_end_beside_the_bad_one_is_replaced_by_their_merge_base(made: MadeRepository) -> None:
    made.git("checkout", "--quiet", "-b", "other", "main~3")
    made.commit("c", other="c")
    span = span_between(Repository(made.folder), "other", "main")
    assert span.good.id == made.git("rev-parse", "main~3")
    assert "does not contain `other`" in span.remarks[0]


def test_changes_that_are_not_committed_are_the_last_commit(made: MadeRepository) -> None:
    (made.folder / "main").write_text("5")
    assert subjects(made, "main~1", ".") == ["4", "working tree"]


@pytest.mark.parametrize(
    ("good", "bad", "reason"),
    [
        ("main", "main~1", "`main~1` contains no commit that `main` lacks"),
        ("main", "main", "`main` contains no commit"),
        ("nowhere", "main", "no revision `nowhere`"),
        ("apart", "main", "no commit in common"),
    ],
)
def test_ends_between_which_nothing_lies_are_refused(
    made: MadeRepository, good: str, bad: str, reason: str
) -> None:
    made.git("checkout", "--quiet", "--orphan", "apart")
    made.commit("apart", main="x")
    made.git("checkout", "--quiet", "main")
    with pytest.raises(UsageError, match=reason):
        span_between(Repository(made.folder), good, bad)


def test_subjects_may_hold_anything(made: MadeRepository) -> None:
    made.commit("tab\t <b> \r \x1f and more", main="6")
    assert subjects(made, "main~1", "main") == ["tab\t <b> \r \x1f and more"]
    head = made.git("cat-file", "commit", "main").rpartition("\n\n")[0]
    done = subprocess.run(
        ["git", "-C", str(made.folder), "hash-object", "-t", "commit", "-w", "--stdin"],
        input=f"{head}\n\n".encode() + b"\x81\xff",
        capture_output=True,
        check=True,
    )
    span = span_between(Repository(made.folder), "main~1", done.stdout.decode().strip())
    assert [each.subject for each in span.history.commits] == [span.bad.subject]
    json.dumps(span.bad.subject, ensure_ascii=False).encode()
