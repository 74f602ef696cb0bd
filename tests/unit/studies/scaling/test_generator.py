from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from steelyard.studies.scaling.generator import balance_bound, source_means


@given(st.integers(100, 10_000), st.integers(1, 60), st.integers(0, 50))
@example(100, 2, 38)  # one mean is negative
def test_means_average_to_the_work_and_bound_between_one_and_the_sources(
    work: int, sources: int, seed: int
) -> None:
    means = source_means(work, sources, seed)
    assert len(means) == sources
    # The shift is a whole number, cut off towards zero: the mean is off by less than one.
    assert abs(sum(means) / sources - work) < 1
    assert 1 <= balance_bound(means) <= sources


def test_a_later_trial_draws_from_the_same_stream_one_step_on() -> None:
    first, second = source_means(1000, 3, 1), source_means(1000, 3, 2)
    # The shift moves all means of a trial alike, so the differences are those of the draws.
    assert first[2] - first[1] == second[1] - second[0]
