"""The best-effort class without jobs: what services have of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures.guest_needs import class_in_guest
from integration.guest_services import quota
from steelyard.studies.colocation.guest.task_init import LOG
from steelyard.studies.colocation.guest.tasks import Guest, execute_tasks
from steelyard.studies.colocation.guest.trials import SCHEDULER

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.needs_sched_ext_guest, pytest.mark.slow, pytest.mark.timeout(900)]

CPUS = 2


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of what the task left."""
    scheduler = class_in_guest()
    out = tmp_path_factory.mktemp("services")
    execute_tasks([quota()], out, Guest({SCHEDULER: scheduler}, cpus=CPUS))
    return out / "quota"


def _texts(left: Path) -> dict[str, str]:
    """Give what the task noted."""
    lines = (left / "facts").read_text(encoding="utf-8").splitlines()
    texts = dict(line.split("=", 1) for line in lines)
    assert texts.get("ended") == "yes", (left / LOG).read_text(encoding="utf-8")
    return texts


def test_the_class_refuses_a_quota_and_names_its_group(left: Path) -> None:
    texts = _texts(left)
    assert (texts["refused"], texts["state_refused"]) == ("3", "disabled")
    said = (left / "refused.txt").read_text(encoding="utf-8")
    assert "cannot keep the quota `20000 100000` of `/sys/fs/cgroup/trials/a/cpu.max`" in said
    assert "hint: " in said


def test_the_class_stands_back_where_a_quota_is_set_later(left: Path) -> None:
    texts = _texts(left)
    assert texts["loader_status"] == "3"
    assert float(texts["detached_after"]) < 10
    assert "trials/a/cpu.max" in (left / "loader.txt").read_text(encoding="utf-8")
    before, after = (int(texts[f"limited_{end}"]) for end in ("before", "after"))
    # A fifth of 3 s, in ticks of 10 ms.
    assert after - before == pytest.approx(60, abs=6)
