"""The service of orders, deployed once for all tests here, under load: E3 and the stand-in of E4."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import struct
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.errors import RunError
from steelyard.studies.replication.devices.placement import artefacts_folder
from steelyard.studies.replication.experiment_record import read_run
from steelyard.studies.replication.experiments import database
from steelyard.studies.replication.experiments.conduct import BenchmarkFailed, Conducted
from steelyard.studies.replication.experiments.deployment import deployed
from steelyard.studies.replication.experiments.load import load, require_right_answers
from steelyard.studies.replication.experiments.macro import MIX, require_passed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.replication.experiments.deployment import Deployment

ROWS = 300
ROLES = ("database", "service", "driver")
PARAMETERS: dict[str, Any] = {
    "rate_per_s": 25.0,
    "seconds": 1.0,
    "warm_up_seconds": 0.5,
    "connections": 8,
    "rows": ROWS,
    "mix": MIX,
    # For a quick start: what is measured in a study has the defaults.
    "jvm_options": ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
}


def _missing() -> str | None:
    if shutil.which("java") is None:
        return "java is missing (`make deps-replication`)"
    if not any(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
        return "PostgreSQL is missing (`make deps-replication`)"
    if not (artefacts_folder() / "service" / "service.jar").is_file():
        return "the service is not built (`make deps-replication`)"
    return None


pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_postgres,
    pytest.mark.skipif(_missing() is not None, reason=str(_missing())),
    pytest.mark.timeout(300),
]


def _run(folder: Path) -> Conducted:
    place = {"device": "here", "storage": "H2", "container": None}
    asked = {
        "format": "steelyard/experiment/1",
        "experiment": "e3",
        "configuration": {"name": "mixed", "parameters": PARAMETERS},
        "setting": {"name": "native", "roles": dict.fromkeys(ROLES, place)},
        "devices": {"here": {"kind": "local", "storages": {"H2": "memory"}}},
        "block": 1,
        "seed": 11,
    }
    folder.mkdir(exist_ok=True)
    (folder / "experiment.json").write_text(json.dumps(asked), encoding="utf-8")
    return Conducted(asked, folder)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Conducted, Deployment]]:
    run = _run(tmp_path_factory.mktemp("deployed"))
    with deployed(run, PARAMETERS) as service:
        yield run, service
    # After its end: both have ended in order.
    run.ends("completed")
    header = read_run(run.folder).header
    assert header["missing"] == []
    pauses = read_run(run.folder).table("pauses")
    assert set(pauses.column("kind").to_pylist()) <= {"gc", "safepoint"}
    assert pauses.num_rows > 0
    assert "database system is shut down" in run.log("database").read_text(encoding="utf-8")
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://{service.address}/ready", timeout=5)


def test_the_service_says_that_it_is_ready_and_the_header_names_versions(
    deployment: tuple[Conducted, Deployment],
) -> None:
    run, service = deployment
    with urllib.request.urlopen(f"http://{service.address}/ready", timeout=10) as answer:
        facts = json.load(answer)
    assert facts["rows"] == ROWS
    run.ends("completed")
    header = read_run(run.folder).header
    for name in ("Spring Boot", "Hibernate", "PostgreSQL", "JDK", "Tomcat"):
        assert header["software"][name] == facts[name]
    assert set(header["start_up_ns"]) == {"initdb", "database", "web"}
    assert all(time_ns > 0 for time_ns in header["start_up_ns"].values())


def test_every_request_is_answered_rightly_and_kept(
    deployment: tuple[Conducted, Deployment], tmp_path: Path
) -> None:
    run = _run(tmp_path)
    loaded = load(run, deployment[1].address, PARAMETERS)
    require_right_answers(loaded)
    assert loaded.wrong_share == 0
    run.ends("completed")
    requests = read_run(tmp_path).table("requests")
    assert set(requests.column("operation").to_pylist()) == set(MIX)
    intended, sent, received = (
        requests.column(f"{name}_ns").to_numpy() for name in ("intended", "sent", "received")
    )
    assert np.all(np.diff(intended) >= 0)
    assert np.all((intended <= sent) & (sent < received))
    expected = PARAMETERS["rate_per_s"] * (PARAMETERS["seconds"] + PARAMETERS["warm_up_seconds"])
    assert abs(requests.num_rows - expected) < 5 * np.sqrt(expected)
    # Another load with the same seed sends the same.
    again = _run(tmp_path / "again")
    repeated = load(again, deployment[1].address, PARAMETERS)
    assert np.array_equal(repeated.records["operation"], loaded.records["operation"])
    assert np.array_equal(np.diff(repeated.records["intended_ns"]), np.diff(intended))


def test_the_stand_in_passes_and_fails_by_what_it_reaches(
    deployment: tuple[Conducted, Deployment], tmp_path: Path
) -> None:
    # The less is injected, the more other work of this host it takes to fail.
    for rate in (20.0, 10.0, 5.0):
        passing = _run(tmp_path / f"passing-{rate:g}")
        loaded = load(passing, deployment[1].address, {**PARAMETERS, "rate_per_s": rate, "seconds": 2.0})
        with suppress(BenchmarkFailed):
            require_passed(passing, loaded, p90_limit_ms=60_000.0)
            break
    passing.ends("completed")
    criteria = read_run(passing.folder).header["criteria"]
    assert [one["is_met"] for one in criteria] == [True, True], criteria
    # More than one connection can carry: the service falls behind.
    failing = _run(tmp_path / "failing")
    too_much = {**PARAMETERS, "rate_per_s": 3000.0, "connections": 1, "warm_up_seconds": 0.0, "seconds": 0.1}
    with pytest.raises(BenchmarkFailed, match=r"throughput is .* required: at least .* 90th percentile of"):
        require_passed(failing, load(failing, deployment[1].address, too_much), p90_limit_ms=0.001)
    with pytest.raises(
        BenchmarkFailed, match=r"90th percentile of latency is .*; required: at most 0.001 ms"
    ):
        require_passed(passing, loaded, p90_limit_ms=0.001)


def test_wrong_answers_make_a_run_fail(deployment: tuple[Conducted, Deployment], tmp_path: Path) -> None:
    run = _run(tmp_path)
    # Of ten times as many orders as there are, nine in ten are not there.
    loaded = load(run, deployment[1].address, {**PARAMETERS, "rows": 10 * ROWS, "mix": {"read": 1.0}})
    assert loaded.summary["wrong_status"] > loaded.summary["scheduled"] / 2
    assert set(loaded.records["status"]) <= {200, 404}
    with pytest.raises(BenchmarkFailed, match=f"another status: {loaded.summary['wrong_status']}"):
        require_right_answers(loaded)
    with pytest.raises(RunError, match="failed with status 2: `connections` is `9999`; allowed: whole"):
        load(_run(tmp_path), deployment[1].address, {**PARAMETERS, "connections": 9999})


def test_a_taken_port_is_passed_over_and_another_host_must_know_the_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([taken.getsockname()[1] - database.LOWEST_PORT, secrets.randbelow(database.PORTS)])
        monkeypatch.setattr(database.secrets, "randbelow", lambda _: next(ports))
        run = _run(tmp_path)
        with run.place("database") as place, database.private_database(run, place) as made:
            assert made.port != taken.getsockname()[1]
            with socket.create_connection((made.address, made.port), timeout=10) as connection:
                # SOURCE: PostgreSQL's protocol 3.0, StartupMessage and Authentication (message formats).
                words = b"user\0steelyard\0database\0postgres\0\0"
                connection.sendall(struct.pack("!ii", 8 + len(words), 3 << 16) + words)
                kind, _, method = struct.unpack("!cii", connection.recv(9))
            assert (kind, method) == (b"R", 10), "a password is asked for (SASL)"
    log = run.log("database").read_text(encoding="utf-8")
    assert "could not bind" in log
    assert log.rstrip().endswith("database system is shut down")
    run.ends("completed")
