"""What other processes do while a study measures, as it is read from the running machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from steelyard.run.machine.bystanders import ITSELF, MOST_NAMED, OTHERS, Look, Used, between, look
from steelyard.run.machine.host import Process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timing

BURN = "import time\nt = time.process_time() + {}\nwhile time.process_time() < t: pass\n"
"""Uses CPU time, whatever else does."""


@pytest.fixture
def neighbour(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Give a shell with a name of its own, which does what it is told."""
    program = tmp_path / "neighbour"
    shutil.copy("/bin/sh", program)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        yield process
        process.stdin.close()


def let(process: subprocess.Popen[str], seconds: float) -> None:
    """Let it run a program that uses CPU time, and wait for its end."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{sys.executable} -c '{BURN.format(seconds)}'\necho done\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def said(found: dict[str, Any], name: str) -> float:
    return float(found["of"].get(name, {"cpu_ms": 0})["cpu_ms"])


def test_what_a_neighbour_used_is_named_and_what_it_used_before_is_not(
    neighbour: subprocess.Popen[str],
) -> None:
    """Its child has ended by the second look; a child that ended before the first counts in neither."""
    let(neighbour, 0.3)
    before = look()
    let(neighbour, 0.2)
    after = look()
    found = between(before, after, itself=os.getppid())
    assert said(found, "neighbour") == 0  # a child of this test belongs to its study
    found = between(before, after, itself=_stranger(after))
    assert 180 <= said(found, "neighbour") < 290
    assert 0 < float(str(found["seconds"])) < 60


def _stranger(seen: Look) -> int:
    """Give a process that has no children, to stand for the one that conducts a study."""
    parents = {each.parent_id for each in seen.processes.values()}
    return next(each.id for each in seen.processes.values() if each.id not in parents and each.id > 1)


def test_a_process_that_lived_long_before_it_ended_is_not_counted_anew(
    neighbour: subprocess.Popen[str], tmp_path: Path
) -> None:
    assert neighbour.stdin is not None
    assert neighbour.stdout is not None
    end = tmp_path / "end"
    wait = f'import os\nprint("burnt", flush=True)\nwhile not os.path.exists("{end}"): time.sleep(0.01)'
    neighbour.stdin.write(f"{sys.executable} -c '{BURN.format(0.3)}{wait}'\necho done\n")
    neighbour.stdin.flush()
    assert neighbour.stdout.readline() == "burnt\n"
    before = look()
    end.touch()
    assert neighbour.stdout.readline() == "done\n"
    assert said(between(before, look(), itself=_stranger(before)), "neighbour") < 150


def test_the_process_that_conducts_is_listed_and_what_it_started_is_not(
    neighbour: subprocess.Popen[str],
) -> None:
    before = look()
    end_s = time.process_time() + 0.1
    while time.process_time() < end_s:
        pass
    let(neighbour, 0.2)
    subprocess.run([sys.executable, "-c", BURN.format(0.3)], check=True)
    found: Any = between(before, look(), itself=os.getpid())
    assert 90 <= said(found, ITSELF) < 300
    assert "neighbour" not in found["of"]


def test_the_least_busy_are_put_together() -> None:
    def seen(cpu_ms: int) -> Look:
        processes = {(n, 1): Process(n, 1, f"p{n}/3:1", "S", 0, 1) for n in range(2, 22)}
        processes[(1, 1)] = Process(1, 0, "slurmd", "S", 0, 1)
        used = {key: Used(cpu_ms * 10**6 * key[0], 0, cpu_ms * 2) for key in processes}
        return Look(float(cpu_ms), processes, used)

    found: Any = between(seen(1), seen(3), itself=99)
    assert list(found["of"]) == [*(f"p{n}" for n in range(21, 21 - MOST_NAMED, -1)), "slurmd", OTHERS]
    assert found["of"]["p21"] == {"cpu_ms": 42.0, "turns": 4}
    assert found["of"][OTHERS] == {"cpu_ms": 2.0 * sum(range(2, 22 - MOST_NAMED)), "turns": 32}
    assert found["seconds"] == 2


def test_the_shell_of_a_login_counts_with_the_server() -> None:
    def seen(ns: int) -> Look:
        processes = {(2, 1): Process(2, 1, "sshd", "S", 0, 1), (3, 1): Process(3, 2, "sh", "S", 0, 1)}
        return Look(ns, processes, {key: Used(ns * 10**6 * key[0], 0, ns) for key in processes})

    assert between(seen(1), seen(2), itself=99)["of"] == {"sshd": {"cpu_ms": 5.0, "turns": 2}}
