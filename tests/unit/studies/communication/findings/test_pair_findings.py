"""What is said to lie between two nodes follows from what their endpoints said of themselves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from steelyard.studies.communication.findings import runs as findings_of_runs
from steelyard.studies.communication.findings.runs import pair_findings

if TYPE_CHECKING:
    from collections.abc import Sequence


def verdict_of(monkeypatch: pytest.MonkeyPatch, link: str, *launches: Sequence[dict[str, str]] | None) -> str:
    monkeypatch.setattr(findings_of_runs, "link_facts", lambda _run: {})
    runs = [
        SimpleNamespace(
            levels={"transport": "mpich", "link": link},
            place="traces/000001.01",
            trace=ends and SimpleNamespace(endpoints=[SimpleNamespace(header=each) for each in ends]),
        )
        for ends in launches
    ]
    (found,) = pair_findings(cast("Any", runs))
    return found.verdict


def end(node: str, boot: str = "") -> dict[str, str]:
    return {"node": node} | ({"boot_id": boot} if boot else {})


@pytest.mark.parametrize(
    ("link", "launches", "verdict"),
    [
        ("n1:n2", [[end("n1", "a"), end("n2", "b")]], "two machines"),
        ("n1:n2", [[end("n1", "a"), end("n2", "a")]], "one machine"),
        ("n1:n1", [[end("n1", "a"), end("n1", "a")]], "one node"),
        ("n1:n2", [[end("n1", "a"), end("n3", "b")]], "other nodes"),
        ("n1:n2", [[end("n1", "a"), end("n1", "a")]], "other nodes"),
        ("n1:n2", [[end("n1"), end("n2")]], "unknown"),
        ("n1:n2", [[end("n1", "a"), end("n2")]], "unknown"),
        ("n1:n2", [None], "unknown"),
    ],
)
def test_what_lies_between_two_nodes_is_what_they_said(
    monkeypatch: pytest.MonkeyPatch, link: str, launches: list[Any], verdict: str
) -> None:
    assert verdict_of(monkeypatch, link, *launches) == verdict
