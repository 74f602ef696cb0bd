"""Own measurements on standard output, for technologies that close all other descriptors.

A program that finds ``STEELYARD_METRICS_FD=1`` writes its measurements as lines
``#steelyard name value unit [iteration [warmup|measure]]`` between its other output.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from steelyard.model.run_outcome import OwnMeasurement

if TYPE_CHECKING:
    from steelyard.model import RunOutcome

PREFIX: Final = "#steelyard "
FEWEST_FIELDS: Final = 3
ITERATION_FIELD: Final = 3
PHASE_FIELD: Final = 4
MOST_FIELDS: Final = 5
PHASES: Final = ("measure", "warmup")
LONGEST_WORD: Final = 64
"""Longest name and unit [characters]; the launcher reads no longer ones either."""


def take_own_lines(outcome: RunOutcome) -> RunOutcome:
    """Move the measurements in an outcome's captured output to its own measurements.

    Lines that are no measurements stay in the output.
    """
    captured = outcome.standard_output
    if captured is None:
        return outcome
    kept, own = [], list(outcome.own)
    for line in captured.text.splitlines(keepends=True):
        measurement = parse_own_line(line)
        if measurement is None:
            kept.append(line)
        else:
            own.append(measurement)
    return replace(outcome, own=tuple(own), standard_output=replace(captured, text="".join(kept)))


def parse_own_line(line: str) -> OwnMeasurement | None:
    """Read one line; ``None`` if it is no measurement.

    Examples
    --------
    >>> parse_own_line("#steelyard cpu 123 ns")
    OwnMeasurement(metric='cpu', value=123.0, unit='ns', iteration=1, phase='measure')
    """
    if not line.startswith(PREFIX):
        return None
    words = line[len(PREFIX) :].split()
    if not FEWEST_FIELDS <= len(words) <= MOST_FIELDS:
        return None
    name, text, unit = words[:FEWEST_FIELDS]
    try:
        value = float(text)
        iteration = int(words[ITERATION_FIELD]) if len(words) > ITERATION_FIELD else 1
    except ValueError:
        return None
    phase = words[PHASE_FIELD] if len(words) > PHASE_FIELD else "measure"
    is_readable = all(len(word) <= LONGEST_WORD and word.isprintable() for word in (name, unit))
    if not (math.isfinite(value) and is_readable and iteration >= 0 and phase in PHASES):
        return None
    return OwnMeasurement(name, value, unit, iteration, phase)
