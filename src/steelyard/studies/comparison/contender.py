"""The commands of a comparison, and which is compared with which."""

from __future__ import annotations

import itertools
import shlex
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import UsageError
from steelyard.record.seal import hash_file
from steelyard.studies.comparison.parameter import combinations, filled, places_in, require_used

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from steelyard.studies.comparison.harness.driver import Reading
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
    reading : Reading or None
        How its harness reports the time of a run, where it is a benchmark of one.
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
    reading: Reading | None = field(default=None, compare=False)


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
    is_best : bool
        Whether everybody is compared with everybody, to find the fastest.
    """

    contenders: tuple[Contender, ...]
    pairs: tuple[tuple[int, int], ...]
    contests: tuple[frozenset[int], ...]
    margins: tuple[float, ...] = ()
    is_best: bool = False


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
class Driven:
    """A benchmark of a harness in one side.

    Parameters
    ----------
    words : tuple of str
        What runs it alone.
    folder : Path
        Where.
    reading : Reading
        How its harness reports the time of a run.
    """

    words: tuple[str, ...]
    folder: Path
    reading: Reading


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
    driven : tuple of mapping
        For each command the benchmark of a harness that it is, by side; a side without it is left out.
        Empty mappings for commands of their own.
    programs : tuple of str
        Commands of harnesses, whose benchmarks `listing` gives.
    is_best : bool
        Whether the fastest is asked for: everybody is compared with everybody.
    listing : callable or None
        Gives the commands once the sides are built, from them and a folder for what harnesses write.
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
    driven: tuple[Mapping[str, Driven], ...] = ()
    programs: tuple[str, ...] = ()
    is_best: bool = False
    listing: Callable[[tuple[Side, ...], Path], Commands] | None = None

    def on(self, sides: tuple[Side, ...], remarks: Sequence[str], scratch: Path) -> Commands:
        """Give the commands in these sides, those included that only a built side can name."""
        made = self if self.listing is None else self.listing(sides, scratch)
        return replace(made, sides=sides, remarks=(*remarks, *made.remarks))

    def field(self) -> Field:
        """Give cells and comparisons.

        With sides, each command is compared with itself in the first side. Where the fastest is asked for,
        everybody is compared with everybody. Else, with several commands each
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
        if self.is_best:
            pairs = tuple(itertools.combinations(range(len(everybody)), 2))
        elif len(self.texts) == 1:
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
        return Field(everybody, pairs, (frozenset(range(len(everybody))),), is_best=self.is_best)

    def _of_sides(self) -> Field:
        everybody: list[Contender] = []
        contests: list[frozenset[int]] = []
        margins: list[float] = []
        for at in range(len(self.texts)):
            driven = self.driven[at] if self.driven else {}
            sides = [side for side in self.sides if not driven or side.name in driven]
            for cell in self._cells(at, 0):
                is_told_by_side = len(self.texts) == 1 and not cell.values and not self.names
                first = len(everybody)
                for side in sides:
                    name = side.name if is_told_by_side else f"{cell.name} @ {side.name}"
                    placed = replace(
                        cell,
                        number=len(everybody),
                        name=name,
                        folder=side.folder,
                        benchmark=cell.name,
                        side=side.name,
                    )
                    if (run := driven.get(side.name)) is not None:
                        placed = replace(
                            placed,
                            text=shlex.join(run.words),
                            words=run.words,
                            folder=run.folder,
                            reading=run.reading,
                        )
                    everybody.append(placed)
                contests.append(frozenset(range(first, len(everybody))))
                margins += self.margins[at : at + 1] * (len(sides) - 1)
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
        if self.is_best and (self.sides or self.baseline is not None):
            message = "`--best` compares all commands with each other: there is no baseline, and no revision"
            raise UsageError(message, hint="leave out `--best`, or `--baseline` and `--rev`")
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
            words = (*SHELL, whole) if self.shell else split_words(whole)
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


def program_hashes(contenders: Sequence[Contender]) -> dict[str, str]:
    """Give the SHA-256 of what each command names by a path: its program, or the script of an interpreter.

    Programs that are looked up belong to the host, those of revisions to their builds; neither is named.
    """
    found: dict[str, str] = {}
    for contender in contenders:
        program, *arguments = contender.words
        own = program if "/" in program else next(iter(arguments), "")
        path = Path(own).absolute()
        if contender.folder is None and contender.words[:2] != SHELL and own and path.is_file():
            found[contender.name] = hash_file(path)
    return found


def _agree(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    return all(other[name] == value for name, value in one.items() if name in other)


def split_words(text: str) -> tuple[str, ...]:
    """Split a command into words as a shell does.

    Raises
    ------
    UsageError
        If a quotation is not closed, or there is no word.
    """
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
