"""Options of `steelyard bench` that say which statistic of a harness is compared, before anything runs."""

from __future__ import annotations

import pytest

from steelyard.cli import execute


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--harness", "go", "--statistic", "min"], "`--statistic min`: allowed for `go`: `mean`"),
        (["--harness", "pyperf", "--statistic", "slope"], "allowed for `pyperf`: `mean`, `median`, `min`"),
        (["--statistic", "min"], "`--statistic` is about `--harness`, which is missing"),
    ],
)
def test_a_statistic_that_nothing_reports_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["bench", *words, "--rev", "a", "--rev", "b", "--", "./program"]) == 2
    assert said in capsys.readouterr().err
