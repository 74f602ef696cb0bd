from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from steelyard import _native
from steelyard.errors import CapabilityError
from steelyard.run.machine.host import (
    HOST_SCHEMA,
    Verdict,
    read_activity,
    read_fingerprint,
    read_host,
    read_processes,
    read_topology,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_this_machine_is_reported_whole() -> None:
    host = read_host()
    assert host.schema == HOST_SCHEMA
    assert host.topology == read_topology()
    assert host.fingerprint == read_fingerprint()
    assert len(host.fingerprint.host_id) == 16
    assert host.capability("cgroup") is not None
    assert host.capability("teleport") is None
    assert {fact.verdict for fact in host.noise} <= set(Verdict)


def test_the_typed_view_drops_nothing_the_native_report_says(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "stat").write_text("cpu  1 2 3 4 5 6 7 8\ncpu0 1 2 3 4 5 6 7 8\n")
    native = json.loads(_native.host_report(str(tmp_path)))
    typed = json.loads(json.dumps(asdict(read_host(str(tmp_path)))))
    assert typed == native


def test_a_folder_that_is_no_host_is_an_error_with_the_path(tmp_path: Path) -> None:
    with pytest.raises(CapabilityError, match=str(tmp_path)):
        read_host(str(tmp_path))


def test_counters_grow_and_this_process_is_listed() -> None:
    first, second = read_activity(), read_activity()
    assert second.monotonic_ns > first.monotonic_ns
    assert second.total.user >= first.total.user
    own = [process for process in read_processes() if process.id == os.getpid()]
    assert [process.parent_id for process in own] == [os.getppid()]
