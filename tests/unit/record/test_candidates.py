from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.errors import DataError
from steelyard.record.interim_log import CANDIDATES_NAME, CandidateLog, LoggedCommit, read_candidates

if TYPE_CHECKING:
    from pathlib import Path

LOG = CandidateLog(
    "plan",
    (LoggedCommit("a1", "t1", (), "first"), LoggedCommit("b2", "t2", (0,), "second")),
    ((-1, 0), (0, 10)),
    {0: "does not build"},
    end="settled",
)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    LOG.write(tmp_path)
    found = read_candidates(tmp_path, "plan")
    assert found == LOG


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"commits": []}, "names no commit"),
        ({"end": "never"}, "allowed: `open`"),
        ({"steps": [[2, 0]]}, "names none of 2 commits"),
        ({"steps": [[0, 5], [1, 5]]}, "do not ascend"),
        ({"failed": {"1": "the bad end"}}, "none of 1 candidates"),
        ({"commits": [{"id": "a", "tree": "t", "parents": [0]}]}, "before one of its parents"),
        ({"plan_id": "other"}, "different plan"),
        ({"steps": "none"}, "schema"),
    ],
)
def test_what_no_bisection_leaves_is_refused(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    LOG.write(tmp_path)
    path = tmp_path / CANDIDATES_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=reason):
        read_candidates(tmp_path, "plan")
