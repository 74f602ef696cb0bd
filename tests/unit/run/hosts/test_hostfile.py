from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import CapabilityError, UsageError
from steelyard.run.hosts.hostfile import Host, first_pair, parse_hostfile, read_hostfile
from steelyard.run.hosts.ssh import PINNED, remote_command
from steelyard.run.isolation.attempt import installed
from steelyard.studies.communication.transport import ssh_agent
from steelyard.studies.communication.transport.hosts import Hosts

if TYPE_CHECKING:
    from pathlib import Path

NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)
USERS = st.none() | st.from_regex(r"[a-z_][a-z0-9_-]{0,10}", fullmatch=True)
HOSTS = st.lists(st.builds(Host, NAMES, USERS, st.integers(1, 999)), min_size=1, max_size=5)


@given(HOSTS, st.booleans())
def test_both_formats_are_read(hosts: list[Host], mpich: bool) -> None:  # noqa: FBT001
    form = "{}:{}" if mpich else "{} slots={}"
    lines = [form.format(host.target, host.slots) + "   # comment" for host in hosts]
    assert parse_hostfile("# heading\n\n" + "\n".join(lines), "hosts") == tuple(hosts)


def outcome(text: str) -> tuple[Host, ...] | UsageError:
    try:
        return parse_hostfile(text, "hosts")
    except UsageError as error:
        return error


@given(st.text(max_size=80))
def test_any_text_is_hosts_or_a_named_problem(text: str) -> None:
    found = outcome(text)
    if isinstance(found, UsageError):
        assert found.message.startswith(("the hostfile `hosts` names no host", "`hosts:"))
    else:
        # No name can be taken for an option of ssh.
        assert all(host.name[0].isalnum() and host.slots >= 1 for host in found)


@given(HOSTS)
def test_the_ranks_get_two_different_hosts(hosts: list[Host]) -> None:
    names = [host.name for host in hosts]
    if len(set(names)) == 1:
        with pytest.raises(UsageError, match="names one host only"):
            first_pair(tuple(hosts), "hosts")
    else:
        one, other = first_pair(tuple(hosts), "hosts")
        assert one == hosts[0]
        assert other == next(host for host in hosts if host.name != one.name)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "`hosts` names no host"),
        ("# nothing\n", "`hosts` names no host"),
        ("a\n$b\n", "`hosts:2`: unexpected `$b`"),
        ("a slots=two", "`hosts:1`: unexpected `slots=two`"),
        ("a slots=0", "`hosts:1`: the host takes 0 processes"),
        ("a b", "`hosts:1`: unexpected `b`"),
        ("-oProxyCommand=x", "`hosts:1`: unexpected `-oProxyCommand=x`"),
    ],
)
def test_a_wrong_hostfile_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_hostfile(text, "hosts")
    assert reason in caught.value.message
    expected = "expected `[USER@]HOST [slots=N]` or `[USER@]HOST[:N]` per line, comments after `#`"
    assert caught.value.hint == expected


def test_a_missing_hostfile_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*hosts`: No such file"), Hosts(tmp_path / "hosts"):
        pass
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"cannot read the hostfile .*: no text"):
        read_hostfile(tmp_path / "binary")


def test_every_host_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("no-such-host.invalid\nneither-this.invalid slots=2\n")
    if installed("ssh") is None:
        pytest.skip("needs ssh")
    with pytest.raises(CapabilityError) as caught, Hosts(path):
        pass
    assert "host `no-such-host.invalid` is unknown" in caught.value.message
    assert "host `neither-this.invalid` is unknown" in caught.value.message
    assert caught.value.hint is not None
    assert "getent ahostsv4 no-such-host.invalid" in caught.value.hint


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_words_reach_the_other_host_as_they_are(words: list[str]) -> None:
    command = remote_command("node", words)
    assert command[: len(PINNED) + 3] == ("ssh", *PINNED, "--", "node")
    assert shlex.split(command[-1]) == words


def test_a_remote_shell_sees_the_same_words(tmp_path: Path) -> None:
    # A program in the place of ssh that does what ssh does at the other end: its last word to a shell.
    (tmp_path / "ssh").write_text('#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n')
    (tmp_path / "ssh").chmod(0o755)
    (tmp_path / "ssh.json").write_text(json.dumps(["ssh", "-x", "--"]))
    words = ["printf", "%s|", "a b", "it's", "$HOME", "*", "", "\n"]
    done = subprocess.run(
        [sys.executable, "-I", ssh_agent.__file__, str(tmp_path / "ssh.json"), "node", *words],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "".join(f"{word}|" for word in words[2:])
