"""JMH: names and parameters by ``-lp``, one benchmark in one fork, values from its JSON."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Final

from steelyard.errors import DataError
from steelyard.record.importers.jmh import PRIMARY, read
from steelyard.studies.comparison.harness.driver import (
    MEAN,
    Driver,
    Listed,
    exactly,
    sections_of_file,
    value_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from steelyard.studies.comparison.harness.driver import Place, Scratch

_FILE: Final = "benchmark.json"
_HEAD: Final = "Benchmarks:"
_PARAMETER: Final = re.compile(r'\s+param "(?P<name>.+)" = \{(?P<values>.*)\}')
_NS_PER: Final = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_WARM_UPS: Final = 3
"""Each as long as what is measured: the compiler of the virtual machine needs its time."""


def _listed(place: Place) -> list[Listed]:
    duration = f"{max(round(place.seconds * 1000), 1)}ms"
    settings = ["-f", "1", "-wi", str(_WARM_UPS), "-w", duration, "-i", "1", "-r", duration, "-foe", "true"]
    if place.statistic != MEAN:
        settings += ["-bm", "sample"]  # the other modes report a mean alone
    target = ["-rf", "json", "-rff", str(place.scratch.run / _FILE)]
    found = []
    for name, parameters in benchmarks_of(place.ask([*place.words, "-lp"])):
        for values in product(*parameters.values()):
            chosen = [f"{key}={value}" for key, value in zip(parameters, values, strict=True)]
            given = [word for each in chosen for word in ("-p", each)]
            words = (*place.words, exactly(name), *given, *settings, *target)
            found.append(Listed(f"{name} ({', '.join(chosen)})" if chosen else name, words))
    return found


def benchmarks_of(text: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    r"""Give each name with the values of its parameters, as ``-lp`` writes them.

    Examples
    --------
    >>> dict(benchmarks_of('Benchmarks: \na.Sort.run\n  param "n" = {10, 20}\na.Sort.same\n'))
    {'a.Sort.run': {'n': ['10', '20']}, 'a.Sort.same': {}}
    """
    found: dict[str, dict[str, list[str]]] = {}
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip() == _HEAD), len(lines))
    for line in lines[start + 1 :]:
        parameter = _PARAMETER.fullmatch(line)
        if parameter is None:
            found[line.strip()] = {}
        elif found and parameter["values"]:  # an empty text is its own default
            found[next(reversed(found))][parameter["name"]] = parameter["values"].split(", ")
    yield from ((name, parameters) for name, parameters in found.items() if name)


def _read(scratch: Scratch, statistic: str) -> float:
    rate = PRIMARY["thrpt"]
    sections = sections_of_file(scratch.run / _FILE, read, ("time", rate))
    value, unit = value_of(sections, statistic), sections[0].unit
    if sections[0].metric != rate and unit == "ns":
        return value
    per = unit.removeprefix("ops/")
    if sections[0].metric != rate or per not in _NS_PER or value <= 0:
        message = f"it reported {value:g} {unit}, which is not a time"
        raise DataError(message, code="data.import")
    return _NS_PER[per] / value


DRIVER: Final = Driver(_listed, _read)
