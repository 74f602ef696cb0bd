from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UsageError
from steelyard.studies.communication.transport.link_options import (
    BURST_RANGE,
    DELAY_RANGE,
    LOSS_RANGE,
    RATE_RANGE,
    LinkOptions,
    Shaper,
    parse_link,
)

OPTIONS = st.builds(
    LinkOptions,
    rate_bits_per_s=st.integers(*RATE_RANGE),
    delay_ns=st.integers(*DELAY_RANGE),
    burst_bytes=st.none() | st.integers(*BURST_RANGE),
    loss_percent=st.integers(LOSS_RANGE[0] * 1000, LOSS_RANGE[1] * 1000).map(lambda value: value / 1000),
    shaper=st.none() | st.sampled_from(Shaper),
)


@given(OPTIONS)
def test_what_is_written_is_read_again(options: LinkOptions) -> None:
    assert parse_link(str(options)) == options


@given(OPTIONS, st.randoms(use_true_random=False))
def test_order_case_and_blanks_do_not_matter(options: LinkOptions, shuffled: object) -> None:
    parts = str(options).replace("bit", "BIT").split(",")
    shuffled.shuffle(parts)  # type: ignore[attr-defined]
    assert parse_link(" , ".join(parts)) == options


def outcome(text: str) -> LinkOptions | UsageError:
    try:
        return parse_link(text)
    except UsageError as error:
        return error


@given(st.text(max_size=60))
def test_anything_else_is_refused_with_an_example_that_works(text: str) -> None:
    found = outcome(text)
    if isinstance(found, UsageError):
        assert found.code == "usage.link"
        assert found.hint is not None
        assert parse_link(found.hint.rpartition(" ")[2])
    else:
        assert parse_link(str(found)) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "key of: rate, delay, burst, loss, shaper"),
        ("delay=50us", "`rate` is missing"),
        ("rate=1gbit,rate=2gbit", "`rate` is given twice"),
        ("rate=1gbit,speed=3", "`speed=3` is not KEY=VALUE"),
        ("rate=1gbit,", "`` is not KEY=VALUE"),
        ("rate=1000", "rate is `1000`; expected 64kbit to 100gbit, units: bit, kbit, mbit, gbit"),
        ("rate=1gbps", "rate is `1gbps`; expected"),
        ("rate=101gbit", "rate is `101gbit`; expected 64kbit to 100gbit"),
        ("rate=-1gbit", "rate is `-1gbit`; expected"),
        ("rate=1gbit,delay=50", "delay is `50`; expected 0s to 10s, units: us, ms, s"),
        ("rate=1gbit,delay=11s", "delay is `11s`; expected"),
        ("rate=1gbit,delay=0.0001us", "a part of the smallest unit"),
        ("rate=1gbit,burst=1000", "burst is `1000`; expected 3028b to 16mb, units: b, kb, mb"),
        ("rate=1gbit,loss=0.5", "loss is `0.5`; expected 0% to 50%, units: %"),
        ("rate=1gbit,shaper=fq", "shaper is `fq`; allowed: htb, tbf"),
    ],
)
def test_what_is_wrong_is_said(text: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_link(text)
    assert caught.value.message.startswith(f"`--link {text}`: ")
    assert reason in caught.value.message


def test_units_are_those_of_tc() -> None:
    options = parse_link("rate=2.5mbit,delay=1.5ms,burst=8kb,loss=0.25%,shaper=tbf")
    assert options == LinkOptions(2_500_000, 1_500_000, 8192, 0.25, Shaper.TBF)
    assert parse_link("rate=1gbit,burst=5000").burst_bytes == 5000
