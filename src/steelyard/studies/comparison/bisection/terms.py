"""What a bisection is asked, and the plan that follows from it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from steelyard.analyse.comparison.equivalence import Margin
from steelyard.design.blocks import draw_batches
from steelyard.errors import DataError, UsageError
from steelyard.model import Cell, Execution, Plan
from steelyard.studies.comparison.contender import SHELL, Contender, Hooks
from steelyard.studies.comparison.terms import LEVELS, MEASURE, OF_COMMANDS, Metric, Terms

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.analyse.culprit.history import History
    from steelyard.revisions.history import Span

STUDY: Final = "bisect"
GOOD, CANDIDATE, BAD, PARENT = "good", "candidate", "bad", "parent"
ROLES: Final = (GOOD, CANDIDATE, BAD, PARENT)
ENDS: Final = (GOOD, BAD)
"""Beside both, or beside its parent, a candidate is measured."""
MOST_BLOCKS: Final = 4000
"""Blocks that a plan foresees; it is longer than what is measured."""


NO_HOOKS: Final = Hooks()


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked.

    Parameters
    ----------
    command : tuple of str
        What runs in each checkout.
    build : str or None
        Shell line that builds a commit.
    shell : bool
        Whether a shell runs the command.
    hooks : Hooks
        Lines around its runs.
    terms : Terms
        How it is measured; margin and level are those of the search.
    minutes : float
        Time in which it is to be answered, builds included.
    """

    command: tuple[str, ...]
    build: str | None = None
    shell: bool = False
    hooks: Hooks = NO_HOOKS
    terms: Terms = field(default_factory=Terms)
    minutes: float = 30.0

    @property
    def text(self) -> str:
        """The command as people read it."""
        return self.command[0] if self.shell and len(self.command) == 1 else shlex.join(self.command)

    def check(self) -> None:
        """Check what the types leave open.

        Raises
        ------
        UsageError
            If a number is outside its range, or there is no command.
        """
        if not self.command or not self.command[0].strip():
            message = "`steelyard bisect` needs a command that runs in each checkout"
            raise UsageError(message, hint="steelyard bisect v1.0 HEAD --build make -- ./program")
        level, margin = self.terms.margin.level, self.terms.margin.relative
        metrics = ", ".join(f"`{each}`" for each in OF_COMMANDS)
        for given, is_allowed, allowed in (
            (f"--metric {self.terms.metric}", self.terms.metric in OF_COMMANDS, metrics),
            (f"--confidence {100 * level:g}%", 0.5 < level < 1, LEVELS),  # noqa: PLR2004
            (f"--margin {100 * margin:g}%", 0 < margin < 1, "more than 0 % and less than 100 %"),
            (f"--minutes {self.minutes:g}", 0 < self.minutes < float("inf"), "more than 0"),
            (f"--seed {self.terms.seed}", self.terms.seed >= 0, "0 or more"),
        ):
            if not is_allowed:
                message = f"`{given}`: allowed: {allowed}"
                raise UsageError(message)

    def contender(self, role: str, folder: Path) -> Contender:
        """Give what runs in a checkout."""
        words = (*SHELL, self.text) if self.shell else self.command
        return Contender(ROLES.index(role), role, self.text, words, hooks=self.hooks, folder=folder)


def draw_plan(question: Question, span: Span) -> Plan:
    """Freeze the blocks: each has both ends and places for a candidate and its parent, in random order."""
    terms = question.terms
    words = (*SHELL, question.text) if question.shell else question.command
    cells = tuple(
        Cell(at, {"role": role, "phase": MEASURE}, Execution(terms.isolation, words))
        for at, role in enumerate(ROLES)
    )
    options: dict[str, str | int | float | bool | None] = {
        "isolation": terms.isolation,
        "metric": str(terms.metric),
        "margin": terms.margin.relative,
        "margin_percent": 100 * terms.margin.relative,
        "level": terms.margin.level,
        "good": span.good.id,
        "bad": span.bad.id,
        "good_name": span.good.name,
        "bad_name": span.bad.name,
        "commits": len(span.history),
        "history": history_text(span.history),
        "command": question.text,
        "build": question.build,
        "input": None if terms.input is None else str(terms.input),
        "output": str(terms.output),
        "cpus": ",".join(map(str, terms.cpus)),
        "environment": "caller" if terms.inherits else "clean",
    }
    factors = {"role": ROLES, "phase": (MEASURE,)}
    batches = draw_batches(range(len(ROLES)), blocks=MOST_BLOCKS, seed=terms.seed)
    return Plan(STUDY, terms.seed, factors, cells, batches, MOST_BLOCKS, options).freeze()


def history_text(history: History) -> str:
    """Give what tells histories apart: the first and the last commit, where merges are followed or not."""
    first, last = history.commits[0], history.commits[-1]
    return f"{first.id}..{last.id} {'linear' if history.is_linear else 'with merges'}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a plan says was asked, as far as its findings depend on it.

    Parameters
    ----------
    metric : Metric
        What is compared.
    margin : Margin
        What counts as no difference, and the confidence.
    good, bad : str
        Names of both ends.
    command : str
        What ran.
    """

    metric: Metric
    margin: Margin
    good: str
    bad: str
    command: str


def asked_of(plan: Plan) -> Asked:
    """Give what a plan says was asked.

    Raises
    ------
    DataError
        If it is no plan of a bisection.
    """
    options = plan.options
    try:
        return Asked(
            Metric(str(options["metric"])),
            Margin(_number(options["margin"]), _number(options["level"])),
            str(options["good_name"]),
            str(options["bad_name"]),
            str(options["command"]),
        )
    except (KeyError, ValueError, TypeError) as error:
        message = f"`plan.json` is not a plan of `steelyard bisect`: {error}"
        raise DataError(
            message, hint="give a folder that `steelyard bisect` wrote", code="data.study"
        ) from error


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"`{value}` is not a number"
        raise TypeError(message)
    return float(value)
