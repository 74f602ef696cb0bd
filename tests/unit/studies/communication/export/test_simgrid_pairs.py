from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from fixtures.cost_models import MODEL
from steelyard.errors import UsageError
from steelyard.model import FindingSet
from steelyard.studies.analysis_parts import finding
from steelyard.studies.communication.export.simgrid_pairs import (
    LIBRARY,
    SOURCE,
    PairModel,
    pair_models,
    platform_files,
)
from steelyard.studies.communication.simulation import message_run

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model.cost_model import CostModel

SIZES = (0, 1, 1194, 1195, 29921, 65558, 130728, 2_000_000)
FASTER = tuple(replace(each, base=each.base / 10) for each in MODEL.curves["delay"])
NEAR = replace(
    replace(MODEL, state="steady", bandwidth_bytes_per_s=2e10, latency_s=5e-7),
    curves={"delay": FASTER},
    measured_bytes={"delay": (1, 10_000_000)},
    asynchronous_bytes=4000,
    detached_bytes=4000,
)


def recorded(folder: Path, *models: tuple[str, str, str, int, CostModel]) -> Path:
    """Write a result with models: transport, link, state, launches."""
    (folder / "models").mkdir()
    found = []
    for number, (transport, link, state, launches, cost) in enumerate(models):
        file = f"models/m{number}.json"
        (folder / file).write_text(cost.to_json())
        subject = {"transport": transport, "link": link, "state": state}
        found.append(
            finding("model", subject, "fitted", facts={"model_file": file, "replications": launches})
        )
    FindingSet("communication", "p", 1, {}, tuple(found)).write(folder / "findings.json")
    return folder


def test_a_pair_takes_the_state_of_most_launches_and_the_first_transport_that_it_has(tmp_path: Path) -> None:
    result = recorded(
        tmp_path,
        ("tcp", "n1:n2", "slow", 1, MODEL),
        ("tcp", "n1:n2", "fast", 3, NEAR),
        ("shm", "n1:n1", "steady", 3, NEAR),
        ("tcp", "n1:n1", "steady", 3, MODEL),
        ("tcp", "none", "steady", 3, MODEL),
    )
    found = pair_models(result, ("shm", "tcp"))
    assert [(each.link, each.name, each.others) for each in found] == [("n1:n2", "m1", 1), ("n1:n1", "m2", 0)]
    with pytest.raises(UsageError, match="`n1:n1` has models of `shm`, `tcp`"):
        pair_models(result)


def test_a_result_without_pairs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no model of a pair of nodes"):
        pair_models(recorded(tmp_path, ("tcp", "none", "steady", 3, MODEL)))


def test_thresholds_that_differ_are_said() -> None:
    models = (PairModel("a:b", "far", MODEL, 0), PairModel("a:a", "near", NEAR, 2))
    text = platform_files(models, (3, 32))[SOURCE]
    assert "@" not in text
    assert '"smpi/send-is-detached-thresh:4001"' in text
    assert (
        "// Sends return early below 4001, 65481 bytes, depending on the pair; the smallest is taken." in text
    )
    assert "// a:a: near, the most common of 3 states of the host" in text


@pytest.mark.needs_simgrid
@pytest.mark.skipif(shutil.which("smpirun") is None, reason="needs SimGrid: `make deps-communication`")
@pytest.mark.long("compiles a platform and simulates on it")
def test_each_pair_of_one_platform_takes_as_long_as_its_own_model(tmp_path: Path) -> None:
    models = (PairModel("a:b", "far", MODEL, 0), PairModel("a:a", "near", NEAR, 0))
    version = message_run.simgrid_version()
    for name, text in platform_files(models, version).items():
        (tmp_path / name).write_text(text)
    build = ["g++", "-O1", "-std=c++17", "-shared", "-fPIC", SOURCE, "-lsimgrid", "-o", LIBRARY]
    subprocess.run(build, cwd=tmp_path, check=True, capture_output=True)
    message_run.build_rank_program(tmp_path / "rank")
    rows = "".join(f"pingpong,{size}\n" for size in (0, *SIZES))
    (tmp_path / "plan.csv").write_text(f"op,size\n{rows}")
    for model, hosts in zip(models, ("a\nb\n", "a\na\n"), strict=True):
        (tmp_path / "hosts").write_text(hosts)
        (tmp_path / "trace").mkdir(exist_ok=True)
        words = ["./rank", "--plan", "plan.csv", "--out", "trace", "--transport", "simgrid", "--stamps-ps"]
        words += ["--block", str(len(SIZES) + 1), "--probes", "0"]
        message_run._smpirun(tmp_path, LIBRARY, version, words, 100.0)
        answered = message_run._simulated(tmp_path / "trace", len(SIZES)).half_round_trips_s
        expected = [model.cost.predict(float(size)) for size in SIZES]
        np.testing.assert_allclose(answered, expected, rtol=1e-3)
