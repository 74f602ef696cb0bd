"""Parameters of compared commands: `{name}` in a command, and the values it takes."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MOST_VALUES: Final = 1000
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PLACE: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")
_FORMS: Final = "`NAME=A,B,C` or `NAME=FROM:TO[:STEP]`"
_FEWEST_BOUNDS, _MOST_BOUNDS = 2, 3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A name and the values it takes, in order."""

    name: str
    values: tuple[str, ...]


def parse_parameter(text: str) -> Parameter:
    """Read a parameter as it is given on the command line.

    Parameters
    ----------
    text : str
        ``name=a,b,c`` or ``name=from:to:step``; the step is 1 where it is left out, and both ends count.

    Raises
    ------
    UsageError
        If it is neither, a value occurs twice, or there are more than `MOST_VALUES`.

    Examples
    --------
    >>> parse_parameter("threads=1:4").values
    ('1', '2', '3', '4')
    >>> parse_parameter("delay=0.3:0.7:0.2").values
    ('0.3', '0.5', '0.7')
    >>> parse_parameter("cc=gcc,clang").values
    ('gcc', 'clang')
    """
    name, separator, rest = text.partition("=")
    if not separator or not _NAME.fullmatch(name) or not rest:
        message = f"`--parameter {text}`: allowed: {_FORMS}"
        raise UsageError(message, hint="--parameter threads=1,2,4 'make -j {threads}'")
    bounds = rest.split(":")
    is_range = "," not in rest and _FEWEST_BOUNDS <= len(bounds) <= _MOST_BOUNDS
    values = (_range(text, bounds) if is_range else None) or tuple(rest.split(","))
    if len(set(values)) < len(values):
        message = f"`--parameter {text}`: a value occurs twice"
        raise UsageError(message)
    return Parameter(name, values)


def _range(text: str, bounds: Sequence[str]) -> tuple[str, ...] | None:
    """Give the values of a range; ``None`` where the bounds are no numbers (`a:b` may be a word)."""
    try:
        low, high, step = (Decimal(bound) for bound in (*bounds, "1")[:3])
    except InvalidOperation:
        return None
    if not all(number.is_finite() for number in (low, high, step)) or step <= 0 or high < low:
        message = f"`--parameter {text}`: allowed: FROM at most TO, and a STEP above 0"
        raise UsageError(message)
    count = int((high - low) / step) + 1
    if count > MOST_VALUES:
        message = f"`--parameter {text}`: {count} values; allowed: at most {MOST_VALUES}"
        raise UsageError(message)
    return tuple(str(low + step * at) for at in range(count))


def parse_parameters(texts: Sequence[str]) -> tuple[Parameter, ...]:
    """Read all parameters.

    Raises
    ------
    UsageError
        If one is malformed, or two have the same name.
    """
    found = tuple(parse_parameter(text) for text in texts)
    names = [parameter.name for parameter in found]
    for name in names:
        if names.count(name) > 1:
            message = f"`--parameter {name}=...` is given {names.count(name)} times"
            raise UsageError(message, hint=f"give all values at once: --parameter {name}=A,B,C")
    return found


def places_in(text: str) -> frozenset[str]:
    """Give the names in braces of a text.

    Examples
    --------
    >>> sorted(places_in("make -j {threads} CC={cc}"))
    ['cc', 'threads']
    """
    return frozenset(_PLACE.findall(text))


def combinations(parameters: Sequence[Parameter], used: frozenset[str]) -> Iterator[dict[str, str]]:
    """Give every combination of the values of those parameters that a command uses."""
    own = [parameter for parameter in parameters if parameter.name in used]
    for values in itertools.product(*(parameter.values for parameter in own)):
        yield dict(zip((parameter.name for parameter in own), values, strict=True))


def filled(text: str, values: Mapping[str, str]) -> str:
    """Replace the names that are known; everything else in braces stays.

    Examples
    --------
    >>> filled("make -j {threads} {print}", {"threads": "4"})
    'make -j 4 {print}'
    """
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), text)


def require_used(parameters: Sequence[Parameter], texts: Sequence[str]) -> None:
    """Check that every parameter occurs in some command.

    Raises
    ------
    UsageError
        If one does not; the message names what is in braces there.
    """
    found = frozenset[str]().union(*map(places_in, texts))
    for parameter in parameters:
        if parameter.name not in found:
            there = ", ".join(f"`{{{name}}}`" for name in sorted(found)) or "nothing in braces"
            message = f"no command contains `{{{parameter.name}}}`; the commands contain {there}"
            raise UsageError(message, hint=f"write `{{{parameter.name}}}` where its values belong")
