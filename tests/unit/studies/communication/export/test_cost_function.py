from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings

from fixtures.cost_models import MODEL, cost_models
from steelyard.model.cost_model import CostPiece
from steelyard.studies.communication.export.cost_function import python_source, rust_source

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model.cost_model import CostModel

SIZES = sorted(
    {0, 1, 2, 1194, 1195, 65557, 65558, 10**9, 2**40}
    | set(np.geomspace(1, 1e8, 400).round().astype(int).tolist())
)


def python_module(model: CostModel) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(python_source(model), "cost.py", "exec"), names)  # noqa: S102 - it is what is tested
    return names


def python_function(model: CostModel) -> Any:
    return python_module(model)["seconds"]


def test_the_python_module_says_which_sizes_were_measured() -> None:
    is_measured = python_module(MODEL)["is_measured"]
    assert [is_measured(size) for size in (0, 1, 10_000_000, 10_000_001)] == [False, True, True, False]
    assert is_measured(0, "isend")
    assert python_module(replace(MODEL, measured_bytes={}))["is_measured"](1) is None


def test_a_time_below_zero_is_an_error_of_the_function() -> None:
    below = replace(MODEL, curves={"delay": (CostPiece(-1, None, "line", -1e-6, 1e-9),)}, measured_bytes={})
    with pytest.raises(ValueError, match=r"cannot predict 10 bytes: the model says -9\.9"):
        python_function(below)(10)
    assert python_function(below)(2000) == pytest.approx(1e-6)


@settings(max_examples=40, deadline=None)
@given(cost_models())
def test_the_python_function_is_the_model(model: CostModel) -> None:
    seconds = python_function(model)
    for curve in model.curves:
        for size in SIZES:
            assert seconds(size, curve) == pytest.approx(model.predict(size, curve=curve), rel=1e-12)


@pytest.mark.parametrize("size", [-1, float("nan"), float("inf")])
def test_the_python_function_refuses_what_is_no_size(size: float) -> None:
    with pytest.raises(ValueError, match="not a number of bytes"):
        python_function(MODEL)(size)


@pytest.mark.skipif(shutil.which("rustc") is None, reason="needs a Rust compiler, `rustc`")
def test_the_rust_function_is_the_model(tmp_path: Path) -> None:
    calls = "".join(
        f'    println!("{{:.17e}} {{:.17e}}", seconds({size}f64), send_seconds({size}f64));\n'
        for size in SIZES
    )
    source = tmp_path / "cost.rs"
    refused = '    println!("{} {} {}", seconds(-1.0), seconds(f64::NAN), isend_seconds(1.0));\n'
    # A line that starts below zero says no time there.
    model = replace(MODEL, curves={**MODEL.curves, "isend": (CostPiece(-1, None, "line", -1e-6, 1e-9),)})
    text = rust_source(model)
    assert "/// Measured from 1 to 10000000 bytes." in text
    source.write_text(text + f"\nfn main() {{\n{calls}{refused}}}\n", encoding="utf-8")
    command = ["rustc", "--edition", "2021", "-D", "warnings", "-o", str(tmp_path / "cost"), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    said = subprocess.run([tmp_path / "cost"], capture_output=True, text=True, check=True).stdout
    *lines, last = said.splitlines()
    assert last == "NaN NaN NaN"
    for size, line in zip(SIZES, lines, strict=True):
        wanted = [MODEL.predict(size), MODEL.predict(size, curve="send")]
        assert [float(word) for word in line.split()] == pytest.approx(wanted, rel=1e-12)


def test_a_hostile_name_stays_inside_its_comment() -> None:
    named = replace(MODEL, transport='"""\nimport os\n"""', state="*/ } fn x() {\n")
    assert python_function(named)(1000) == MODEL.predict(1000)
    assert all(line.startswith("//!") for line in rust_source(named).splitlines()[:2])
