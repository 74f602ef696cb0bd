"""What the files of harnesses share: values, statistics that the tool computed, parameters and facts."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Final

from steelyard.record.importers.foreign import (
    DECIMAL_EXPONENTS,
    Published,
    Section,
    to_nanoseconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from steelyard.record.importers.foreign import ForeignFile
    from steelyard.record.importers.json_node import Node

FAILED: Final = "benchmarks that failed, left out"
ABSENT: Final = "values that are not finite, left out"
SKIPPED: Final = "benchmarks and tests that were not run"
NUMBERED: Final = "benchmarks that have the name of one before them in the file, numbered"
MEANS: Final = "means that the tool computed, one a process, whose samples are not in the file"
MEDIANS: Final = "medians that the tool computed, one a process, whose samples are not in the file"
PUBLISHED: Final = "numbers that the tool computed, kept as published, not taken as samples"


def section(metric: str, unit: str, number: Decimal, iteration: int = 1) -> Section:
    """Give a value; a time in `ns`, `us`, `ms` or `s` becomes nanoseconds."""
    if unit in DECIMAL_EXPONENTS:
        return Section(metric, "ns", to_nanoseconds(number, unit), iteration, printed=str(number))
    return Section(metric, unit, float(number), iteration, printed=str(number))


def published(levels: dict[str, str], metric: str, statistic: str, unit: str, number: Decimal) -> Published:
    """Give a number that the tool computed, with its unit as printed."""
    kept = section(metric, unit, number)
    return Published(dict(levels), metric, statistic, kept.unit, kept.value, f"{number} {unit}".rstrip())


def statistics_of(
    node: Node, levels: dict[str, str], metric: str, unit: str, names: Mapping[str, str]
) -> list[Published]:
    """Give the statistics that are members of an object; those that are no numbers do not exist."""
    found = []
    for name, statistic in names.items():
        member = node.optional(name)
        if member is not None and is_number(member):
            found.append(published(levels, metric, statistic, unit, member.number()))
    return found


def is_number(node: Node) -> bool:
    """Tell whether a value is a finite number; tools write NaN or a text where there is none."""
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return False
    return not isinstance(value, Decimal) or value.is_finite()


def with_parameters(levels: dict[str, str], parameters: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Add parameters to levels; a parameter never takes the place of a level that is there."""
    found = dict(levels)
    for name, level in parameters:
        while name in found:
            name = f"parameter_{name}"  # noqa: PLW2901 - until nothing has the name
        found[name] = level
    return found


def facts_of(node: Node | None, names: Mapping[str, str]) -> dict[str, str]:
    """Give the facts that are members of an object: `names` has the name of each fact by its member."""
    members = {} if node is None else {name: node.optional(name) for name in names}
    return {names[name]: member.shown() for name, member in members.items() if member is not None}


def remark(found: ForeignFile, text: str, count: int) -> None:
    """Add a remark on how many values or benchmarks are not what a reader expects."""
    if count:
        found.notes.append(f"{text}: {count}")
