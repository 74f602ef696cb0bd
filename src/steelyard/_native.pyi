"""Native kernels; private. Arrays may be read-only; calls above 1 ms release the interpreter lock."""

from collections.abc import Sequence
from typing import Final, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "VERSION",
    "CallRanks",
    "CallTally",
    "LeadingBits",
    "ScheduleSimulation",
    "ascending",
    "autocorrelation",
    "block_length",
    "bootstrap",
    "break_intervals",
    "change_points",
    "cluster_bootstrap",
    "contrast_bootstrap",
    "convex_corners",
    "count_between",
    "counter_names",
    "dependence",
    "deviation_bootstrap",
    "effective_size",
    "exact_sum",
    "f_upper",
    "fit_noise",
    "fit_segments",
    "host_activity",
    "host_fingerprint",
    "host_processes",
    "host_report",
    "host_topology",
    "json_columns",
    "kolmogorov_smirnov",
    "law_quantiles",
    "law_shares",
    "level_change",
    "level_looks",
    "linear_model",
    "linear_rows",
    "measure_split",
    "middle",
    "moment_bootstrap",
    "newest_change",
    "noise_scale",
    "order_interval",
    "pareto_tail",
    "permutation_test",
    "quantile",
    "quantile_bootstrap",
    "shift_interval",
    "simulated_splits",
    "standard_deviation",
    "student_two_sided",
    "value_of_key",
]

VERSION: Final[str]

# A simulation of `steelyard-sched`: `config` is JSON, its default that of an empty text. `advance` handles
# up to a number of events and says whether there is more to do. Columns are little-endian words of 64 bits:
# requests (kind, intended, started, finished), iterations (job, thread, end), samples (time, CPU time and
# waiting time of the service, then of the best-effort jobs). `counters` is JSON.
@final
class ScheduleSimulation:
    def __new__(cls, config: str) -> ScheduleSimulation: ...
    @staticmethod
    def default_config() -> str: ...
    def advance(self, events: int) -> bool: ...
    @property
    def now_ns(self) -> int: ...
    def requests(self) -> NDArray[np.uint64]: ...
    def iterations(self) -> NDArray[np.uint64]: ...
    def samples(self) -> NDArray[np.uint64]: ...
    def counters(self) -> str: ...

@final
class CallTally:
    def __new__(cls) -> CallTally: ...
    def add(self, values: NDArray[np.int64]) -> None: ...
    @property
    def count(self) -> int: ...
    @property
    def mean(self) -> float: ...
    @property
    def standard_deviation(self) -> float: ...
    @property
    def extremes(self) -> tuple[int, int] | None: ...
    def ranks(self, wanted: Sequence[int]) -> CallRanks: ...

@final
class CallRanks:
    def add(self, values: NDArray[np.int64]) -> None: ...
    def values(self) -> list[tuple[int, int]]: ...

@final
class LeadingBits:
    def __new__(cls, bits: int, known: Sequence[int], digit: int) -> LeadingBits: ...
    def add(self, values: NDArray[np.float64]) -> None: ...
    def among(self, values: NDArray[np.float64]) -> NDArray[np.float64]: ...
    @property
    def counts(self) -> NDArray[np.int64]: ...

def ascending(values: NDArray[np.float64]) -> NDArray[np.float64]: ...
def value_of_key(key: int) -> float: ...
def count_between(values: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]: ...
def middle(values: NDArray[np.float64]) -> float: ...

_Sample: TypeAlias = tuple[
    NDArray[np.float64], NDArray[np.int64] | None, NDArray[np.int64] | None, int | None
]

# Of each path: kinds (0 absent or null, 1 text, 2 number, 3 object, 4 other), ends of the texts behind a
# zero, and the texts; nothing where a line is not as plain as most are.
def json_columns(
    content: bytes, paths: Sequence[Sequence[str]]
) -> list[tuple[NDArray[np.uint8], NDArray[np.int32], NDArray[np.uint8]]] | None: ...
def counter_names() -> list[str]: ...
def moment_bootstrap(
    values: NDArray[np.float64],
    lengths: NDArray[np.int64],
    *,
    resamples: int,
    level: float,
    seed: int,
    cell: int,
) -> NDArray[np.float64]: ...
def quantile_bootstrap(
    values: NDArray[np.float64],
    probabilities: list[float],
    pairs: list[tuple[int, int]],
    *,
    resamples: int,
    level: float,
    seed: int,
    cell: int,
) -> NDArray[np.float64]: ...
def deviation_bootstrap(
    values: NDArray[np.float64], *, resamples: int, level: float, seed: int, cell: int
) -> NDArray[np.float64]: ...
def cluster_bootstrap(
    values: NDArray[np.float64],
    lengths: NDArray[np.int64],
    *,
    within: bool,
    resamples: int,
    seed: int,
    cell: int,
) -> NDArray[np.float64]: ...
def kolmogorov_smirnov(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[float, float, bool]: ...
def change_points(values: NDArray[np.float64], *, penalty: float, shortest: int) -> list[int]: ...
def measure_split(values: NDArray[np.float64]) -> tuple[float, int, float, float, float]: ...
def simulated_splits(
    length: int, draws: int, grid: NDArray[np.float64], *, seed: int
) -> NDArray[np.float64]: ...
def level_change(
    values: NDArray[np.float64], runs: NDArray[np.float64], squares: NDArray[np.float64], largest: float
) -> tuple[float, int, tuple[int, int], tuple[float, float, float], float, float, float]: ...
def newest_change(
    values: NDArray[np.float64], runs: NDArray[np.float64], squares: NDArray[np.float64], largest: float
) -> tuple[float, int, tuple[int, int], tuple[float, float, float], float, float, float]: ...
def level_looks(
    values: NDArray[np.float64],
    runs: NDArray[np.float64],
    squares: NDArray[np.float64],
    largest: float,
    *,
    first: int,
    is_downward: bool = False,
) -> NDArray[np.float64]: ...
def noise_scale(values: NDArray[np.float64]) -> float: ...
def autocorrelation(values: NDArray[np.float64], lags: int) -> NDArray[np.float64]: ...
def effective_size(values: NDArray[np.float64]) -> float: ...
def dependence(values: NDArray[np.float64]) -> tuple[float, float]: ...
def convex_corners(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]: ...
def exact_sum(values: NDArray[np.float64]) -> float: ...
def standard_deviation(values: NDArray[np.float64]) -> float: ...
def quantile(ascending: NDArray[np.float64], p: float) -> float: ...
def bootstrap(
    sample: _Sample,
    name: str,
    parameters: list[float],
    *,
    bca: bool,
    resamples: int,
    level: float,
    seed: int,
    cell: int,
) -> NDArray[np.float64]: ...
def contrast_bootstrap(
    first: _Sample,
    second: _Sample,
    name: str,
    parameters: list[float],
    *,
    contrast: str,
    bca: bool,
    resamples: int,
    level: float,
    seed: int,
    cell: int,
) -> NDArray[np.float64]: ...
def order_interval(values: NDArray[np.float64], p: float, *, level: float) -> tuple[float, float, float]: ...
def block_length(values: NDArray[np.float64]) -> int: ...
def shift_interval(
    first: NDArray[np.float64], second: NDArray[np.float64], *, level: float
) -> tuple[float, float, float, bool]: ...
def permutation_test(
    first: NDArray[np.float64], second: NDArray[np.float64], *, resamples: int, seed: int, cell: int
) -> tuple[float, float]: ...
def host_report(root: str = "/") -> str: ...
def host_topology(root: str = "/") -> str: ...
def host_activity(root: str = "/") -> str: ...
def host_fingerprint(root: str = "/") -> str: ...
def host_processes(root: str = "/") -> str: ...

class LinearModelValues(TypedDict):
    coefficients: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    hc3_errors: NDArray[np.float64]
    cluster_errors: NDArray[np.float64] | None
    residual_quartiles: NDArray[np.float64]
    sigma: float
    residual_df: int
    rank: int
    residual_sum: float
    r_squared: float
    adjusted_r_squared: float
    f_statistic: tuple[float, int] | None
    fitted_square: float

def linear_model(
    columns: Sequence[NDArray[np.float64]],
    response: NDArray[np.float64],
    *,
    intercept: bool,
    clusters: NDArray[np.int64] | None = None,
) -> LinearModelValues: ...
def linear_rows(
    columns: Sequence[NDArray[np.float64]], response: NDArray[np.float64], *, intercept: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]: ...
def student_two_sided(t: float, df: float) -> float: ...
def f_upper(f: float, numerator: float, denominator: float) -> float: ...

class SegmentValues(TypedDict):
    pieces: list[tuple[str, float, float, int, float, float]]
    cost: float
    bound: float
    sigma: float
    evaluations: int

# `options` is read by attribute: the fields of `steelyard.analyse.cost_curve.segments.SegmentOptions`.
# `scales`: noise of each point in common units; its `sigma` is that of a point of scale 1.
def fit_segments(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    options: object,
    scales: NDArray[np.float64] | None = None,
) -> SegmentValues: ...
def break_intervals(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    options: object,
    breaks: list[float],
    *,
    resamples: int,
    level: float,
    seed: int,
) -> list[tuple[float, float]]: ...

class LawValues(TypedDict):
    kind: str
    parameters: tuple[float, float, float]
    errors: tuple[float, float, float]
    lowest: float
    log_likelihood: float
    anderson_darling: float
    p_value: float
    simulated: int
    distance: float
    is_regular: bool

class TailValues(TypedDict):
    threshold: float
    exceedances: int
    shape: float
    scale: float
    shape_limits: tuple[float, float]
    errors: tuple[float, float]
    anderson_darling: float
    p_value: float
    holds: bool

# `curve` is read by attribute: the fields of `steelyard.analyse.linear.deviations.CurveError`.
def fit_noise(
    values: NDArray[np.float64],
    *,
    lowest_shift: float | None,
    curve: object | None,
    samples: int,
    enough: int,
    seed: int,
) -> tuple[list[LawValues], int]: ...
def pareto_tail(
    values: NDArray[np.float64], *, samples: int, enough: int, seed: int
) -> TailValues | None: ...
def law_quantiles(
    kind: str, parameters: tuple[float, float, float], shares: NDArray[np.float64]
) -> NDArray[np.float64]: ...
def law_shares(
    kind: str, parameters: tuple[float, float, float], values: NDArray[np.float64]
) -> NDArray[np.float64]: ...
