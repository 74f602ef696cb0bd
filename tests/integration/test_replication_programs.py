"""The programs of E1, E2 and `causes`, really executed: what they leave, and that it is plausible."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from steelyard.errors import RunError
from steelyard.studies.replication.devices.placement import artefacts_folder
from steelyard.studies.replication.experiment_record import ExperimentRun, read_run
from steelyard.studies.replication.experiments.call_program import CONFIGURATIONS
from steelyard.studies.replication.experiments.conduct import conduct
from steelyard.studies.replication.experiments.micro import BENCHMARKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BUILT = artefacts_folder()
ROOT = Path(__file__).resolve().parents[2]
CALLS = {"calls": 150, "warm_up_calls": 50, "depth": 10, "method_ns": 20_000}
"""Few enough that no framework's queue overflows, so that every record of a probe must arrive."""

pytestmark = pytest.mark.slow
needs_built = [
    pytest.mark.needs_replication,
    pytest.mark.skipif(
        not (BUILT / "benchmarks").is_dir() or shutil.which("java") is None,
        reason="needs what `make deps-replication` builds",
    ),
]
needs_python = [
    pytest.mark.needs_replication,
    pytest.mark.skipif(not (BUILT / "python").is_dir(), reason="needs what `make deps-replication` builds"),
]

Executed = tuple[ExperimentRun, "np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]


@pytest.fixture
def execute(tmp_path: Path) -> Callable[..., ExperimentRun]:
    def executed(experiment: str, configuration: str, parameters: Mapping[str, object]) -> ExperimentRun:
        asked = {
            "format": "steelyard/experiment/1",
            "experiment": experiment,
            "configuration": {"name": configuration, "parameters": parameters},
            "setting": {"name": "native", "roles": {"app": {"device": "here", "storage": "memory"}}},
            "devices": {"here": {"kind": "local", "storages": {"memory": "memory"}}},
            "block": 1,
            "seed": 1,
        }
        folder = tmp_path / "run"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "experiment.json").write_text(json.dumps(asked), encoding="utf-8")
        assert conduct(folder) == "completed"
        return read_run(folder)

    return executed


def times(run: ExperimentRun) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    table = run.table("calls")
    return table["start_ns"].to_numpy(), table["duration_ns"].to_numpy()


def of_configuration(name: str) -> object:
    return pytest.param(name, marks=needs_python if "python" in name else needs_built)


@pytest.mark.parametrize("configuration", [of_configuration(name) for name in CONFIGURATIONS])
def test_every_call_of_a_configuration_is_kept_and_plausible(
    execute: Callable[..., ExperimentRun], configuration: str
) -> None:
    run = execute("e2", configuration, CALLS)
    header = run.header
    assert (header["calls"], header["warm_up_calls"]) == (150, 50)
    assert header["measured_ns"] >= 100 * 20_000
    assert header["software"]
    assert run.has("pauses") is ("python" not in configuration)
    if configuration.endswith("unrecorded"):
        assert not run.has("calls")
    else:
        starts, durations = times(run)
        assert len(starts) == 150
        assert durations.min() >= 20_000
        assert np.all(starts[1:] >= starts[:-1] + durations[:-1])
        assert starts[49] < header["measure_start_ns"] <= starts[50]
        assert durations[50:].sum() <= header["measured_ns"]
    if configuration.endswith("writing"):
        # One record for each call of the method, the recursive ones included.
        assert header["written"]["records"] == header["written"]["expected_records"] == 150 * 10
        assert header["written"]["bytes"] > 150 * 10 * 40
    else:
        assert "written" not in header


@pytest.mark.parametrize("configuration", BENCHMARKS)
@needs_built[0]
@needs_built[1]
def test_jmh_measures_each_benchmark_in_one_fork_with_its_options(
    execute: Callable[..., ExperimentRun], configuration: str
) -> None:
    run = execute("e1", configuration, {"warm_up_iterations": 1, "iterations": 2, "iteration_ms": 20})
    (result,) = json.loads((run.folder / "jmh.json").read_text(encoding="utf-8"))
    name, options = BENCHMARKS[configuration]
    assert result["benchmark"] == name
    assert result["mode"] == "thrpt"
    assert result["jvmArgs"] == list(options)
    (fork,) = result["primaryMetric"]["rawData"]
    assert len(fork) == 2
    assert min(fork) > 0
    assert run.header["software"]["jmh"] == result["jmhVersion"]


def collected(run: ExperimentRun) -> np.ndarray[Any, Any]:
    """Give begin and length of the collections during the measured calls."""
    rows = run.table("pauses").to_pylist()
    begin = run.header["measure_start_ns"]
    found = [(row["start_ns"], row["duration_ns"]) for row in rows if row["kind"] == "gc"]
    return np.array([pause for pause in found if pause[0] >= begin], dtype=np.int64).reshape(-1, 2)


@needs_built[0]
@needs_built[1]
def test_planted_allocation_makes_collections_that_stop_calls_and_a_pool_of_objects_removes_them(
    execute: Callable[..., ExperimentRun],
) -> None:
    asked = {"calls": 60_000, "warm_up_calls": 20_000, "depth": 10, "method_ns": 0, "planted": "allocation"}
    run = execute("causes", "as-it-is", asked)
    pauses = collected(run)
    assert len(pauses) > 0
    start_ns, length_ns = pauses[np.argmax(pauses[:, 1])]
    starts, durations = times(run)
    # On the one clock of both, the longest of them lies within the last call that began before it.
    stopped = int(np.searchsorted(starts, start_ns, side="right")) - 1
    assert durations[stopped] >= length_ns
    assert starts[stopped] + durations[stopped] >= start_ns + length_ns

    pooled = execute("causes", "object-pools", {**asked, "app_options": ["--object-pools"]})
    assert len(collected(pooled)) == 0
    assert pooled.header["program"]["is_pooled"] is True


@needs_built[0]
@needs_built[1]
def test_with_one_stamp_a_call_begins_where_the_one_before_ended(
    execute: Callable[..., ExperimentRun],
) -> None:
    run = execute("causes", "clock", {**CALLS, "app_options": ["--clock", "one"], "depth": 1})
    assert run.header["program"]["stamps_per_call"] == 1
    starts, durations = times(run)
    ends = starts + durations
    assert np.array_equal(starts[1:50], ends[:49])
    assert np.array_equal(starts[51:], ends[50:-1])


@needs_built[0]
@needs_built[1]
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"app_options": ["--depth", "0"]}, r"status 2: .*`--depth 0`; allowed: 1 to 1000"),
        ({"jvm_options": ["-XX:+Strange"]}, r"status 1: .*Unrecognized VM option 'Strange'"),
    ],
)
def test_what_java_says_about_wrong_options_is_the_reason(
    execute: Callable[..., ExperimentRun], options: dict[str, object], said: str
) -> None:
    with pytest.raises(RunError, match=said) as caught:
        execute("e2", "none-baseline", {**CALLS, **options})
    assert caught.value.hint


def test_the_program_in_python_times_calls_without_any_framework(tmp_path: Path) -> None:
    record, about = tmp_path / "calls.bin", tmp_path / "about.json"
    words = [sys.executable, str(ROOT / "workloads/python/monitored.py"), "--about", str(about)]
    words += ["--record", str(record), "--calls", "40", "--depth", "3", "--method-ns", "1000"]
    subprocess.run(words, check=True)
    calls = np.fromfile(record, np.dtype([("start_ns", "<u8"), ("duration_ns", "<u8")]))
    assert len(calls) == 40
    assert calls["duration_ns"].min() >= 1000
    assert np.all(np.diff(calls["start_ns"]) >= calls["duration_ns"][:-1])
    assert json.loads(about.read_text(encoding="utf-8"))["measured_ns"] >= calls["duration_ns"].sum()
