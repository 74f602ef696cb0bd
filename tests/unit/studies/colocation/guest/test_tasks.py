"""Tasks of a guest: what is sent arrives whole, in pieces; what cannot be is refused before a boot."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from steelyard.errors import RunError, UsageError
from steelyard.run.guest.virtual_time import clock_shift
from steelyard.studies.colocation.guest.task_init import LOG
from steelyard.studies.colocation.guest.task_stream import TaskOutcome, TaskStream
from steelyard.studies.colocation.guest.tasks import Guest, GuestTask, execute_tasks
from steelyard.studies.colocation.guest.trials import GuestTrial, execute_trials, trial_work_iterations


def _packed(name: str, content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(f"{name}/{LOG}")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _sent() -> bytes:
    first, second = _packed("a", b"first\n"), _packed("b", b"second\n")
    return b"".join(
        [
            b"start a\n" + b"end a 0 %d\n" % len(first) + first,
            b"start b\n" + b"end b 3 %d\n" % len(second) + second + b"done\n",
        ]
    )


@pytest.mark.parametrize("piece", [1, 7, 4096])
def test_tasks_arrive_in_pieces_of_any_size(tmp_path: Path, piece: int) -> None:
    path, out = tmp_path / "stream", tmp_path / "out"
    path.write_bytes(b"")
    stream = TaskStream(path, out)
    told = []
    content = _sent()
    for start in range(0, len(content), piece):
        with path.open("ab") as sent:
            sent.write(content[start : start + piece])
        told += [(name, outcome and outcome.exit_code) for name, outcome in stream.read()]
    assert told == [("a", None), ("a", 0), ("b", None), ("b", 3)]
    assert stream.is_complete
    assert [outcome.log() for outcome in stream.outcomes] == ["first\n", "second\n"]


def test_a_guest_that_stops_in_between_is_not_complete(tmp_path: Path) -> None:
    path = tmp_path / "stream"
    path.write_bytes(_sent()[:-40])
    stream = TaskStream(path, tmp_path / "out")
    assert [name for name, outcome in stream.read() if outcome] == ["a"]
    assert not stream.is_complete
    assert stream.state() == "1 tasks had ended, `b` was running"


def test_what_a_guest_never_sends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stream"
    path.write_bytes(b"end a zero 3\n")
    with pytest.raises(RunError, match="unexpected message from the guest: `end a zero 3`"):
        list(TaskStream(path, tmp_path).read())
    path.write_bytes(b"end a 0 3\nxyz")
    with pytest.raises(RunError, match="did not arrive complete"):
        list(TaskStream(path, tmp_path).read())


def test_a_task_that_failed_says_its_last_lines(tmp_path: Path) -> None:
    (tmp_path / LOG).write_text("".join(f"line {number}\n" for number in range(40)), encoding="utf-8")
    TaskOutcome("a", tmp_path, 0).require_success()
    with pytest.raises(RunError, match="status 2:\nline 25\n") as caught:
        TaskOutcome("a", tmp_path, 2).require_success()
    assert caught.value.message.endswith("line 39")


@pytest.mark.parametrize("names", [["a b"], ["../a"], [""], ["a", "a"]])
def test_names_that_cannot_be_folders_are_refused(tmp_path: Path, names: list[str]) -> None:
    with pytest.raises(UsageError):
        execute_tasks([GuestTask(name, "true") for name in names], tmp_path, Guest({}))


@pytest.mark.parametrize("sockets", [0, 3, 8])
def test_cpus_that_do_not_fill_their_sockets_are_refused(tmp_path: Path, sockets: int) -> None:
    with pytest.raises(UsageError, match=f"over {sockets} sockets"):
        execute_tasks([GuestTask("a", "true")], tmp_path, Guest({}, cpus=4, sockets=sockets))


@pytest.mark.parametrize("threads", [0, 3, 4])
def test_cpus_that_do_not_fill_their_cores_are_refused(threads: int) -> None:
    with pytest.raises(UsageError, match=f"2 CPUs of a socket in cores of {threads} threads"):
        Guest({}, cpus=4, sockets=2, threads=threads)


@pytest.mark.parametrize("possible", [1, 3])
def test_possible_cpus_that_do_not_fill_their_sockets_are_refused(possible: int) -> None:
    with pytest.raises(UsageError, match=f"{possible} possible CPUs in sockets of 2"):
        Guest({}, cpus=2, possible_cpus=possible)


def test_trials_that_cannot_be_executed_are_refused_before_a_boot(tmp_path: Path) -> None:
    trial = GuestTrial("a", {"service": {"work_iterations": 0}})
    with pytest.raises(UsageError, match="lack `steelyard-load`"):
        execute_trials([trial], tmp_path, Guest({}))
    with pytest.raises(UsageError, match="to be measured in the guest"):
        execute_trials([trial], tmp_path, Guest({"steelyard-load": Path("/bin/true")}))


@pytest.mark.parametrize("cpus", [1, 2, 4, 8])
def test_a_request_is_as_long_on_any_number_of_busy_cpus(cpus: int) -> None:
    assert trial_work_iterations(4000, cpus) == trial_work_iterations(4000, 1)


@pytest.mark.parametrize("at_most_ns", [1, 2, 4, 8])
def test_a_request_is_more_instructions_on_faster_cpus(at_most_ns: int) -> None:
    slow, fast = trial_work_iterations(4000, 1), trial_work_iterations(4000, 1, at_most_ns)
    assert fast == pytest.approx(slow * 8 / at_most_ns, rel=1e-4)


def test_an_instruction_takes_time() -> None:
    with pytest.raises(UsageError, match="0 ns per instruction"):
        clock_shift(2, 0)


@pytest.mark.parametrize("cpus", [0, 65])
def test_so_many_cpus_are_refused(cpus: int) -> None:
    with pytest.raises(UsageError):
        clock_shift(cpus)
