from __future__ import annotations

import ipaddress
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import CapabilityError
from steelyard.studies.communication.transport import link, link_agent, shaping
from steelyard.studies.communication.transport.link import PRIVATE, Link, free_network
from steelyard.studies.communication.transport.link_cleanup import (
    is_abandoned,
    new_key,
    remove_abandoned_links,
)
from steelyard.studies.communication.transport.link_options import RATE_RANGE, LinkOptions, parse_link
from steelyard.studies.communication.transport.link_truth import LinkTruth
from steelyard.studies.communication.transport.shaping import FRAME_BYTES, bucket_us, packet_frames

if TYPE_CHECKING:
    from pathlib import Path

NETWORKS = st.builds(
    lambda number, bits: ipaddress.IPv4Network((number, bits), strict=False),
    st.integers(0, 2**32 - 1),
    st.integers(9, 32),
)


@given(st.lists(NETWORKS, max_size=20))
def test_addresses_are_private_and_free(taken: list[ipaddress.IPv4Network]) -> None:
    found = free_network(taken)
    assert not any(found.overlaps(other) for other in taken)
    assert found.is_private
    assert len(list(found.hosts())) == 2


def test_no_free_network_is_an_error_of_the_host() -> None:
    with pytest.raises(CapabilityError, match="every private network"):
        free_network(PRIVATE)


@given(st.integers(*RATE_RANGE))
def test_a_full_bucket_holds_two_frames_and_a_packet_fits_its_time(rate: int) -> None:
    options = LinkOptions(rate)
    assert bucket_us(options) * rate >= 2 * FRAME_BYTES * 8_000_000
    frames = packet_frames(options)
    assert frames == 1 or frames * FRAME_BYTES * 8_000_000 <= shaping.PACKET_US * rate


def test_payload_is_what_headers_leave() -> None:
    # 1500 bytes of IP: 20 of IP, 20 of TCP, 12 of timestamps; 14 of Ethernet around it.
    assert LinkTruth(8, 0, 0, 0.0).payload_bytes_per_s == pytest.approx(1448 / 1514)
    assert LinkTruth(8, 0, 0, 0.0, has_timestamps=False).payload_bytes_per_s == pytest.approx(1460 / 1514)


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_a_longer_message_takes_longer_by_the_bandwidth(one: int, other: int) -> None:
    truth = LinkTruth(10**9, 18_362, 50_000, 0.0)
    short, long = sorted((one, other))
    extra = truth.fewest_ns(long) - truth.fewest_ns(short)
    # A frame that is not full carries the same headers.
    most = (long - short) / truth.payload_bytes_per_s * 1e9 + 66 * 8
    assert 0 <= extra <= most + 1e-6
    if short > truth.credit_bytes:
        assert extra >= most - 2 * 66 * 8 - 1e-6


def test_names_tell_their_owner() -> None:
    mine = new_key()
    assert not is_abandoned(mine)
    word, process, start, space, number = mine.split("-")
    assert is_abandoned("-".join([word, process, str(int(start) + 1), space, number]))
    # The numbers of another space of processes mean nothing here.
    assert not is_abandoned("-".join([word, process, str(int(start) + 1), str(int(space) + 1), number]))
    assert not is_abandoned("steelyard-1-2")
    assert new_key() != mine


def test_folders_of_the_dead_go_and_all_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    word, process, start, space, number = new_key().split("-")
    dead = "-".join([word, process, str(int(start) + 1), space, number])
    living = "-".join([word, process, start, space, number])
    foreign = "somebody-1-2-3-4"
    for name in (dead, living, foreign):
        (tmp_path / name).mkdir()
        (tmp_path / name / "agent").write_text("")
    removed = remove_abandoned_links(tmp_path / "netns")
    assert [(one.name, one.refused) for one in removed] == [(str(tmp_path / dead), None)]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([living, foreign])


def test_without_root_or_tools_the_reason_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "installed", lambda name: None if name == "tc" else f"/sbin/{name}")
    with pytest.raises(CapabilityError, match="needs `tc`, which is not installed") as caught:
        Link(parse_link("rate=1gbit")).__enter__()
    assert caught.value.hint == "apt-get install iproute2"
    monkeypatch.setattr(link, "installed", lambda name: f"/sbin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(CapabilityError, match="needs the rights of root"):
        Link(parse_link("rate=1gbit")).__enter__()


@pytest.mark.parametrize(
    ("words", "left"),
    [
        (["-x", "host", "echo", "-n"], ["host", "echo", "-n"]),
        (["-l", "me", "-o", "BatchMode=yes", "-p22", "host", "true"], ["host", "true"]),
        (["--", "host", "true"], ["host", "true"]),
        (["host", "true"], ["host", "true"]),
    ],
)
def test_options_of_ssh_are_left_out(words: list[str], left: list[str]) -> None:
    assert link_agent._without_options(words) == left


def test_an_unknown_side_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    sides = tmp_path / "sides.json"
    sides.write_text('{"a": {"host": "one", "address": "10.0.0.1"}}')
    command = [sys.executable, "-I", link_agent.__file__, str(sides), "ssh", "10.0.0.9", "true"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode == link_agent.FAILED
    assert said.stderr == "link agent: `10.0.0.9` is not a side of this link; known: a, one, 10.0.0.1\n"
