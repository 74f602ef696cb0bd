"""A comparison that cannot go on: the reason that is given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.cli.measuring.compare import begun_with
from steelyard.errors import UsageError
from steelyard.model.plan import PLAN_NAME
from steelyard.record.provenance import begin_provenance, write_provenance
from steelyard.run.machine.host import read_fingerprint
from steelyard.run.redact import without_secrets
from steelyard.studies.comparison.contender import Commands, Driven, Side
from steelyard.studies.comparison.run.resumption import resumed
from steelyard.studies.comparison.terms import Terms, draw_plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Plan


def plan(
    texts: Sequence[str] = ("./a", "./b"), *, terms: Terms | None = None, folder: str = "x", words: str = "w"
) -> Plan:
    sides = (Side("old", Path(folder)), Side("new", Path("y")))
    runs = {side.name: Driven((words,), side.folder, None) for side in sides}  # type: ignore[arg-type]
    commands = Commands(tuple(texts), names=tuple(texts), sides=sides, driven=(runs,) * len(texts))
    return draw_plan(commands.field(), terms or Terms())


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (plan(("./a", "./b", "./c")), "`./c @ new` was not compared when it began"),
        (plan(("./a",)), "`./b @ new` is not compared any more"),
        (plan(terms=Terms(margin=Margin(0.5))), "`margin` was `0.02` when it began and is `0.5` now"),
        (plan(words="v"), "`./a @ old` is run by other words than when it began"),
        (plan(folder="z"), "`./a @ old` was run in another checkout, which belongs to other variables"),
        (plan(terms=Terms(seed=7)), "its order of runs is another one by now"),
    ],
)
def test_what_changed_since_it_began_is_named(tmp_path: Path, now: Plan, reason: str) -> None:
    plan().write(tmp_path / PLAN_NAME)
    with pytest.raises(UsageError) as caught:
        resumed(tmp_path, now, Terms(), None)
    assert f"cannot go on with `{tmp_path}`: {reason}" in caught.value.message


@pytest.mark.parametrize("verb", ["compare", "bench", "bisect"])
def test_a_command_line_with_a_secret_says_why_it_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("API_TOKEN", "hunter2hunter2")
    line = [without_secrets(word) for word in ("steelyard", verb, "--prepare", "fetch hunter2hunter2", "./a")]
    begun = begin_provenance(plan(), line, host_id=read_fingerprint().host_id)
    write_provenance(tmp_path, begun)
    with pytest.raises(UsageError, match=r"had a secret, which is not recorded: `fetch \*\*\*`") as caught:
        begun_with(tmp_path, verb)
    assert "let the program read the secret from a variable or a file" in str(caught.value.hint)
    words = ("--prepare", "fetch it", "./a", "./b") if verb == "compare" else ("--rev", "main")
    write_provenance(
        tmp_path,
        replace(begun, sessions=(replace(begun.sessions[0], command_line=("steelyard", verb, *words)),)),
    )
    if verb != "bisect":
        assert begun_with(tmp_path, verb)
