from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import StudyFileError
from steelyard.studies.replication.experiments.own_benchmark import fill_in, read_benchmark

GUIDE = Path(__file__).parents[5] / "docs" / "guides" / "macro-benchmark.md"


def test_the_example_of_the_guide_is_a_benchmark() -> None:
    _, _, rest = GUIDE.read_text(encoding="utf-8").partition("```toml\n")
    example = tomllib.loads(rest.partition("```")[0])
    benchmark = read_benchmark(example["own_benchmark"])
    assert list(benchmark.roles) == ["database", "service"]
    assert benchmark.results.begin == "begin"
    assert benchmark.requires.p90_ms == 2000
    known = {"address.service": "a", "rate_per_s": "1", "seconds": "2", "folder": "/f"}
    assert fill_in(" ".join(benchmark.command), known).endswith("--rate 1 --seconds 2 --out /f/results.csv")


def test_every_key_is_in_the_guide() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    keys = ("command", "settings", "files", "limit_s", "deploy", "start", "ready_log", "ready_http")
    for key in (*keys, "results", "requires", "throughput_per_s", "p90", "errors_percent", "begin"):
        assert key in text, key


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"command": []}, "`own_benchmark.command` is missing"),
        ({"roles": {"web": {"start": ["x"]}}}, "`own_benchmark.roles.web`: `start` and one of `ready_log`"),
        ({"roles": {"web": {"ready_log": "x"}}}, "belong together"),
        ({"roles": {"web": {"start": ["x"], "ready_log": "("}}}, "is not a regular expression"),
        ({"roles": {"web": {"start": ["x"], "ready_http": "https://a"}}}, "allowed: `http://HOST"),
        ({"roles": {"web": {"begin": ["x"]}}}, "`own_benchmark.roles.web.begin`"),
        ({"results": {"file": "x", "format": "xml"}}, "`own_benchmark.results.format`"),
        ({"requires": {"errors_percent": 101}}, "`own_benchmark.requires.errors_percent`"),
        ({"limit_s": 0}, "`own_benchmark.limit_s`"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(StudyFileError) as caught:
        read_benchmark({"command": ["x"], "rate_per_s": 3, **change})
    assert problem in caught.value.message
    assert "macro-benchmark.md" in (caught.value.hint or "")


def test_an_unknown_name_in_braces_is_refused() -> None:
    with pytest.raises(StudyFileError, match=r"asks for `\{address.cache\}`.*known: address.web"):
        fill_in("{address.cache}", {"address.web": "a"})
