from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from steelyard.analyse.linear.r_format import (
    format_common,
    format_general,
    format_p_values,
    named_vector,
    round_significant,
    stars,
    zap_small,
)


def test_fixed_wins_a_tie_of_widths() -> None:
    assert format_common([-8.0239321, 0.0006322], 4) == ["-8.0239321", " 0.0006322"]
    assert format_common([1e5, 1.0]) == ["1e+05", "1e+00"]
    assert format_common([123456.0]) == ["123456"]
    assert format_common([1e-300, 1.0], 3) == ["1e-300", " 1e+00"]


def test_numbers_that_do_not_exist_have_names() -> None:
    assert format_common([math.nan, math.inf, -math.inf, 1.5]) == [" NaN", " Inf", "-Inf", " 1.5"]
    assert format_general(math.nan, 4) == "  NaN"


def test_p_values_are_shown_in_two_groups() -> None:
    # R 4.2.2: format.pval(c(0.000561, 3.71e-06), digits = 3) and so on.
    assert format_p_values([0.000561, 3.71e-06], 3) == ["0.000561", "3.71e-06"]
    assert format_p_values([0.021808, 0.000932], 3) == ["0.021808", "0.000932"]
    assert format_p_values([0.0, 0.25], 3) == ["<2e-16", "0.25"]
    assert format_p_values([math.nan], 3) == ["NA"]


def test_single_numbers() -> None:
    assert format_general(1162.063, 4) == " 1162"
    assert format_general(0.99999, 4) == "    1"
    assert format_general(18080.0, 4) == "1.808e+04"
    assert round_significant(0.00448312, 4) == 0.004483
    assert zap_small([0.122748, 1e-9], 5) == [0.122748, 0.0]


def test_codes_change_at_their_limits() -> None:
    assert [stars(p).strip() for p in (0.001, 0.0011, 0.01, 0.05, 0.1, 0.11)] == [
        "***",
        "**",
        "**",
        "*",
        ".",
        "",
    ]


def test_long_vectors_wrap_at_eighty() -> None:
    lines = named_vector([str(i) for i in range(30)], [i / 7 for i in range(30)], 4)
    assert len(lines) == 6
    assert max(len(line) for line in lines) <= 80


@given(st.lists(st.floats(-1e200, 1e200), min_size=1, max_size=8), st.integers(1, 9))
def test_texts_share_a_width_and_read_back(values: list[float], digits: int) -> None:
    texts = format_common(values, digits)
    assert len({len(text) for text in texts}) == 1
    for value, text in zip(values, texts, strict=True):
        assert abs(float(text) - value) <= 10.0 ** (1 - digits) * abs(value) / 2 * 1.0001 + 1e-300
