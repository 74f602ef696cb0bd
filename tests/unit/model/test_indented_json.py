"""Long documents have the bytes that the standard library gives them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.model import Estimate, Evidence, Finding, FindingSet
from steelyard.model.indented_json import indented, indented_list

SINGLE = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
VALUES = st.recursive(
    SINGLE, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)), max_leaves=20
)


@dataclass(frozen=True)
class Holder:
    first: object
    second: object = ()


def expected(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)


@given(VALUES)
def test_values_have_the_bytes_of_the_standard_library(value: object) -> None:
    assert indented(value) == expected(value)


@given(VALUES, VALUES)
def test_dataclasses_have_the_bytes_of_their_dictionaries(first: object, second: object) -> None:
    held = Holder(Holder(first), (Holder(second), second, ()))
    assert indented(held) == expected(asdict(held))
    assert "".join(indented_list([held, first], 0)) == expected([asdict(held), first])


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        indented({"a": [number]})


def test_findings_have_the_bytes_of_the_standard_library() -> None:
    finding = Finding(
        "cell/a",
        "cell",
        {"workload": 'a "quoted"\n\u2028 \U0001f600', "metric": "value"},
        "flat",
        {"mean": Estimate(1e-07, "ns", "t", 1e16, None, 0.95, 5, 10), "none": Estimate(None, "ns", "")},
        {"n": 3, "is": True, "absent": None, "text": ""},
        (Evidence("t", {}, ("value",), "mean"), Evidence("t", {"cell": "1"}, (), "")),
        ("a warning",),
    )
    for findings in ((), (finding,), (finding, replace(finding, estimates={}, facts={}, evidence=()))):
        found = FindingSet("imported", "0" * 64, 6, {"plan.json": "1"}, findings)
        assert "".join(found.written()) == expected(asdict(found)) + "\n"
