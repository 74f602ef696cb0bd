from __future__ import annotations

import fcntl
import os
import threading
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError
from steelyard.record.folder_lock import claimed

if TYPE_CHECKING:
    from pathlib import Path


class RefusedError(Exception):
    """What a study refuses to begin with."""


def planned_and_refused(folder: Path) -> None:
    (folder / "plan.json").write_text("{}")
    raise RefusedError


def test_a_folder_that_a_failure_leaves_empty_is_removed_with_the_parents_made(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(RefusedError), claimed(tmp_path / "there/one/two"):
        raise RefusedError
    assert list((tmp_path / "there").iterdir()) == []


def test_whatever_a_folder_holds_stays_and_so_does_a_folder_that_was_there(tmp_path: Path) -> None:
    with pytest.raises(RefusedError), claimed(tmp_path / "one/two"):
        planned_and_refused(tmp_path / "one/two")
    assert (tmp_path / "one/two/plan.json").exists()
    (tmp_path / "empty").mkdir()
    with pytest.raises(RefusedError), claimed(tmp_path / "empty"):
        raise RefusedError
    assert (tmp_path / "empty").is_dir()


def test_a_folder_that_another_holds_is_left_to_it(tmp_path: Path) -> None:
    with claimed(tmp_path / "one"):
        with pytest.raises(DataError, match="another process"), claimed(tmp_path / "one"):
            pass
        assert (tmp_path / "one").is_dir()
    assert (tmp_path / "one").is_dir()


def test_who_only_looks_whether_a_folder_is_held_keeps_nobody_out(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    threading.Timer(0.03, os.close, [descriptor]).start()
    with claimed(tmp_path):
        pass
