from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from steelyard.record.provenance import Provenance, Session, write_provenance
from steelyard.studies.quiet_machine import quiet_machine

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model import Finding

QUIET = {"quiet": True, "reasons": [], "foreign_cpu_ratio": 0.01, "attempts": 1}
NOISY = {
    "quiet": False,
    "reasons": ["other processes use 48% of the CPU time: rustc (18835), cc1 (4)"],
    "foreign_cpu_ratio": 0.48,
    "attempts": 3,
}


def judged(folder: Path, looks: list[dict[str, Any]], *, stolen_ns: int | None = 0) -> list[Finding]:
    gate = tuple({"batch": number, "moment": "before", **look} for number, look in enumerate(looks))
    session = Session(("steelyard",), "2026-11-21T09:00:00+00:00", "6.1", gate=gate)
    write_provenance(folder, Provenance("stability", "plan", 1, sessions=(session,)))
    runs = pl.DataFrame(
        {"steal_ns": [stolen_ns, stolen_ns], "wall_ns": [1000, 1000]},
        schema={"steal_ns": pl.Int64, "wall_ns": pl.Int64},
    )
    return list(quiet_machine(folder, runs))


@pytest.mark.parametrize(
    ("noisy", "verdict"), [(0, "quiet"), (1, "mostly quiet"), (2, "mostly quiet"), (3, "not quiet")]
)
def test_the_share_of_batches_beside_other_load_decides(tmp_path: Path, noisy: int, verdict: str) -> None:
    (found,) = judged(tmp_path, [NOISY] * noisy + [QUIET] * (20 - noisy))
    assert found.verdict == verdict
    assert (found.facts["noisy_batches"], found.facts["batches"]) == (noisy, 20)


def test_what_disturbed_is_named_with_its_size(tmp_path: Path) -> None:
    carried_over = {**NOISY, "foreign_cpu_ratio": 0.9, "attempts": 0}
    (found,) = judged(tmp_path, [NOISY, carried_over, QUIET])
    assert found.facts["culprits"] == "cc1, rustc"
    assert found.facts["largest_foreign_percent"] == pytest.approx(48)
    assert found.facts["median_foreign_percent"] == pytest.approx(24.5)
    assert found.facts["looks"] == 2


def test_a_hypervisor_that_takes_time_makes_the_machine_not_quiet(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, [QUIET] * 5, stolen_ns=20)
    assert found.verdict == "not quiet"
    assert found.facts["stolen_percent"] == pytest.approx(2.0)


def test_looks_before_and_after_a_batch_count_it_once(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, [{**NOISY, "batch": 4}, {**NOISY, "batch": 4}, {**QUIET, "batch": 5}])
    assert (found.facts["noisy_batches"], found.facts["batches"]) == (1, 2)


def test_what_nobody_watched_is_not_called_quiet(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, [])
    assert found.verdict == "not watched"
    assert judged(tmp_path, [], stolen_ns=None) == []
