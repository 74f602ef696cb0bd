from __future__ import annotations

import shutil

import pytest

from steelyard.errors import CapabilityError, RunError, UsageError
from steelyard.studies.stability import workloads
from steelyard.studies.stability.workload import Growth, Language, Scale, size_log_size
from steelyard.studies.stability.workloads import (
    INPUT_COUNT,
    SOURCE_NAMES,
    WORKLOADS,
    calibrate,
    expected_output,
    inputs,
    workload,
)


def test_names_and_inputs_are_those_of_the_published_study() -> None:
    labels = {name: WORKLOADS[name].published.label for name in SOURCE_NAMES}
    assert labels == {
        "exp/exp_float": "65536",
        "exp/exp_double": "65536",
        "bsearch/bsearch": "65536_1048576",
        "gray/gray2bin": "1048576",
        "sort/insertion_sort": "16384",
        "sort/qsort": "1048576",
        "sort/qsort.py": "131072",
        "sort/qsort_java.sh": "131072",
    }


def test_every_kernel_also_exists_in_c() -> None:
    native = {each.kernel for each in WORKLOADS.values() if each.language is Language.NATIVE}
    in_c = {each.name for each in WORKLOADS.values() if each.language is Language.C}
    assert in_c == {f"c/{kernel}" for kernel in native}


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="`sort/bogosort` is not a workload; known: `exp/exp_float`"):
        workload("sort/bogosort")


def test_commands_keep_the_placeholders() -> None:
    assert workload("bsearch/bsearch").command(Scale(10, 20), 3) == (
        *("{work}", "kernel", "bsearch", "--size", "10"),
        *("--seed", "3", "--operations", "20"),
    )
    assert workload("c/qsort").command(Scale(10), 3)[0] == "{workloads}/c/kernels"
    assert "{workloads}/python/qsort.py" in workload("sort/qsort.py").command(Scale(10), 3)
    assert "{workloads}/java" in workload("sort/qsort_java.sh").command(Scale(10), 3)


@pytest.mark.parametrize("name", list(WORKLOADS))
def test_every_workload_prints_the_expected_output(name: str) -> None:
    chosen = workload(name)
    readiness = chosen.probe()
    if not readiness.available:
        pytest.skip(f"{readiness.reason}; {readiness.repair}")
    (given,) = inputs(7, chosen, chosen.quick)
    output = workloads._execute(chosen.host_command(chosen.quick, given.seed))
    assert output.strip() == expected_output(chosen.kernel, chosen.quick, given.seed)


def test_three_hundred_inputs_have_different_seeds_and_labels() -> None:
    drawn = inputs(1, workload("sort/qsort"), Scale(1048576), INPUT_COUNT)
    assert len({each.seed for each in drawn}) == INPUT_COUNT
    assert len({each.label for each in drawn}) == INPUT_COUNT
    assert all(0 <= each.seed < 2**64 for each in drawn)
    assert drawn[0].label == "1048576"


def test_inputs_are_the_same_in_every_language_and_differ_between_studies() -> None:
    scale = Scale(1000)
    native, python = workload("sort/qsort"), workload("sort/qsort.py")
    assert inputs(1, native, scale, 3) == inputs(1, python, scale, 3)
    assert inputs(1, native, scale) != inputs(2, native, scale)
    assert inputs(1, native, scale)[0].seed != inputs(1, workload("exp/exp_float"), scale)[0].seed


def test_the_seed_derivation_never_changes() -> None:
    # printf 'steelyard/stability/input/1/qsort/0' | sha256sum | cut -c1-16
    assert inputs(1, workload("sort/qsort"), Scale(1000))[0].seed == 0xCEAE8494923541F4


@pytest.mark.parametrize("count", [0, INPUT_COUNT + 1])
def test_a_number_of_inputs_out_of_range_is_refused(count: int) -> None:
    with pytest.raises(UsageError, match="allowed: 1 to 300"):
        inputs(1, workload("sort/qsort"), Scale(1000), count)


@pytest.mark.parametrize(
    ("name", "ratio", "scale"),
    [
        ("bsearch/bsearch", 2.0, Scale(65536, 2_100_000)),
        ("exp/exp_float", 0.5, Scale(65536, 32_800)),
        ("sort/insertion_sort", 4.0, Scale(32_800)),
    ],
)
def test_scaling_follows_the_growth(name: str, ratio: float, scale: Scale) -> None:
    chosen = workload(name)
    assert chosen.scaled(chosen.published, ratio) == scale


def test_scaling_a_quicksort_scales_n_log_n() -> None:
    chosen = workload("sort/qsort")
    assert chosen.growth is Growth.SIZE_LOG_SIZE
    doubled = chosen.scaled(chosen.published, 2.0).size
    growth = size_log_size(doubled) / size_log_size(chosen.published.size)
    assert growth == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("name", ["sort/insertion_sort", "exp/exp_float"])
def test_calibration_meets_its_target(name: str) -> None:
    chosen = workload(name)
    scale = calibrate(chosen, 12)
    found_ms = workloads._shortest_ns(chosen, scale, 1) / 1e6
    assert 6 < found_ms < 24


def test_a_workload_without_its_compiler_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    chosen = workload("sort/qsort_java.sh")
    assert not chosen.probe().available
    with pytest.raises(CapabilityError, match="`java` is not on the PATH") as caught:
        chosen.prepare()
    assert caught.value.hint == "apt-get install default-jdk-headless"


def test_a_program_that_fails_is_quoted() -> None:
    native = workload("sort/qsort").host_command(Scale(10), 1)
    with pytest.raises(RunError, match="`--size` is `0`"):
        workloads._execute(tuple("0" if word == "10" else word for word in native))
    with pytest.raises(RunError, match="cannot run"):
        workloads._execute(("/nonexistent/program",))
