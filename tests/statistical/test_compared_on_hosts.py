"""A comparison placed on several hosts: what is claimed of these, of hosts like them, and of one more."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analyse.comparison.equivalence import Margin, Verdict
from steelyard.analyse.comparison.sequential import Design
from steelyard.studies.comparison.hosts.merged import (
    RANDOM_HOSTS,
    THESE_HOSTS,
    Merged,
    Question,
    Sample,
    of_hosts,
)

TRIALS = 500
FEWEST_COVERED = 0.93
MOST_WRONG = 0.05
QUESTION = Question(Design(Margin(0.02, 0.95)), ("old", "new"), "wall")


def compared(rng: np.random.Generator, effects: np.ndarray, blocks: int = 30, noise: float = 0.03) -> Merged:
    """Compare on hosts, each with an effect and a noise of its own."""
    samples = [
        Sample(f"h{number}", f"{number:016x}", effect + own * rng.standard_normal(blocks), Verdict.NA)
        for number, (effect, own) in enumerate(
            zip(effects, noise * rng.uniform(0.5, 2, len(effects)), strict=True)
        )
    ]
    return of_hosts(QUESTION, samples)


@pytest.mark.parametrize(("hosts", "scatter"), [(3, 0.0), (3, 0.05), (4, 0.01), (8, 0.02)])
def test_what_is_claimed_of_hosts_like_these_holds_for_their_mean(hosts: int, scatter: float) -> None:
    rng = np.random.default_rng(hosts)
    covered = narrow = 0
    for _ in range(TRIALS):
        found = compared(rng, 0.05 + scatter * rng.standard_normal(hosts))
        assert found.claim.method == RANDOM_HOSTS
        covered += found.claim.low <= np.exp(0.05) <= found.claim.high
        narrow += found.claim.narrow[0] <= np.exp(0.05) <= found.claim.narrow[1]
    assert covered / TRIALS >= FEWEST_COVERED
    assert narrow / TRIALS >= FEWEST_COVERED - 0.05  # two one-sided tests of 5 % are 90 %


@pytest.mark.parametrize("effects", [(0.05,), (0.05, 0.05), (0.05, 0.2)])
def test_what_is_claimed_of_one_or_two_hosts_holds_for_them(effects: tuple[float, ...]) -> None:
    rng = np.random.default_rng(len(effects))
    covered = 0
    for _ in range(TRIALS):
        found = compared(rng, np.array(effects))
        assert (found.claim.method, found.new_host) == (THESE_HOSTS, None)
        covered += found.claim.low <= np.exp(np.mean(effects)) <= found.claim.high
    assert covered / TRIALS >= FEWEST_COVERED


@pytest.mark.parametrize(("hosts", "scatter"), [(1, 0.0), (2, 0.0), (3, 0.0), (3, 0.03), (5, 0.01)])
def test_equal_commands_are_rarely_called_slower_or_faster(hosts: int, scatter: float) -> None:
    rng = np.random.default_rng(10 + hosts)
    wrong = {Verdict.SLOWER: 0, Verdict.FASTER: 0}
    for _ in range(TRIALS):
        verdict = compared(rng, scatter * rng.standard_normal(hosts)).claim.verdict
        if verdict in wrong:
            wrong[verdict] += 1
    assert sum(wrong.values()) / TRIALS <= MOST_WRONG, wrong


@pytest.mark.parametrize("hosts", [3, 6])
def test_one_more_host_lies_where_it_is_expected(hosts: int) -> None:
    rng = np.random.default_rng(20 + hosts)
    covered = 0
    for _ in range(TRIALS):
        *known, new = 0.05 + 0.03 * rng.standard_normal(hosts + 1)
        found = compared(rng, np.array(known))
        assert found.new_host is not None
        covered += found.new_host[0] <= np.exp(new) <= found.new_host[1]
    assert covered / TRIALS >= FEWEST_COVERED


def test_the_sentence_says_of_which_hosts_it_speaks() -> None:
    rng = np.random.default_rng(1)
    said = [compared(rng, np.full(hosts, 0.1), noise=0.01).claim for hosts in (1, 2, 4)]
    assert {claim.verdict for claim in said} == {Verdict.SLOWER}
    for claim, words in zip(
        said, ("on this host alone", "on these 2 hosts alone", "on hosts like these 4"), strict=True
    ):
        assert words in claim.sentence
    assert "one more of which is expected at +" in said[2].sentence


def test_nothing_is_claimed_of_two_hosts_that_disagree_nor_hidden_of_more() -> None:
    rng = np.random.default_rng(2)
    two = compared(rng, np.array([0.1, 0.2]), noise=0.01).claim
    assert two.verdict is Verdict.INCONCLUSIVE
    assert "nothing is claimed of two that disagree" in two.remarks[0]
    # Slower on each host, and by how much differs: three hosts say little of others, eight say enough.
    effects = np.array([0.02, 0.1, 0.2])
    assert compared(rng, effects, noise=0.01).claim.verdict is Verdict.INCONCLUSIVE
    many = compared(rng, np.linspace(0.05, 0.2, 8), noise=0.01)
    assert many.claim.verdict is Verdict.SLOWER
    assert many.between_sd == pytest.approx(0.0525, rel=0.2)


def test_a_host_with_few_blocks_is_named_and_does_not_count() -> None:
    rng = np.random.default_rng(3)
    samples = [
        Sample(name, name, 0.1 + 0.01 * rng.standard_normal(size)) for name, size in (("a", 30), ("b", 2))
    ]
    found = of_hosts(QUESTION, samples)
    assert "on this host alone" in found.claim.sentence
    assert found.claim.remarks[0] == "hosts: `b` does not count: its 2 runs of each side give no interval"
    nothing = of_hosts(QUESTION, [])
    assert (nothing.claim.verdict, nothing.parts) == (Verdict.NA, ())
