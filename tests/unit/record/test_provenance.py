from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.outcomes import make_plan
from steelyard.errors import DataError
from steelyard.record.provenance import (
    Provenance,
    Session,
    begin_provenance,
    continue_provenance,
    end_session,
    git_state,
    host_id_of,
    read_provenance,
    software_versions,
    write_provenance,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_provenance_is_read_back_as_it_was(tmp_path: Path) -> None:
    begun = begin_provenance(make_plan(), ["steelyard", "run"], host_id="h")
    full = replace(begun, host={"kernel": "6.1", "cpus": [1, 2]}, calibration={"wall_ms": 0.07}, notes=("a",))
    write_provenance(tmp_path, full)
    assert read_provenance(tmp_path) == full
    assert host_id_of(tmp_path) == "h"


def test_versions_of_everything_that_can_change_a_number_are_there() -> None:
    assert software_versions({"launcher": "1"}).keys() >= {
        "python",
        "sqlite",
        "steelyard",
        "numpy",
        "pyarrow",
        "launcher",
    }


def test_sessions_of_other_hosts_do_not_say_when_a_study_was_asked_for() -> None:
    asked = Session(("run",), "2026-01-01T00:00:00+00:00", "", "2026-01-01T01:00:00+00:00")
    resumed, ahead = replace(asked, command_line=("resume",)), replace(asked, host_id="far")
    found = Provenance("s", "p", 1, sessions=(asked, resumed, ahead))
    assert [each.command_line for each in found.own_sessions] == [("run",), ("resume",)]
    assert replace(found, sessions=(ahead,)).own_sessions == (ahead,)


def test_a_resumed_study_has_several_sessions_and_only_ended_ones_have_an_end() -> None:
    first = begin_provenance(make_plan(), ["a"], host_id="h")
    second = end_session(begin_provenance(make_plan(), ["b"], host_id="h"))
    both = continue_provenance(replace(first, calibration={"x": 1}), second)
    assert [session.command_line for session in both.sessions] == [("a",), ("b",)]
    assert [session.ended_utc is None for session in both.sessions] == [True, False]
    assert both.calibration == {"x": 1}


def test_runs_of_two_hosts_or_plans_are_not_mixed_in_one_folder() -> None:
    first = begin_provenance(make_plan(), ["a"], host_id="h")
    with pytest.raises(DataError, match="started with host `h`; this is host `other`"):
        continue_provenance(first, replace(first, host_id="other"))
    with pytest.raises(DataError, match="started with plan"):
        continue_provenance(first, replace(first, plan_id="other"))


@pytest.mark.parametrize("text", ["", "{", '{"study": 4}', "[]"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "provenance.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"provenance.json` is not of schema `steelyard/provenance/1`"):
        read_provenance(tmp_path)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    write_provenance(tmp_path, replace(begin_provenance(make_plan(), []), schema="steelyard/provenance/9"))
    with pytest.raises(DataError, match="has schema `steelyard/provenance/9`"):
        read_provenance(tmp_path)


def test_an_absent_file_says_what_to_give(tmp_path: Path) -> None:
    assert host_id_of(tmp_path) == ""
    with pytest.raises(DataError, match="does not exist"):
        read_provenance(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot write `"):
        write_provenance(tmp_path / "absent", begin_provenance(make_plan(), []))


def test_the_state_of_a_repository_is_its_commit_and_whether_it_was_changed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", "-C", str(tmp_path), *identity, *words], check=True, capture_output=True)

    assert git_state(tmp_path) is None
    git("init")
    (tmp_path / "f").write_text("1", encoding="utf-8")
    git("add", "f")
    git("commit", "-m", "first")
    clean = git_state(tmp_path)
    assert clean is not None
    assert (len(clean.commit), clean.is_modified) == (40, False)
    (tmp_path / "f").write_text("2", encoding="utf-8")
    changed = git_state(tmp_path)
    assert changed == replace(clean, is_modified=True)
