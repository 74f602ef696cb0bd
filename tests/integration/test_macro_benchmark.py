"""A benchmark of the user's own is driven for real: a small server and its load, and every way to fail."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steelyard.studies.replication.experiment_record import read_run
from steelyard.studies.replication.experiments.conduct import conduct
from steelyard.studies.replication.options import ReplicationOptions
from steelyard.studies.request import requested_options
from steelyard.study import study

SERVER = """
import http.server, pathlib, socket, sys, time
port = int(sys.argv[1])
time.sleep(float(sys.argv[2]))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
    def log_message(self, *words): pass
server = http.server.HTTPServer(("127.0.0.1", port), Handler)
print("deployed:", pathlib.Path(sys.argv[3]).read_text(), flush=True)
server.serve_forever()
"""
LOAD = """
import csv, sys, time, urllib.request
url, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with open("out.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["op", "ms", "failed", "begin"])
    for number in range(count):
        begin = time.time()
        urllib.request.urlopen(url).read()
        time.sleep(pause)
        writer.writerow(["get", 1e3 * (time.time() - begin), int(number % 50 == 0), begin])
"""


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def _benchmark(folder: Path, port: int) -> dict[str, Any]:
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "load.py").write_text(LOAD, encoding="utf-8")
    address = f"http://{{address.service}}:{port}/"
    return {
        "command": [sys.executable, "load.py", address, "{rows}", "0"],
        "files": [str(folder / "load.py")],
        "roles": {
            "service": {
                "files": [str(folder / "server.py")],
                "deploy": ["sh", "-c", "echo $GREETING >$1", "sh", "{storage}/rows"],
                "start": [sys.executable, "server.py", str(port), "0", "{storage}/rows"],
                "ready_log": "^deployed: seed 5$",
                "ready_http": address,
                "limit_s": 20.0,
            }
        },
        "settings": {"GREETING": "seed {seed}"},
        "results": {
            "file": "out.csv",
            "operation": "op",
            "response": "ms",
            "failed": "failed",
            "begin": "begin",
            "begin_unit": "s",
        },
        "requires": {"throughput_per_s": 1.0, "p90_ms": 1000.0, "errors_percent": 2.0},
    }


def _asked(folder: Path, benchmark: dict[str, Any]) -> Path:
    """Lay down what is asked for, in the folder of a run."""
    place = {"device": "here", "storage": "H2", "container": None}
    device = {"kind": "local", "storages": {"H2": "memory"}}
    asked = {
        "format": "steelyard/experiment/1",
        "experiment": "e4",
        "configuration": {"name": "own", "parameters": {"rows": 100, "seconds": 1, **benchmark}},
        "setting": {"name": "native", "roles": {"service": place, "driver": place}},
        "devices": {"here": device},
        "block": 1,
        "seed": 5,
    }
    run = folder / "run"
    run.mkdir()
    (run / "experiment.json").write_text(json.dumps(asked), encoding="utf-8")
    return run


def test_a_benchmark_that_reaches_what_it_must_passes(tmp_path: Path, port: int) -> None:
    folder = _asked(tmp_path, _benchmark(tmp_path, port))
    assert conduct(folder) == "completed"
    run = read_run(folder)
    assert [one["is_met"] for one in run.header["criteria"]] == [True, True, True]
    table = run.table("requests")
    assert table.num_rows == 100
    assert table.column("status").to_pylist().count(500) == 2
    assert table.column("intended_ns").to_pylist()[0] == run.header["measure_start_ns"]
    assert (folder / "results.csv").is_file()


def _fails(folder: Path, benchmark: dict[str, Any]) -> str:
    """Give the reason of a failure that is a result."""
    run = _asked(folder, benchmark)
    assert conduct(run) == "failed"
    header = read_run(run).header
    assert (header["outcome"], header["is_complete"]) == ("failed", True)
    return str(header["reason"])


def test_too_little_throughput_and_too_many_errors_are_a_result(tmp_path: Path, port: int) -> None:
    benchmark = _benchmark(tmp_path, port)
    benchmark["command"][-1] = "0.002"
    benchmark["requires"] = {"throughput_per_s": 1000.0, "p90_ms": 1.0, "errors_percent": 1.0}
    reason = _fails(tmp_path, benchmark)
    assert reason.startswith("throughput is ")
    for words in (
        "required: at least 1000 1/s; 90th",
        "required: at most 1 ms; share",
        "is 2 %; required: at",
    ):
        assert words in reason


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (
            "deploy",
            ["sh", "-c", "echo no licence; exit 7"],
            "`deploy` of `service` failed with status 7: no lic",
        ),
        (
            "start",
            ["sh", "-c", "echo no room; exit 3"],
            "`service` ended with status 3 before it was ready: no",
        ),
        ("ready_log", "never said", "`service` was not ready within 1 s"),
    ],
)
def test_a_role_that_does_not_start_is_a_result(
    tmp_path: Path, port: int, key: str, value: object, expected: str
) -> None:
    benchmark = _benchmark(tmp_path, port)
    benchmark["roles"]["service"].update({"limit_s": 1.0, key: value})
    assert expected in _fails(tmp_path, benchmark)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo broken >&2; exit 4", "`command` of `driver` failed with status 4: broken"),
        ("sleep 60", "`command` of `driver` did not end within 1 s"),
        ("echo done", "the load left no results `out.csv`: done"),
    ],
)
def test_a_load_that_fails_is_a_result(tmp_path: Path, port: int, script: str, expected: str) -> None:
    benchmark = _benchmark(tmp_path, port)
    benchmark.update(command=["sh", "-c", script], limit_s=1.0)
    assert _fails(tmp_path, benchmark) == expected


def test_a_wrong_description_is_no_result(tmp_path: Path, port: int) -> None:
    benchmark = _benchmark(tmp_path, port)
    benchmark["results"]["response"] = "nanos"
    run = _asked(tmp_path, benchmark)
    words = [sys.executable, "-m", "steelyard.studies.replication.experiments", str(run)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 1
    assert "lack `nanos` in entry 1; there: `op`, `ms`" in done.stderr
    assert "Traceback" not in done.stderr
    assert read_run(run).header["is_complete"] is False


def test_the_example_of_the_guide_is_a_study_file(tmp_path: Path) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "macro-benchmark.md"
    _, _, rest = guide.read_text(encoding="utf-8").partition("```toml\n")
    file = tmp_path / "study.toml"
    file.write_text(rest.partition("```")[0], encoding="utf-8")
    options = requested_options(study("replication"), file, {})
    assert isinstance(options, ReplicationOptions)
    assert options.own_benchmark.results.file == "results.csv"
    assert list(options.own_benchmark.roles) == ["database", "service"]
