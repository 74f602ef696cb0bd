from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.errors import UsageError
from steelyard.studies.comparison.contender import Commands, Hooks, short
from steelyard.studies.comparison.parameter import Parameter, filled, parse_parameter, places_in
from steelyard.studies.comparison.terms import Terms, draw_plan

words = st.text("abc123-. ", min_size=1, max_size=8).filter(str.strip)


@given(st.lists(words, min_size=2, max_size=5, unique=True))
def test_every_command_but_the_baseline_is_compared_with_it(texts: list[str]) -> None:
    for baseline in range(len(texts)):
        entrants = Commands(tuple(texts), baseline=str(baseline + 1)).field()
        assert [cell.text for cell in entrants.contenders] == texts
        assert entrants.pairs == tuple((baseline, at) for at in range(len(texts)) if at != baseline)


@given(st.lists(words, min_size=2, max_size=4), st.integers(0, 3))
def test_names_are_unique_and_numbers_are_places(texts: list[str], values: int) -> None:
    parameters = (Parameter("p", tuple(map(str, range(values + 1)))),)
    entrants = Commands(tuple(f"{text} {{p}}" for text in texts), parameters=parameters).field()
    names = [cell.name for cell in entrants.contenders]
    assert len(set(names)) == len(names) == len(texts) * (values + 1)
    assert [cell.number for cell in entrants.contenders] == list(range(len(names)))


def test_each_value_has_its_counterpart() -> None:
    parameters = (Parameter("x", ("1", "2")), Parameter("y", ("a", "b", "c")))
    entrants = Commands(("base {x}", "other {x} {y}"), parameters=parameters).field()
    cells = entrants.contenders
    assert len(cells) == 2 + 6
    assert len(entrants.pairs) == 6
    for baseline, contender in entrants.pairs:
        assert cells[baseline].values["x"] == cells[contender].values["x"]


def test_a_parameter_of_a_line_alone_makes_cells_too() -> None:
    hooks = (Hooks(setup="make CC={cc}"), Hooks(setup="make CC={cc}"))
    entrants = Commands(("./a", "./b"), parameters=(Parameter("cc", ("gcc", "clang")),), hooks=hooks).field()
    assert [cell.hooks.setup for cell in entrants.contenders] == ["make CC=gcc", "make CC=clang"] * 2
    assert [cell.name for cell in entrants.contenders] == [
        "./a (cc=gcc)",
        "./a (cc=clang)",
        "./b (cc=gcc)",
        "./b (cc=clang)",
    ]
    assert entrants.pairs == ((0, 2), (1, 3))


def test_a_shell_gets_the_text_whole() -> None:
    entrants = Commands(("a | b", "c 'd e'"), shell=True).field()  # noqa: S604 - nothing is run
    assert [cell.words for cell in entrants.contenders] == [("sh", "-c", "a | b"), ("sh", "-c", "c 'd e'")]
    plain = Commands(("a | b", "c 'd e'")).field()
    assert plain.contenders[1].words == ("c", "d e")


@given(st.integers(-50, 50), st.integers(0, 40), st.integers(1, 7))
def test_a_range_has_both_ends_where_the_step_meets_them(low: int, length: int, step: int) -> None:
    found = parse_parameter(f"n={low}:{low + length}:{step}").values
    assert [int(value) for value in found] == list(range(low, low + length + 1, step))


def test_words_with_colons_are_values() -> None:
    assert parse_parameter("host=a:b").values == ("a:b",)
    assert parse_parameter("time=1:2,3:4").values == ("1:2", "3:4")


def test_braces_that_are_no_parameter_stay() -> None:
    text = "awk '{print $1}' {file} {}"
    assert places_in(text) == {"file"}
    assert filled(text, {"file": "x"}) == "awk '{print $1}' x {}"


@pytest.mark.parametrize("text", ["n=1:2:0", "n=1:nan", "n=1:inf", "n=0:1:1e-9", "n=", "=1", "1n=2", "n=1,1"])
def test_malformed_parameters_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--parameter"):
        parse_parameter(text)


def test_a_plan_holds_each_command_once_per_block_and_its_seed_decides_the_order() -> None:
    entrants = Commands(("a", "b", "c")).field()
    plans = [draw_plan(entrants, Terms(seed=seed)) for seed in (1, 1, 2)]
    assert plans[0] == plans[1]
    assert plans[0].batches != plans[2].batches
    assert plans[0].blocks == 1001
    for block, batches in itertools.groupby(plans[0].batches, key=lambda batch: batch.block):
        levels = [plans[0].cell_of(batch).levels for batch in batches]
        assert sorted(level["command"] for level in levels) == ["a", "b", "c"]
        assert {level["phase"] for level in levels} == {"warmup" if block == 0 else "measure"}


@given(st.text(max_size=80), st.integers(10, 40))
def test_a_short_name_fits(name: str, longest: int) -> None:
    assert len(short(name, longest)) <= longest
