from __future__ import annotations

import pytest

from steelyard.design.factorial import cross, levels_by_column
from steelyard.design.factors import Factor, MissingRule
from steelyard.errors import DesignError


def test_a_crossing_holds_every_combination_once_the_last_factor_fastest() -> None:
    found = cross([Factor.of("a", "xy"), Factor.of("b", "123")])
    assert [each.levels for each in found][:4] == [
        {"a": "x", "b": "1"},
        {"a": "x", "b": "2"},
        {"a": "x", "b": "3"},
        {"a": "y", "b": "1"},
    ]
    assert len({tuple(each.levels.values()) for each in found}) == 6


def test_columns_of_a_compound_factor_vary_together() -> None:
    setups = Factor.compound(("type", "size"), [("single", "1"), ("parallel", "2")])
    found = cross([setups, Factor.of("work", ["w"])])
    assert [tuple(each.levels.values()) for each in found] == [("single", "1", "w"), ("parallel", "2", "w")]


def test_a_missing_combination_stays_with_the_reason_of_the_first_rule() -> None:
    rules = [
        MissingRule("first", "because", lambda at: at["a"] == "x"),
        MissingRule("second", "too late", lambda _: True),
    ]
    assert [each.missing for each in cross([Factor.of("a", "xy")], rules)] == ["because", "too late"]


@pytest.mark.parametrize(
    ("factors", "part"),
    [
        (lambda: [Factor.of("a", [])], "no levels"),
        (lambda: [Factor.of("a", "xx")], "occurs twice in factor `a`"),
        (lambda: [Factor.compound(("a", "b"), [("1",)])], "has 1 values; allowed: 2"),
        (lambda: [Factor.of("a", "x"), Factor.of("a", "y")], "belongs to two factors"),
    ],
)
def test_a_malformed_design_is_refused(factors: object, part: str) -> None:
    with pytest.raises(DesignError, match=part):
        cross(factors())  # type: ignore[operator]


def test_levels_keep_the_order_of_first_appearance() -> None:
    found = cross([Factor.of("a", "zy")])
    assert levels_by_column(found) == {"a": ("z", "y")}
