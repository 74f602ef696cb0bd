from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import DataError
from steelyard.record.accepted_levels import SCHEMA, AcceptedLevel, add_accepted, read_accepted

if TYPE_CHECKING:
    from pathlib import Path

LEVEL = AcceptedLevel("r07", "ada", "2026-11-25T04:00:00.000+00:00", "checks every packet now", ["wall"])


def test_levels_are_added_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "accepted-levels.json"
    assert read_accepted(path) == []
    add_accepted(path, LEVEL)
    add_accepted(path, LEVEL)
    assert read_accepted(path) == [LEVEL, LEVEL]
    assert json.loads(path.read_text(encoding="utf-8"))["schema"] == SCHEMA
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "carries no schema"),
        ('{"schema": "steelyard/accepted-levels/2", "levels": []}', "this version reads"),
        ('{"schema": "steelyard/findings/1", "levels": []}', "this version reads"),
        (json.dumps({"schema": SCHEMA}), "`levels`"),
        (json.dumps({"schema": SCHEMA, "levels": [asdict(LEVEL) | {"by": ""}]}), "`levels.0.by`"),
        (json.dumps({"schema": SCHEMA, "levels": [asdict(LEVEL) | {"why": "x" * 1001}]}), "`levels.0.why`"),
        (json.dumps({"schema": SCHEMA, "levels": [asdict(LEVEL) | {"why": "\x1b[2J"}]}), "`levels.0.why`"),
        (json.dumps({"schema": SCHEMA, "levels": [asdict(LEVEL) | {"result": 7}]}), "`levels.0.result`"),
        (json.dumps({"schema": SCHEMA, "levels": [asdict(LEVEL) | {"at": "yesterday"}]}), "`levels.0.at`"),
        (json.dumps({"schema": SCHEMA, "levels": [asdict(LEVEL) | {"at": "2026-11-25"}]}), "`levels.0.at`"),
        (json.dumps({"schema": SCHEMA, "levels": {}}), "`levels`"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_and_left(tmp_path: Path, content: str, part: str) -> None:
    path = tmp_path / "accepted-levels.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_accepted(path)
    assert part in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.hint
    with pytest.raises(DataError):
        add_accepted(path, LEVEL)
    assert path.read_text(encoding="utf-8") == content


def test_bytes_folders_and_huge_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "accepted-levels.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="not JSON"):
        read_accepted(path)
    with path.open("wb") as file:
        file.truncate(10_000_001)
    with pytest.raises(DataError, match="at most 10000000 bytes"):
        read_accepted(path)
    with pytest.raises(DataError, match="not a file"):
        read_accepted(tmp_path)
    with pytest.raises(DataError, match="cannot write `"):
        add_accepted(tmp_path / "absent" / "accepted-levels.json", LEVEL)
