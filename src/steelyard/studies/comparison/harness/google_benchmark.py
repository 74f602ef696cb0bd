"""Google Benchmark: names by ``--benchmark_list_tests``, one benchmark by a filter, values from its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.record.importers.google_benchmark import read
from steelyard.studies.comparison.harness.driver import Driver, Listed, exactly, sections_of_file, value_of

if TYPE_CHECKING:
    from steelyard.studies.comparison.harness.driver import Place, Scratch

_FILE: Final = "benchmark.json"


def _listed(place: Place) -> list[Listed]:
    lines = place.ask([*place.words, "--benchmark_list_tests=true"]).splitlines()
    return [
        Listed(
            name,
            (
                *place.words,
                f"--benchmark_filter={exactly(name)}",
                f"--benchmark_min_time={place.seconds:g}",
                f"--benchmark_out={place.scratch.run / _FILE}",
                "--benchmark_out_format=json",
            ),
        )
        for name in map(str.strip, lines)
        if name
    ]


def _read(scratch: Scratch, _statistic: str) -> float:
    return value_of(sections_of_file(scratch.run / _FILE, read, ("wall",)))


DRIVER: Final = Driver(_listed, _read)
