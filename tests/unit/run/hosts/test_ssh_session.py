"""The connection to a host: what answers there, and what a host may do to it.

A program called ``ssh`` stands for both ends: it runs the command of the connection on this machine.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import CapabilityError
from steelyard.run.hosts import ssh_session
from steelyard.run.hosts.fleet_file import FleetHost
from steelyard.run.hosts.ssh_session import HostAwayError, HostRefusedError, Session

if TYPE_CHECKING:
    from pathlib import Path

LOCAL = 'for last; do :; done\nexec sh -c "$last"'
PART = "part-0001"


def stand_for_ssh(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "ssh").write_text(f"#!/bin/sh\n{script}\n")
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetHost:
    """Give a host whose Steelyard writes what it is asked, and runs a part until it is told to end."""
    stand_for_ssh(tmp_path, LOCAL, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path / "it's home"))
    program = tmp_path / "steelyard it's"
    program.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo steelyard 1.2.3 && exit\n'
        'echo "$@"; cat "$2/part.json"; trap "echo ended; exit" TERM\n'
        "left=1000; while [ $left -gt 0 ]; do left=$((left - 1)); sleep 0.05; done\n"
    )
    program.chmod(0o755)
    return FleetHost("a", "a", steelyard=(str(program),))


@pytest.fixture
def there(tmp_path: Path) -> Path:
    return tmp_path / "it's home" / "a b" / "key" / "placed"


def wait_for(session: Session, state: str) -> None:
    deadline_s = time.monotonic() + 20
    while session.ask("state", PART) != [state]:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_a_part_goes_on_without_the_connection_and_is_found_again(host: FleetHost, there: Path) -> None:
    with Session(host, "~/a b/key") as session:
        assert session.ask("version") == ["steelyard 1.2.3"]
        session.put("../plan.json", b"x" * 200_000)
        session.put(f"{PART}/part.json", b"the part\n")
        session.ask("begin", PART)
        assert session.ask("state", PART) == ["runs"]
        session.ask("begin", PART)
        session.ask("remove", PART)
        assert session.ask("state", PART) == ["runs"]
    assert (there.parent / "plan.json").stat().st_size == 200_000
    with Session(host, "~/a b/key") as session:
        assert session.ask("state", PART) == ["runs"]
        session.ask("end", PART)
        wait_for(session, "over")
        size = (there / PART / "output.txt").stat().st_size
        said = session.read(f"{PART}/output.txt", 0, size).decode()
        assert said == f"run-part {there / PART}\nthe part\nended\n"
        assert session.read(f"{PART}/output.txt", size - 6, 6) == b"ended\n"
        session.leave()
    assert there.exists()
    with Session(host, "~/a b/key") as session:
        session.ask("remove", PART)
        session.leave()
    assert not there.parent.exists()


@pytest.mark.parametrize("said", [r"welcome\n", "no end of a line"])
def test_what_a_shell_says_at_login_is_passed_over(
    host: FleetHost, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_for_ssh(tmp_path, f"printf '{said}'\n{LOCAL}", monkeypatch)
    monkeypatch.setattr(ssh_session, "ANSWER_S", 2.0)
    monkeypatch.setattr(ssh_session, "CONNECT_S", 2)
    with Session(host, "~/key") as session:
        assert session.ask("version") == ["steelyard 1.2.3"]


def test_a_part_that_nobody_began_never_begins(host: FleetHost, there: Path) -> None:
    """Its submitter was killed: what is still on its way must not begin what is placed again."""
    with Session(host, "~/a b/key") as session:
        assert session.ask("state", PART) == ["never"]
        session.put(f"{PART}/part.json", b"")
        session.ask("begin", PART)
        assert session.ask("state", PART) == ["over"]
    assert not (there / PART / "output.txt").exists()


def test_files_are_listed_and_read_exactly(host: FleetHost, there: Path) -> None:
    start = there / PART / "starts" / "n1.00"
    (start / "traces" / "000001.01").mkdir(parents=True)
    (start / "traces" / ".000002.01.partial").mkdir()
    (start / "traces" / "000001.01" / " a 'b' ").write_bytes(b"123")
    (start / "journal.jsonl").write_bytes(b"1234")
    with Session(host, "~/a b/key") as session:
        assert session.ask("starts", PART) == ["4 n1.00/journal.jsonl", "d n1.00/traces/000001.01"]
        assert session.ask("starts", "part-0002") == []
        folder = f"{PART}/starts/n1.00/traces/000001.01"
        assert session.ask("files", folder) == ["3  a 'b' "]
        assert session.read(f"{folder}/ a 'b' ", 0, 3) == b"123"
        with pytest.raises(HostRefusedError, match="is shorter than it said"):
            session.read(f"{folder}/ a 'b' ", 0, 4)
        with pytest.raises(HostRefusedError, match="is shorter than it said"):
            session.read(f"{folder}/absent", 0, 4)


def test_the_cpus_of_a_host_are_those_of_its_part(host: FleetHost, tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    bound = FleetHost("a", "a", steelyard=("sh", "-c", "taskset -cp $$"), cpus=(cpu,))
    with Session(bound, str(tmp_path / "there")) as session:
        assert session.ask("version")[0].endswith(f": {cpu}")


def test_options_come_after_those_that_may_not_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_for_ssh(tmp_path, f'printf "%s\\n" "$@" > {tmp_path}/words\n{LOCAL}', monkeypatch)
    host = FleetHost("a", "me@b", port=2222, ssh_options=("-F", "file"))
    with Session(host, str(tmp_path / "there")):
        words = (tmp_path / "words").read_text().split("\n")
    for word in ("BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no", "ClearAllForwardings=yes"):
        assert words.index(word) < words.index("-F")
    assert words[words.index("-p") + 1] == "2222"
    assert words[words.index("--") + 1] == "me@b"


@pytest.mark.parametrize(
    ("script", "said", "hint"),
    [
        ("echo 'Host key verification failed.' >&2; exit 255", "by ssh without a password", "ssh me@b true"),
        (
            "echo 'me@b: Permission denied (publickey).' >&2; exit 255",
            "Permission denied",
            "ssh-copy-id me@b",
        ),
        ("echo 'mkdir: cannot create: Permission denied' >&2; exit 1", "`a` cannot run parts: mkdir", "`/x`"),
        ("echo 'flock is not installed' >&2; exit 1", "`a` cannot run parts: flock is not", "util-linux"),
    ],
)
def test_what_does_not_pass_by_waiting_is_said_with_the_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, said: str, hint: str
) -> None:
    stand_for_ssh(tmp_path, script, monkeypatch)
    with pytest.raises(CapabilityError) as caught, Session(FleetHost("a", "me@b"), "/x"):
        pass
    assert said in caught.value.message
    assert hint in str(caught.value.hint)


def test_what_a_host_says_does_not_steer_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_for_ssh(tmp_path, "printf '\\033]0;title\\007\\033[2Jgone' >&2; exit 255", monkeypatch)
    with pytest.raises(HostAwayError) as caught, Session(FleetHost("a", "b"), "/x"):
        pass
    assert str(caught.value) == "?]0;title??[2Jgone"


@pytest.mark.parametrize(
    "script",
    [
        "echo 'ssh: connect to host b port 22: Connection refused' >&2; exit 255",
        "exit 0",
        "yes",
        "yes >&2",
        "head -c 100000 /dev/zero; sleep 100",
        "sleep 100",
    ],
)
def test_a_host_that_does_not_answer_as_it_should_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(ssh_session, "CONNECT_S", 0.5)
    monkeypatch.setattr(ssh_session, "ANSWER_S", 0.5)
    stand_for_ssh(tmp_path, script, monkeypatch)
    begun = time.monotonic()
    with pytest.raises(HostAwayError), Session(FleetHost("a", "b"), "/x"):
        pass
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(("said", "is_known"), [("exec date +%s%N", True), ("echo 1700000000", False)])
def test_a_clock_is_read_by_a_round_trip(
    host: FleetHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, *, is_known: bool
) -> None:
    """A ``date`` without nanoseconds, as BusyBox has it, says nothing."""
    program = tmp_path / "programs" / "date"
    program.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{said}\n")
    program.chmod(0o755)
    with Session(host, "~/a b/key") as session:
        found = session.clock()
    if is_known:
        assert found is not None
        assert found.before_ns <= found.there_ns <= found.after_ns
    else:
        assert found is None
