from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from scipy import optimize, stats

from steelyard.analyse.cost_curve import noise as noise_module
from steelyard.analyse.cost_curve.noise import LawKind, NoiseModel, noise_around, noise_model
from steelyard.analyse.cost_curve.segments import fit_segments
from steelyard.analyse.linear.deviations import Scale
from steelyard.analyse.linear.model import linear_model
from steelyard.errors import AnalysisError

if TYPE_CHECKING:
    from numpy.typing import NDArray

PLANTED = {
    "lognormal": (LawKind.LOGNORMAL, stats.lognorm(1.0, 1.0, 0.05)),
    "mild lognormal": (LawKind.LOGNORMAL, stats.lognorm(0.4, 0.9, 0.2)),
    "gamma": (LawKind.GAMMA, stats.gamma(4.0, 0.5, 0.1)),
    "steep gamma": (LawKind.GAMMA, stats.gamma(0.6, 1.0, 0.1)),
    "weibull": (LawKind.WEIBULL, stats.weibull_min(2.5, 0.5, 0.3)),
    "steep weibull": (LawKind.WEIBULL, stats.weibull_min(0.7, 1.0, 0.1)),
    "normal": (LawKind.NORMAL, stats.norm(1.0, 0.05)),
}
SCIPY = {"lognormal": stats.lognorm, "gamma": stats.gamma, "weibull": stats.weibull_min}


def planted(name: str, count: int, seed: int) -> NDArray[np.float64]:
    return np.asarray(PLANTED[name][1].rvs(count, random_state=np.random.default_rng([5, seed])))


def law_of(model: NoiseModel, kind: LawKind) -> dict[str, tuple[float, float, float]]:
    (law,) = (each for each in model.laws if each.kind is kind)
    return {each.name: (each.low, each.estimate, each.high) for each in law.parameters}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_law_is_named(name: str) -> None:
    model = noise_model(planted(name, 3000, 1), lowest=0)
    assert model.chosen is not None
    assert model.chosen.kind is PLANTED[name][0]
    assert model.chosen.distance < 0.03


@pytest.mark.parametrize("name", PLANTED)
def test_distribution_functions_are_those_of_scipy(name: str) -> None:
    values = planted(name, 500, 2)
    for law in noise_model(values, lowest=0).laws:
        shift, shape, scale = law.values
        frozen = (
            stats.norm(shift, scale) if law.kind is LawKind.NORMAL else SCIPY[law.kind](shape, shift, scale)
        )
        shares = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
        assert law.quantile(shares) == pytest.approx(frozen.ppf(shares), rel=1e-9)
        assert law.share_below(values) == pytest.approx(frozen.cdf(values), rel=1e-7, abs=1e-13)
        assert law.log_likelihood == pytest.approx(frozen.logpdf(values).sum(), rel=1e-9)
        ascending = np.sort(values)
        odd = 2 * np.arange(1, 501) - 1
        log_tails = frozen.logcdf(ascending) + frozen.logsf(ascending)[::-1]
        assert law.anderson_darling == pytest.approx(-500 - np.mean(odd * log_tails), rel=1e-6)
        assert law.distance == pytest.approx(stats.kstest(values, frozen.cdf).statistic, rel=1e-7)


@pytest.mark.parametrize("name", ["lognormal", "mild lognormal", "gamma", "weibull"])
def test_estimates_reach_the_product_of_spacings_that_scipy_reaches(name: str) -> None:
    kind, _ = PLANTED[name]
    values = np.sort(planted(name, 400, 3))

    def product(shape: float, shift: float, scale: float) -> float:
        shares = SCIPY[kind.value].cdf(values, shape, shift, scale)
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.log(np.diff(shares, prepend=0.0, append=1.0)).sum())

    (law,) = (each for each in noise_model(values, lowest=0).laws if each.kind is kind)
    shift, shape, scale = law.values
    own = product(shape, shift, scale)
    # An independent search, from the truth and with scipy's functions.
    found, least, *_ = optimize.fmin(
        lambda place: -product(*place) if place[1] < values[0] else np.inf,
        PLANTED[name][1].args,
        xtol=1e-9,
        ftol=1e-9,
        maxiter=5000,
        maxfun=5000,
        full_output=True,
        disp=False,
    )
    assert own >= -float(least) - 1e-5
    assert (shape, shift, scale) == pytest.approx(found, rel=1e-3)


def test_with_a_known_shift_far_away_the_law_is_that_of_maximum_likelihood() -> None:
    # A lognormal whose smallest possible value 0 is the bound: spacings and likelihood agree to 1 / n.
    values = stats.lognorm(0.3, 0, 1.0).rvs(20_000, random_state=np.random.default_rng(4))
    law = law_of(noise_model(values, lowest=0), LawKind.LOGNORMAL)
    shape, _, scale = stats.lognorm.fit(values, floc=law["shift"][1])
    assert law["shape"][1] == pytest.approx(shape, rel=2e-3)
    assert law["scale"][1] == pytest.approx(scale, rel=2e-3)


@pytest.fixture
def estimates_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the simulation of p-values out."""
    monkeypatch.setattr(noise_module, "SIMULATIONS", 1)
    monkeypatch.setattr(noise_module, "ENOUGH", 1)


@pytest.mark.usefixtures("estimates_only")
@pytest.mark.parametrize("name", PLANTED)
def test_intervals_of_parameters_cover(name: str) -> None:
    kind, frozen = PLANTED[name]
    truth = dict(zip(("shape", "shift", "scale"), frozen.args, strict=False))
    if kind is LawKind.NORMAL:
        truth = dict(zip(("mean", "sd"), frozen.args, strict=True))
    seeds, count = 100, 300
    held = dict.fromkeys(truth, 0)
    for seed in range(seeds):
        found = law_of(noise_model(planted(name, count, 100 + seed), lowest=0), kind)
        for parameter, value in truth.items():
            low, _, high = found[parameter]
            held[parameter] += low <= value <= high
    for parameter, count_held in held.items():
        assert stats.binom.cdf(count_held, seeds, 0.93) > 1e-3, (parameter, count_held)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lognormal", "steep weibull", "normal"])
def test_a_true_law_is_refuted_no_more_often_than_stated(name: str) -> None:
    kind, _ = PLANTED[name]
    seeds = 60
    refuted = 0
    for seed in range(seeds):
        laws = noise_model(planted(name, 150, 300 + seed), lowest=0, seed=seed).laws
        refuted += not next(law for law in laws if law.kind is kind).fits
    assert stats.binom.sf(refuted - 1, seeds, 0.05) > 1e-3, refuted


def test_two_modes_have_no_law_and_a_nearest_one() -> None:
    rng = np.random.default_rng(6)
    values = np.concatenate([rng.normal(1, 0.02, 600), rng.normal(1.3, 0.02, 400)])
    model = noise_model(values, lowest=0)
    assert model.chosen is None
    assert model.nearest is not None
    assert model.nearest.distance > 0.1


def test_a_heavy_tail_is_called_heavy_and_an_exponential_one_is_not() -> None:
    rng = np.random.default_rng(8)
    heavy = noise_model(1 + 0.2 * rng.pareto(3, 5000), lowest=0).tail
    assert heavy is not None
    assert heavy.is_heavy
    assert heavy.shape.low <= 1 / 3 <= heavy.shape.high
    light = noise_model(1 + rng.exponential(0.1, 5000), lowest=0).tail
    assert light is not None
    assert light.holds
    assert not light.is_heavy


def test_a_pareto_tail_is_fitted_as_scipy_fits_it() -> None:
    values = 1 + stats.genpareto(0.3, 0, 0.2).rvs(2000, random_state=np.random.default_rng(9))
    tail = noise_model(values, lowest=0).tail
    assert tail is not None
    excesses = values[values > tail.threshold] - tail.threshold
    assert excesses.size == tail.exceedances
    shape, _, scale = stats.genpareto.fit(excesses, 0.1, floc=0)
    assert tail.shape.estimate == pytest.approx(shape, abs=1e-3)
    assert tail.scale.estimate == pytest.approx(scale, rel=1e-3)


def test_the_unit_does_not_matter() -> None:
    values = planted("lognormal", 400, 7)
    first, second = noise_model(values, lowest=0), noise_model(1e-9 * values, lowest=0)
    assert first.chosen is not None
    assert second.chosen is not None
    assert second.chosen.values == pytest.approx(
        (1e-9 * first.chosen.values[0], first.chosen.values[1], 1e-9 * first.chosen.values[2]), rel=1e-5
    )


def test_too_few_or_too_coarse_values_name_no_law() -> None:
    assert "at least 30" in noise_model(np.arange(1.0, 20.0)).reason
    coarse = noise_model(np.round(planted("gamma", 2000, 1), 1), lowest=0)
    assert "too coarse" in coarse.reason
    assert coarse.chosen is None
    assert "too coarse" in noise_model(np.full(50, 3.0)).reason


@pytest.mark.parametrize(
    ("values", "lowest", "words"),
    [
        ([1.0, np.nan] * 20, None, "number 1 .* must be finite"),
        ([1.0, 2.0, 0.0] * 20, 0.0, "not above the lowest"),
    ],
)
def test_impossible_values_say_why(values: list[float], lowest: float | None, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        noise_model(values, lowest=lowest)


@pytest.mark.slow
def test_models_know_their_noise() -> None:
    named = []
    for seed in range(8):
        rng = np.random.default_rng([10, seed])
        x = 10 ** rng.uniform(1, 6, 2000)
        y = (5 + 1e-3 * x) * (1 + rng.lognormal(np.log(0.05), 1.0, 2000))
        (noise,) = fit_segments(x, y, resamples=0).noise(seed=seed)
        assert noise.scale is Scale.FACTOR
        assert noise.laws[0].kind is LawKind.LOGNORMAL
        named.append(noise.chosen is not None)
    # The curve is fitted as well: its error must not refute the law of the noise.
    assert sum(named) >= 6, named
    additive = 5 + 1e-3 * x + rng.normal(0, 1, 2000)
    by_line = linear_model(x, additive).noise()
    assert by_line.scale is Scale.DIFFERENCE
    assert by_line.chosen is not None
    assert by_line.chosen.kind is LawKind.NORMAL
    assert noise_around(np.ones(2000), y / (5 + 1e-3 * x)).scale is Scale.FACTOR
    assert linear_model(x, y, log=True).noise().scale is Scale.FACTOR


def test_a_million_values_take_no_more_than_their_share() -> None:
    values = planted("lognormal", 1_000_000, 11)
    times_s = [time.process_time()]
    for count in (100_000, 1_000_000):
        model = noise_model(values[:count], lowest=0)
        times_s.append(time.process_time())
    part_s, whole_s = np.diff(times_s)
    # A fixed part, and what grows as the values do; anything quadratic takes up to a hundred times as long.
    assert whole_s < 10 * part_s
    assert model.chosen is not None
    assert law_of(model, LawKind.LOGNORMAL)["shape"][1] == pytest.approx(1, abs=0.005)
