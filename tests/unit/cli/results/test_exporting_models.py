"""The verbs export simgrid, export model and predict as a user calls them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.cost_models import MODEL, with_noise
from steelyard.cli import execute
from steelyard.model.cost_model import CostPiece

if TYPE_CHECKING:
    from pathlib import Path

has_simgrid = shutil.which("smpirun") is not None and shutil.which("g++") is not None


@pytest.fixture
def result(tmp_path: Path) -> Path:
    models = tmp_path / "result" / "models"
    models.mkdir(parents=True)
    (models / "tcp-fast.json").write_text(with_noise(MODEL).to_json(), encoding="utf-8")
    return tmp_path / "result"


@pytest.fixture
def two(result: Path) -> Path:
    slow = replace(MODEL, state="slow")
    (result / "models" / "tcp-slow.json").write_text(slow.to_json(), encoding="utf-8")
    return result


def error_of(words: list[str], status: int, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert execute(words) == status
    return capsys.readouterr().err


def test_an_export_lands_in_the_result_and_says_how_close_it_is(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["export", "simgrid", str(result)]) == 0
    text = capsys.readouterr().out
    names = {path.name for path in (result / "simgrid").iterdir()}
    assert names == {"platform.xml", "options.txt", "hosts", "README.txt"}
    assert "tcp-fast, profile rtt" in text
    told = re.search(r"within (0\.\d+)% of the model", text)
    assert told is not None
    assert 0 < float(told[1]) <= 0.1
    assert "note: 1195 to 29920 bytes: a power law; chords instead" in text


def test_an_export_answers_programs_in_json(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["export", "simgrid", str(result), "--profile", "os", "--noise", "--json"]
    assert execute([*words, "--out", str(result / "x"), "--simgrid", "3.36"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["largest_distance_ratio"] <= 1e-3
    assert str(result / "x" / "platform_noise.cpp") in answer["files"]
    assert "network/latency-factor" in (result / "x" / "options.txt").read_text(encoding="utf-8")


@pytest.mark.needs_simgrid
@pytest.mark.skipif(not has_simgrid, reason="needs SimGrid: `make deps-communication`")
def test_the_commands_in_the_exported_files_work_as_they_stand(result: Path) -> None:
    assert execute(["export", "simgrid", str(result), "--noise"]) == 0
    folder = result / "simgrid"
    (folder / "program.c").write_text(
        "#include <mpi.h>\n#include <stdio.h>\n"
        "int main(int argc, char **argv) {\n  int rank;\n  char byte[1000] = {0};\n"
        "  MPI_Init(&argc, &argv);\n"
        "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
        "  if (rank == 0) MPI_Send(byte, 1000, MPI_BYTE, 1, 0, MPI_COMM_WORLD);\n"
        "  else MPI_Recv(byte, 1000, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);\n"
        '  if (rank == 1) printf("%.12f\\n", MPI_Wtime());\n  MPI_Finalize();\n  return 0;\n}\n',
        encoding="utf-8",
    )
    readme = (folder / "README.txt").read_text(encoding="utf-8").splitlines()
    compiles, on_platform, with_options = [
        line.strip() for line in readme if line.startswith(("    smpicc", "    smpirun"))
    ]
    head = (folder / "platform_noise.cpp").read_text(encoding="utf-8").splitlines()[:8]
    builds, with_noise_ = [line.removeprefix("//").strip() for line in head if line.startswith("//   ")]
    with_options = with_options.replace("mine.xml", "platform.xml").replace("mine ", "hosts ")
    for command in (compiles, builds):
        subprocess.run(["sh", "-ec", command], cwd=folder, check=True, timeout=60)
    quiet = " --log=root.thres:critical --cfg=smpi/simulate-computation:no ./program"
    seconds = []
    for command in (on_platform, with_options, with_noise_):
        shown = command.replace(" ./program", quiet)
        answer = subprocess.run(
            ["sh", "-ec", shown], cwd=folder, check=True, timeout=60, capture_output=True, text=True
        )
        seconds.append(float(answer.stdout))
    expected = MODEL.predict(1000)
    assert seconds[:2] == pytest.approx([expected, expected], abs=2e-12)
    low, *_, high = with_noise(MODEL).noise[0].quantiles
    assert low * expected <= seconds[2] <= high * expected
    assert seconds[2] != pytest.approx(expected, rel=1e-6)


def test_a_model_goes_out_in_every_form(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["export", "model", str(result), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(with_noise(MODEL).to_json())
    out = result / "cost.py"
    assert execute(["export", "model", str(result), "--format", "python", "--out", str(out)]) == 0
    assert "def seconds(size_bytes" in out.read_text(encoding="utf-8")
    assert execute(["export", "model", str(result / "models/tcp-fast.json"), "--format", "rust"]) == 0
    assert "pub fn seconds(bytes: f64) -> f64" in capsys.readouterr().out


def test_a_prediction_states_the_host_state_and_its_spread(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["predict", str(result), "--size", "0,64KiB", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["model"], answer["state"]) == ("tcp-fast", "fast")
    first, second = answer["predictions"]
    assert (first["size_bytes"], first["seconds"]) == (0, MODEL.predict(0))
    assert (second["size_bytes"], second["seconds"]) == (65536, MODEL.predict(65536))
    assert second["p5_seconds"] < second["seconds"] < second["p95_seconds"]
    assert execute(["predict", str(result), "--size", "64KiB", "--curve", "send"]) == 0
    text = capsys.readouterr().out
    assert "tcp-fast: send, while the host is in the state `fast`" in text
    assert "its spread is not part of the model" in text


def test_a_size_that_was_not_measured_is_told_in_text_and_in_json(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["predict", str(result), "--size", "0,1,10000000,1G"]
    assert execute(words) == 0
    head, zero, one, largest, beyond, band = capsys.readouterr().out.splitlines()
    outside = "(extrapolated; outside the measured sizes (1 B to 10 000 000 B))"
    assert zero.endswith(outside)
    assert beyond.endswith(outside)
    assert "9 of 10 messages: " in one
    assert "outside" not in f"{head}{one}{largest}"
    assert "not a confidence interval of the median" in band
    assert execute([*words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["measured_bytes"] == [1, 10_000_000]
    assert "not a confidence interval" in answer["band"]
    rows = answer["predictions"]
    assert [row["is_measured_size"] for row in rows] == [False, True, True, False]
    assert [row["p5_seconds"] is None for row in rows] == [True, False, False, True]
    assert rows[0]["note"] == "outside the measured sizes (1 B to 10 000 000 B)"
    assert rows[1]["note"] is None


def test_a_model_of_the_first_version_is_read_and_its_sizes_are_unknown(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = result / "models" / "tcp-fast.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["measured_bytes"]
    path.write_text(json.dumps(content | {"schema": "steelyard/cost-model/1"}), encoding="utf-8")
    assert execute(["predict", str(result), "--size", "1"]) == 0
    assert "the model does not say which sizes were measured" in capsys.readouterr().out
    assert execute(["export", "simgrid", str(result)]) == 0
    assert "the model does not say which sizes were measured" in capsys.readouterr().out


def test_a_time_below_zero_is_no_prediction(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steep = replace(MODEL, curves={"delay": (CostPiece(-1, None, "line", -1e-6, 1e-9),)}, measured_bytes={})
    (result / "models" / "tcp-fast.json").write_text(steep.to_json(), encoding="utf-8")
    error = error_of(["predict", str(result), "--size", "2000,1"], 6, capsys)
    assert "cannot predict `delay` of 1 bytes: the model says -9.99e-07 s there" in error
    assert "hint: " in error


def test_sizes_on_either_side_of_a_switch_are_told_apart(
    result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["predict", str(result), "--size", "65375,65376"]) == 0
    text = capsys.readouterr().out
    assert "65 375 B" in text
    assert "65 376 B" in text


def test_several_models_are_listed_and_one_is_chosen(two: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["predict", str(two), "--size", "1"], ["export", "simgrid", str(two)]):
        error = error_of(words, 2, capsys)
        assert "several cost models: `tcp-fast`, `tcp-slow`" in error
        assert "hint: choose one: `--model tcp-fast`" in error
        assert execute([*words, "--model", "tcp-slow"]) == 0
        assert "tcp-slow" in capsys.readouterr().out
    error = error_of(["predict", str(two), "--size", "1", "--model", "tcp-slwo"], 2, capsys)
    assert "did you mean `--model tcp-slow`?" in error


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["predict", "{result}", "--size", "3x"], 2, "`--size 3x`: not a size"),
        (["predict", "{result}", "--size", "1", "--curve", "recv"], 2, "it has: delay, isend, send"),
        (["predict", "{result}/none", "--size", "1"], 5, "does not exist"),
        (["predict", "{result}/simgrid", "--size", "1"], 5, "contains no cost model"),
        (["export", "simgrid", "{result}", "--simgrid", "new"], 2, "`--simgrid new`: allowed: MAJOR.MINOR"),
        (["export", "simgrid", "{result}", "--simgrid", "3.25"], 2, "SimGrid 3.25 is too old"),
        (["export", "simgrid", "{result}", "--noise", "--seed", "-1"], 2, "allowed: 0 to 2^64 - 1"),
        (["export", "simgrid", "{result}", "--profile", "fast"], 2, "fast"),
        (["export", "model", "{result}", "--format", "json", "--out", "{result}"], 5, "cannot write `"),
    ],
)
def test_a_wrong_request_names_what_is_wrong(
    words: list[str], status: int, part: str, result: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (result / "simgrid").mkdir()
    error = error_of([word.format(result=result) for word in words], status, capsys)
    assert part in error
    assert "hint: " in error


def test_a_damaged_model_is_an_error_of_the_data(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = result / "models" / "tcp-fast.json"
    path.write_text(path.read_text(encoding="utf-8")[:100], encoding="utf-8")
    assert f"`{path}` is not of schema" in error_of(["predict", str(result), "--size", "1"], 5, capsys)


@pytest.mark.parametrize("words", [("predict", "--size", "1"), ("export", "model", "--format", "json")])
def test_a_file_of_a_model_has_no_other_model(
    result: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(result / "models/tcp-fast.json")
    verbs = 2 if words[0] == "export" else 1
    asked = [*words[:verbs], path, *words[verbs:]]
    assert execute([*asked, "--model", "tcp-fast"]) == 0
    capsys.readouterr()
    error = error_of([*asked, "--model", "udp"], 2, capsys)
    assert "`--model udp`" in error
    assert "it contains: `tcp-fast`" in error
