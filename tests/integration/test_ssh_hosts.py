"""A study on three hosts that ssh reaches, which lose cables, connections and power, and their submitter.

The hosts are this machine with locks of their own, so they measure at the same time and disturb each other:
what is tested is that every run of the plan is recorded once, not what it measured.
"""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures import ssh_hosts
from fixtures.outcomes import make_plan
from integration.study_process import check_whole, completed, environment, start, write_study_file
from steelyard.errors import CapabilityError
from steelyard.record.placed.journal import JournalReader
from steelyard.record.tables import read_runs
from steelyard.run.hosts.fleet_file import read_fleet
from steelyard.run.hosts.ssh_engine import SshEngine
from steelyard.run.progress import Silent
from steelyard.studies.placed.describing import describe_hosts

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from fixtures.ssh_hosts import Hosts, SshHost

pytestmark = [pytest.mark.timing, pytest.mark.needs_ssh_hosts]

BLOCKS = 9
LONGEST_S = 200.0
JOURNALS = "starts/*/journal.jsonl"
FAULTS = ("cut", "cut for good", "connection", "power", "submitter", "interrupt")


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    if lacking := ssh_hosts.missing():
        pytest.skip(lacking)
    with ssh_hosts.ssh_hosts() as made:
        yield made


@pytest.fixture
def env(hosts: Hosts) -> Iterator[dict[str, str]]:
    for host in hosts.by_name.values():
        host.restore()
    with environment() as found:
        yield found


def words_of(folder: Path, hosts: Hosts, *more: str, lost_after_s: int = 300) -> list[str]:
    study = write_study_file(folder, blocks=BLOCKS, iterations=4)
    file = hosts.write(folder / "hosts.toml", lost_after_s=lost_after_s)
    return [
        *("run", "stability", "--study-file", str(study), "--out", str(folder / "r")),
        *("--on", f"ssh:{file}", *more),
    ]


def journals(result: Path) -> set[tuple[int, str]]:
    """Give what each journal that is here says is complete."""
    found = set()
    for journal in result.glob(f"placed/part-*/{JOURNALS}"):
        for attempt in JournalReader(journal).completed():
            if attempt.ended_utc is not None:
                found.add((attempt.batch, journal.parent.name))
    return found


def running(hosts: Hosts) -> dict[str, list[int]]:
    """Give the processes of parts on each host."""
    return {name: found for name, host in hosts.by_name.items() if (found := host.processes(b"run-part"))}


def signal_parts(hosts: Iterable[SshHost], number: signal.Signals) -> None:
    """Stop the processes of parts, or let them go on."""
    for host in hosts:
        for process in host.processes(b"run-part"):
            with suppress(ProcessLookupError):
                os.kill(process, number)


def wait_until_free(hosts: Hosts) -> None:
    deadline_s = time.monotonic() + 30
    while found := running(hosts):
        assert time.monotonic() < deadline_s, found
        time.sleep(0.1)


def finish(words: list[str], env: dict[str, str]) -> None:
    """Run a study to its end; each part begins with a look at its host, which takes some seconds."""
    process = start(words, env)
    _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, said


@pytest.mark.long("starts three hosts and runs a study on them")
def test_three_hosts_make_one_result_and_keep_nothing(
    tmp_path: Path, hosts: Hosts, env: dict[str, str]
) -> None:
    finish(words_of(tmp_path, hosts), env)
    result = tmp_path / "r"
    check_whole(result)
    found = set(read_runs(result)["host_id"].to_pylist())
    assert len(found) >= 2
    provenance = json.loads((result / "provenance.json").read_text())
    assert set(provenance["hosts"]) == found
    assert {session["host_id"] for session in provenance["sessions"]} == {"", *found}
    assert json.loads((result / "placed" / "ssh.json").read_text())["parts"] == {}
    wait_until_free(hosts)
    assert [list(host.parts.glob("*")) for host in hosts.by_name.values()] == [[], [], []]


def test_hosts_say_what_they_are_before_a_plan_is_made(tmp_path: Path, hosts: Hosts) -> None:
    for host in hosts.by_name.values():
        host.restore()
    fleet = read_fleet(hosts.write(tmp_path / "hosts.toml", more="cpus = [0]"))
    found = describe_hosts(lambda folder: SshEngine(fleet, folder), tmp_path / "r", ["bare"], Silent())
    assert sorted(found) == ["a", "b", "c"]
    assert {each.facts.cpu_count for each in found.values()} == {1}
    assert all(each.technologies["bare"].available for each in found.values())
    assert [list(host.parts.glob("*")) for host in hosts.by_name.values()] == [[], [], []]


def hurt(fault: str, host: SshHost, process: subprocess.Popen[str], chance: np.random.Generator) -> None:
    """Do one thing that a fleet must survive."""
    if fault == "cut":
        host.cut()
        time.sleep(chance.uniform(0, 8))
        host.join()
    elif fault == "cut for good":
        host.cut()
    elif fault == "connection":
        for number in host.processes(b"sshd: root@notty"):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
    elif fault == "power":
        host.kill()
        time.sleep(chance.uniform(0, 8))
        host.start()
    else:
        process.send_signal(signal.SIGKILL if fault == "submitter" else signal.SIGINT)


@pytest.mark.slow
@pytest.mark.timeout(3 * LONGEST_S)
@pytest.mark.parametrize("seed", range(18))
def test_whatever_goes_away_nothing_is_lost_or_doubled(
    tmp_path: Path, hosts: Hosts, env: dict[str, str], seed: int
) -> None:
    chance = np.random.default_rng(seed)
    result = tmp_path / "r"
    fault = FAULTS[seed % len(FAULTS)]
    lost_after_s = 2 if fault == "cut for good" else int(chance.choice((2, 300)))
    words = words_of(tmp_path, hosts, lost_after_s=lost_after_s)
    process = start(words, env)
    goal = int(chance.integers(BLOCKS))
    deadline_s = time.monotonic() + LONGEST_S
    while len(completed(result)) < goal or not (found := running(hosts)):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline_s, "the study does not advance"
        time.sleep(0.02)
    time.sleep(chance.uniform(0, 2))
    hurt(fault, hosts[str(chance.choice(sorted(found)))], process, chance)
    _, said = process.communicate(timeout=LONGEST_S)
    assert "Traceback" not in said
    if fault == "interrupt" and process.returncode == 130:
        wait_until_free(hosts)
    elif fault not in {"submitter", "interrupt"}:
        assert process.returncode == 0, said
    before = completed(result)
    if process.returncode != 0:
        finish(["run", "stability", "--out", str(result), "--resume"], env)
    check_whole(result)
    assert before.items() <= completed(result).items(), "what was complete is counted again"
    assert {batch for batch, _ in journals(result)} == set(completed(result))


@pytest.mark.slow
@pytest.mark.timeout(2 * LONGEST_S)
def test_a_host_that_was_given_up_is_read_when_it_is_back(
    tmp_path: Path, hosts: Hosts, env: dict[str, str]
) -> None:
    """It is back before the others are done: its part, placed again, ends, and what it has counts."""
    result = tmp_path / "r"
    process = start(words_of(tmp_path, hosts, lost_after_s=2), env)

    def wait_for(is_there: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + LONGEST_S
        while not is_there():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline_s
            time.sleep(0.02)

    def at_their_begin() -> list[SshHost]:
        """Give the hosts whose part has completed nothing: it has something left when its cable is pulled."""
        return [
            host
            for host in hosts.by_name.values()
            for journal in host.parts.glob(f"*/placed/*/{JOURNALS}")
            if b'"complete"' not in journal.read_bytes()
        ]

    wait_for(lambda: bool(completed(result)) and bool(at_their_begin()))
    host = at_their_begin()[0]
    host.cut()
    parts = list(result.glob("placed/part-*"))
    wait_for(lambda: len(list(result.glob("placed/part-*"))) > len(parts))
    given = json.loads((result / "placed" / "ssh.json").read_text())["parts"]
    (part,) = (name for name, name_of_host in given.items() if name_of_host == host.name)
    there = {path.parent.name: path.read_bytes() for path in host.parts.glob(f"*/placed/{part}/{JOURNALS}")}

    def is_here() -> bool:
        folder = result / "placed" / part
        here = {path.parent.name: path.read_bytes() for path in folder.glob(JOURNALS)}
        return here.keys() == there.keys() and all(here[name].startswith(there[name]) for name in there)

    host.join()
    others = [each for each in hosts.by_name.values() if each is not host]
    try:
        while not is_here():
            signal_parts(others, signal.SIGSTOP)  # they are not done before
            assert process.poll() is None, process.communicate()[1]
            time.sleep(0.02)
    finally:
        signal_parts(others, signal.SIGCONT)
    _, said = process.communicate(timeout=LONGEST_S)
    assert process.returncode == 0, said
    assert f"host `{host.name}` is given up: it has not answered for 2 s" in said
    check_whole(result)
    assert is_here()


def width(folder: Path, hosts: Hosts, before: str = "", after: str = "", *, config: str | None = None) -> int:
    """Ask hosts whether they can run a plan, with something changed in their file or ssh's."""
    (folder / "placed").mkdir()
    make_plan().write(folder / "plan.json")
    file = hosts.write(folder / "hosts.toml")
    text = file.read_text()
    if config is not None:
        (folder / "ssh_config").write_text(config)
        before, after = str(hosts.folder / "ssh_config"), str(folder / "ssh_config")
    assert before in text
    file.write_text(text.replace(before, after))
    return SshEngine(read_fleet(file), folder / "placed").width


def test_hosts_with_another_steelyard_are_refused_with_both_versions(tmp_path: Path, hosts: Hosts) -> None:
    mine = version("steelyard")
    with pytest.raises(CapabilityError) as caught:
        width(tmp_path, hosts, "steelyard = [", 'steelyard = ["sh", "-c", "echo steelyard 9.9.9", ')
    assert caught.value.code == "capability.remote-version"
    for name in "abc":
        words = f"host `{name}` cannot run parts: `sh` there has `steelyard 9.9.9`, not `steelyard {mine}`"
        assert words in caught.value.message
    assert f"`pip install steelyard=={mine}`" in caught.value.message


def test_hosts_without_steelyard_say_what_they_answer(tmp_path: Path, hosts: Hosts) -> None:
    with pytest.raises(CapabilityError, match=r"`/absent` there answers `.*not found`"):
        width(tmp_path, hosts, "steelyard = [", 'steelyard = ["/absent", ')


def test_cpus_that_no_host_has_are_named(tmp_path: Path, hosts: Hosts) -> None:
    with pytest.raises(CapabilityError, match="host `a` cannot run parts: it has none of the CPUs 990, 991"):
        width(tmp_path, hosts, "labels", "cpus = [990, 991]\nlabels")


def test_a_key_of_a_host_that_nobody_knows_is_refused(tmp_path: Path, hosts: Hosts) -> None:
    """Whatever the configuration says of unknown keys."""
    config = (hosts.folder / "ssh_config").read_text().replace("known_hosts", "absent_hosts")
    with pytest.raises(CapabilityError, match="Host key verification failed") as caught:
        width(tmp_path, hosts, config=f"{config}StrictHostKeyChecking no\nForwardAgent yes\n")
    assert not (hosts.folder / "absent_hosts").exists()
    assert "accept the key of the host once: ssh root@" in caught.value.message


def test_nobody_is_asked_for_a_password(tmp_path: Path, hosts: Hosts) -> None:
    config = (hosts.folder / "ssh_config").read_text().replace("IdentityFile", "CertificateFile")
    with pytest.raises(CapabilityError, match="Permission denied") as caught:
        width(tmp_path, hosts, config=config)
    assert "ssh-copy-id root@" in caught.value.message


def test_a_host_that_is_off_is_left_out_until_it_is_on(tmp_path: Path, hosts: Hosts) -> None:
    """A study begins on the others, and on none it does not begin."""
    for host in hosts.by_name.values():
        host.restore()
    closed = "\n[hosts.closed]\nport = 1\ntarget"
    (tmp_path / "one").mkdir()
    assert width(tmp_path / "one", hosts, "[hosts.a]\ntarget", closed) == 2
    (tmp_path / "all").mkdir()
    with pytest.raises(CapabilityError, match=r"no host answers: `a`: .*Connection refused; `b`: "):
        width(tmp_path / "all", hosts, "target", "port = 1\ntarget")
