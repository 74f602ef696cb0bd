"""Noise for SimGrid: a platform as a C++ library that draws how long each message takes."""

from __future__ import annotations

import math
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DataError
from steelyard.studies.communication.export.simgrid_files import EVERY_VERSION, HOST_NAMES, RENAMED, options
from steelyard.studies.communication.export.simgrid_noise_source import SOURCE_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from steelyard.model.cost_model import CostModel, TailLaw
    from steelyard.studies.communication.export.simgrid_files import Version
    from steelyard.studies.communication.export.simgrid_model import SimGridModel

SOURCE: Final = "platform_noise.cpp"
LIBRARY: Final = "libplatform_noise.so"
_BUILD_TIMEOUT_S: Final = 300.0
_SHOWN_CHARACTERS: Final = 800
_FACTORS: Final = frozenset(
    {"smpi/lat-factor", "smpi/bw-factor", "network/latency-factor", "network/bandwidth-factor"}
)


@dataclass(frozen=True, slots=True)
class NoiseTable:
    """Ratios of measured time to model for messages above `above` bytes.

    Parameters
    ----------
    above : int
        Bytes.
    quantiles : tuple of float
        At equidistant probabilities.
    tail : TailLaw or None
        Law of the largest ratios, in their place.
    """

    above: int
    quantiles: tuple[float, ...]
    tail: TailLaw | None = None


@dataclass(frozen=True, slots=True)
class SimGridNoise:
    """What the library draws from.

    Parameters
    ----------
    tables : tuple of NoiseTable
        Ascending, the first above -1.
    seed : int
        Of the draws, 0 to 2^64 - 1; at run time STEELYARD_SEED in the environment overrides it.
    """

    tables: tuple[NoiseTable, ...]
    seed: int


def to_noise(model: CostModel, *, seed: int) -> SimGridNoise:
    """Give the noise of a model as tables.

    Raises
    ------
    DataError
        If the model has no noise classes, or a class has ratios that are no positive numbers.
    """
    name = f"{model.transport}-{model.state}"
    if not model.noise:
        msg = f"the model `{name}` has no noise classes"
        raise DataError(msg, hint="export without noise", code="data.cost-model")
    tables = []
    for place, each in enumerate(model.noise):
        if len(each.quantiles) < 2 or not all(math.isfinite(q) and q > 0 for q in each.quantiles):  # noqa: PLR2004
            msg = f"noise class {place + 1} of the model `{name}` lacks two positive, finite quantiles"
            raise DataError(msg, hint="export without noise", code="data.cost-model")
        low = -1 if each.low is None else math.floor(each.low)
        tables.append(NoiseTable(-1 if place == 0 else low, each.quantiles, each.tail))
    return SimGridNoise(tuple(tables), seed)


def noise_source(simgrid: SimGridModel, noise: SimGridNoise, version: Version = EVERY_VERSION) -> str:
    """Give the C++ source of the platform library; it says in its head how it is built and used."""
    sections = zip(simgrid.latency_factors, simgrid.bandwidth_factors, strict=True)
    configured = {
        name: value
        for name, value in options(simgrid, version).items()
        if name not in _FACTORS and name not in {"network/model", "surf/precision", "precision/timing"}
    }
    precision = "precision/timing" if version >= RENAMED else "surf/precision"
    values = {
        "NAME": simgrid.name,
        "PRECISION": precision,
        "LIBRARY": LIBRARY,
        "SOURCE": SOURCE,
        "SEED": f"{noise.seed}ULL",
        "BANDWIDTH": repr(simgrid.bandwidth_bytes_per_s),
        "LATENCY": repr(simgrid.latency_s),
        "DETACHED": str(simgrid.detached_below),
        "SECTIONS": _rows((lat.above, lat.value, bw.value) for lat, bw in sections),
        "OVERHEADS": _rows((each.above, each.base_s, each.slope_s_per_byte) for each in simgrid.send),
        "TABLES": ",\n".join(
            f"    {{{table.above}, {{{', '.join(map(repr, table.quantiles))}}}, {_tail(table)}}}"
            for table in noise.tables
        ),
        "OPTIONS": ",\n".join(f'    "{name}:{value}"' for name, value in configured.items()),
        "FIRST": HOST_NAMES[0],
        "SECOND": HOST_NAMES[1],
    }
    text = SOURCE_TEXT
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _tail(table: NoiseTable) -> str:
    tail = table.tail
    numbers = (0.0, 0.0, 1.0, 0.0) if tail is None else (tail.share, tail.threshold, tail.shape, tail.scale)
    return f"{{{', '.join(map(repr, numbers))}}}"


def build_noise_library(
    folder: Path, simgrid: SimGridModel, noise: SimGridNoise, version: Version = EVERY_VERSION
) -> Path:
    """Write the source into a folder and compile it; give the library, for ``smpirun -platform``.

    Raises
    ------
    CapabilityError
        If there is no C++ compiler, or it cannot compile against SimGrid.
    """
    hint = "install a C++ compiler and SimGrid: `make deps-communication`"
    compiler = shutil.which("g++")
    if compiler is None:
        msg = "`g++` is not on the PATH, and a platform with noise is compiled with it"
        raise CapabilityError(msg, hint=hint, code="capability.simgrid")
    source = folder / SOURCE
    source.write_text(noise_source(simgrid, noise, version), encoding="utf-8")
    command = [compiler, "-O1", "-std=c++17", "-shared", "-fPIC", SOURCE, "-lsimgrid", "-o", LIBRARY]
    answer = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=_BUILD_TIMEOUT_S, check=False
    )
    if answer.returncode != 0:
        msg = f"`{compiler}` cannot compile the platform:\n{answer.stderr.strip()[-_SHOWN_CHARACTERS:]}"
        raise CapabilityError(msg, hint=hint, code="capability.simgrid")
    return folder / LIBRARY


def _rows(rows: Iterable[tuple[int, float, float]]) -> str:
    return ",\n".join(f"    {{{above}, {first!r}, {second!r}}}" for above, first, second in rows)
