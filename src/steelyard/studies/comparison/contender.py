"""The commands of a comparison, and which is compared with which."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import UsageError
from steelyard.studies.comparison.parameter import combinations, filled, places_in, require_used

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from steelyard.studies.comparison.parameter import Parameter

SHELL: Final = ("sh", "-c")
LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Hooks:
    """Shell lines around the runs of a command; they are not measured.

    Parameters
    ----------
    setup, cleanup : str or None
        Once, before its first and after its last run.
    prepare, conclude : str or None
        Before and after each of its runs.
    """

    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None

    def filled(self, values: Mapping[str, str]) -> Hooks:
        """Give the lines with the values of parameters."""
        lines = (self.setup, self.prepare, self.conclude, self.cleanup)
        return Hooks(*(None if line is None else filled(line, values) for line in lines))


@dataclass(frozen=True, slots=True)
class Contender:
    """One command with one combination of parameters: a cell.

    Parameters
    ----------
    number : int
        From 0.
    name : str
        For people; unique.
    text : str
        The command as it was given, parameters filled in.
    words : tuple of str
        What is run.
    values : dict
        Parameters.
    hooks : Hooks
        Lines around its runs.
    folder : Path or None
        Where it runs, and lines around it; the current folder unless given.
    benchmark, side : str
        What it measures in which side, where there are sides.
    """

    number: int
    name: str
    text: str
    words: tuple[str, ...]
    values: dict[str, str] = field(default_factory=dict)
    hooks: Hooks = Hooks()
    folder: Path | None = None
    benchmark: str = ""
    side: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """Everybody who takes part.

    Parameters
    ----------
    contenders : tuple of Contender
        In order; the baseline's cells included.
    pairs : tuple of (int, int)
        Numbers of baseline and contender of each comparison.
    contests : tuple of frozenset of int
        Numbers of those that take turns with each other.
    margins : tuple of float
        Margin of each comparison, where benchmarks have margins of their own.
    """

    contenders: tuple[Contender, ...]
    pairs: tuple[tuple[int, int], ...]
    contests: tuple[frozenset[int], ...]
    margins: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Side:
    """A folder in which the same commands run, such as that of a revision.

    Parameters
    ----------
    name : str
        For people; unique.
    folder : Path
        Where commands, and the lines around them, run.
    facts : dict
        What is recorded of how it was made.
    """

    name: str
    folder: Path
    facts: dict[str, Any] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands as the user gives them.

    Parameters
    ----------
    texts : tuple of str
        At least one.
    names : tuple of str
        One per command, or none.
    baseline : str or None
        Number from 1, name or text of a command; the first by default.
    parameters : tuple of Parameter
        Values of what stands in braces.
    hooks : tuple of Hooks
        One per command.
    shell : bool
        Whether a shell runs them.
    sides : tuple of Side
        Each command runs in each of these folders, and is compared with itself in the first.
    remarks : tuple of str
        What else is to be said with the result.
    margins : tuple of float
        One per command, where they differ.
    """

    texts: tuple[str, ...]
    names: tuple[str, ...] = ()
    baseline: str | None = None
    parameters: tuple[Parameter, ...] = ()
    hooks: tuple[Hooks, ...] = ()
    shell: bool = False
    sides: tuple[Side, ...] = ()
    remarks: tuple[str, ...] = ()
    margins: tuple[float, ...] = ()

    def field(self) -> Field:
        """Give cells and comparisons.

        With sides, each command is compared with itself in the first side. Else, with several commands each
        contender is compared with the baseline of the same values; with one command each value is compared
        with the first.

        Raises
        ------
        UsageError
            If there is nothing to compare, names or baseline do not fit, a parameter is used nowhere, or a
            command cannot be split into words.
        """
        self._check()
        if self.sides:
            return self._of_sides()
        baseline = self._baseline()
        made: list[list[Contender]] = []
        for at in range(len(self.texts)):
            first = sum(map(len, made))
            made.append(self._cells(at, first))
        everybody = tuple(cell for cells in made for cell in cells)
        if len(self.texts) == 1:
            pairs = tuple((0, cell.number) for cell in everybody[1:])
        else:
            others = [cell for at, cells in enumerate(made) if at != baseline for cell in cells]
            pairs = tuple(
                (partner.number, cell.number)
                for cell in others
                for partner in made[baseline]
                if _agree(partner.values, cell.values)
            )
        if not pairs:
            message = "compare needs at least two commands"
            raise UsageError(message, hint="give a second command, or --parameter with several values")
        return Field(everybody, pairs, (frozenset(range(len(everybody))),))

    def _of_sides(self) -> Field:
        first_side, *others = self.sides
        everybody: list[Contender] = []
        contests: list[frozenset[int]] = []
        margins: list[float] = []
        for at in range(len(self.texts)):
            for cell in self._cells(at, 0):
                is_told_by_side = len(self.texts) == 1 and not cell.values and not self.names
                first = len(everybody)
                for side in (first_side, *others):
                    name = side.name if is_told_by_side else f"{cell.name} @ {side.name}"
                    everybody.append(
                        replace(
                            cell,
                            number=len(everybody),
                            name=name,
                            folder=side.folder,
                            benchmark=cell.name,
                            side=side.name,
                        )
                    )
                contests.append(frozenset(range(first, len(everybody))))
                margins += self.margins[at : at + 1] * len(others)
        pairs = tuple((min(contest), other) for contest in contests for other in sorted(contest)[1:])
        return Field(tuple(everybody), pairs, tuple(contests), tuple(margins))

    def _check(self) -> None:
        for text in self.texts:
            if not text.strip():
                message = "a command is empty"
                raise UsageError(message, hint="steelyard compare 'COMMAND A' 'COMMAND B'")
        if self.sides and self.baseline is not None:
            message = f"`--baseline {self.baseline}`: the baseline of revisions is the first one"
            raise UsageError(message, hint="give the revisions in another order")
        if len(self.texts) == 1 and not self.parameters and not self.sides:
            message = f"compare needs at least two commands; given: `{self.texts[0]}`"
            hint = "give a second command, or `steelyard measure -- COMMAND` for one"
            raise UsageError(message, hint=hint)
        if self.names and len(self.names) != len(self.texts):
            message = f"{len(self.names)} names for {len(self.texts)} commands"
            raise UsageError(message, hint="give `--name` once per command, in their order")
        if len(set(self.names)) < len(self.names):
            message = f"two commands have the same name: {', '.join(self.names)}"
            raise UsageError(message)
        lines = [line for hooks in self.hooks for line in (hooks.setup, hooks.prepare) if line]
        require_used(self.parameters, [*self.texts, *lines])

    def _baseline(self) -> int:
        wanted = self.baseline
        if wanted is None:
            return 0
        if wanted.isdecimal() and 1 <= int(wanted) <= len(self.texts):
            return int(wanted) - 1
        for known in (self.names, self.texts):
            if wanted in known:
                return known.index(wanted)
        allowed = ", ".join(f"`{name}`" for name in (self.names or self.texts))
        message = f"`--baseline {wanted}`: allowed: 1 to {len(self.texts)}, or one of {allowed}"
        raise UsageError(message)

    def _cells(self, at: int, first: int) -> list[Contender]:
        text = self.texts[at]
        hooks = self.hooks[at] if self.hooks else Hooks()
        lines = [line for line in (hooks.setup, hooks.prepare, hooks.conclude, hooks.cleanup) if line]
        used = frozenset[str]().union(*map(places_in, (text, *lines)))
        cells: list[Contender] = []
        for values in combinations(self.parameters, used):
            whole = filled(text, values)
            name = self._name(at, whole, values)
            words = (*SHELL, whole) if self.shell else _split(whole)
            cells.append(Contender(first + len(cells), name, whole, words, values, hooks.filled(values)))
        return cells

    def _name(self, at: int, whole: str, values: Mapping[str, str]) -> str:
        given = self.names[at] if self.names else None
        stated = ", ".join(f"{name}={value}" for name, value in values.items())
        if given is not None:
            return f"{given} ({stated})" if stated else given
        is_told_apart = not values or whole != self.texts[at]
        name = whole if is_told_apart else f"{whole} ({stated})"
        is_twin = self.texts.count(self.texts[at]) > 1
        return f"{name} [{self.texts[:at].count(self.texts[at]) + 1}]" if is_twin else name


def _agree(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return all(other[name] == value for name, value in one.items() if name in other)


def _split(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        message = f"cannot split `{text}` into words: {str(error).lower()}"
        raise UsageError(message, hint="close the quotation, or add --shell") from error
    if not words:
        message = f"`{text}` contains no program"
        raise UsageError(message)
    return words


def short(name: str, longest: int = LONGEST_NAME) -> str:
    """Give a name that fits into a line, its begin and its end.

    Examples
    --------
    >>> short("a" * 40 + "b" * 40, 11)
    'aaaa...bbbb'
    """
    half = (longest - 3) // 2
    return name if len(name) <= longest else f"{name[:half]}...{name[-half:]}"
