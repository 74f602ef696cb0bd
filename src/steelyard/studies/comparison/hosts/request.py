"""What a plan tells other hosts of a comparison: how its commands run there, and which programs they are."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import TypeAdapter, ValidationError

from steelyard.analyse.comparison.interim_schedule import Extent
from steelyard.errors import CapabilityError, DataError, UsageError
from steelyard.record.seal import hash_file
from steelyard.run.redact import has_secret_name
from steelyard.studies.comparison.contender import Contender, Field, Hooks, program_hashes
from steelyard.studies.comparison.terms import (
    HOST_LAYOUT,
    MEASURE,
    Mode,
    Output,
    command_count,
    planned_terms,
)

if TYPE_CHECKING:
    from steelyard.model import Plan
    from steelyard.studies.comparison.terms import Terms

FEWEST_RUNS: Final = 10
"""Of each command on each host: with fewer there is hardly an interval."""
REFUSED: Final = "capability.remote-program"
_OPTION: Final = "placed"


@dataclass(frozen=True, slots=True)
class PlacedRequest:
    """What a host is told beside the cells of the plan.

    Parameters
    ----------
    folder : str
        Where commands, and the lines around them, run.
    hooks : tuple of Hooks
        Of each command.
    programs : dict
        SHA-256 of each program or script that is named by its path, and of standard input, by path.
    cpus, environment, is_clean, shown, input, output
        As in `Terms`.
    """

    folder: str
    hooks: tuple[Hooks, ...]
    programs: dict[str, str] = field(default_factory=dict)
    cpus: tuple[int, ...] = ()
    environment: tuple[str, ...] = ()
    is_clean: bool = False
    shown: tuple[str, ...] = ()
    input: str | None = None
    output: str = Output.NULL

    @classmethod
    def of(cls, entrants: Field, terms: Terms) -> PlacedRequest:
        """Give what hosts are told.

        Raises
        ------
        UsageError
            If it cannot be done there.
        """
        _require_placeable(entrants, terms)
        return cls(
            str(Path.cwd()),
            tuple(contender.hooks for contender in entrants.contenders),
            _hashes(entrants.contenders, terms.input),
            terms.cpus,
            terms.environment,
            terms.is_clean,
            tuple(map(str, terms.shown)),
            None if terms.input is None else str(terms.input),
            str(terms.output),
        )

    def within(self, plan: Plan) -> Plan:
        """Give the plan with it."""
        told = json.dumps(asdict(self), sort_keys=True)
        return replace(plan, options={**plan.options, _OPTION: told}).freeze()

    @classmethod
    def from_plan(cls, plan: Plan) -> PlacedRequest:
        """Read what `within` wrote.

        Raises
        ------
        DataError
            If the plan has none.
        """
        try:
            found = TypeAdapter(cls).validate_json(str(plan.options.get(_OPTION)))
        except ValidationError as error:
            message = "`plan.json` is no plan of a comparison on several hosts"
            hint = "give a part of a folder that `steelyard compare --on` wrote"
            raise DataError(message, hint=hint, code="data.study") from error
        if len(found.hooks) != command_count(plan):
            message = f"`plan.json` has lines around {len(found.hooks)} of {command_count(plan)} commands"
            raise DataError(message, code="data.study")
        return found

    def entrants(self, plan: Plan) -> Field:
        """Give the commands of the plan with the lines around them."""
        _, pairs = planned_terms(plan)
        measured = [cell for cell in plan.cells if cell.levels.get("phase") == MEASURE]
        contenders = tuple(
            Contender(
                number,
                cell.levels["command"],
                " ".join(cell.execution.command) if cell.execution else "",
                cell.execution.command if cell.execution else (),
                hooks=hooks,
            )
            for number, (cell, hooks) in enumerate(zip(measured, self.hooks, strict=True))
        )
        return Field(contenders, pairs, (frozenset(range(len(contenders))),))

    def terms(self, plan: Plan, blocks: int) -> Terms:
        """Give the terms of some measured blocks, all of which are run before anybody looks at them."""
        planned, _ = planned_terms(plan)
        output = Output(self.output) if self.output in list(Output) else Path(self.output)
        return replace(
            planned,
            extent=Extent(blocks, blocks, math.inf),
            hosts=0,
            cpus=self.cpus,
            environment=self.environment,
            is_clean=self.is_clean,
            shown=tuple(map(Path, self.shown)),
            input=None if self.input is None else Path(self.input),
            output=output,
        )

    def require_same_programs(self, entrants: Field, host: str) -> None:
        """Refuse a host that lacks a program or has another; called there, in the folder of the commands.

        Raises
        ------
        CapabilityError
            Naming host and program.
        """
        here = _hashes(entrants.contenders, None if self.input is None else Path(self.input))
        for path, digest in self.programs.items():
            if here.get(path) != digest:
                how = "has no" if path not in here else "has another"
                message = f"host `{host}` {how} `{path}`"
                hint = f"copy the one from where the comparison was begun (SHA-256 {digest[:12]}...)"
                raise CapabilityError(message, hint=hint, code=REFUSED)


def _hashes(contenders: tuple[Contender, ...], standard_input: Path | None) -> dict[str, str]:
    """Give the hash of what the commands name by a path, by the absolute path."""
    found = {}
    for contender in contenders:
        for name in program_hashes([contender]).values():
            program, *arguments = contender.words
            found[str(Path(program if "/" in program else arguments[0]).absolute())] = name
    if standard_input is not None and standard_input.is_file():
        found[str(standard_input.absolute())] = hash_file(standard_input)
    return found


def _require_placeable(entrants: Field, terms: Terms) -> None:
    refused = {
        "--mode": terms.mode is not Mode.TURNS,
        "--layout": terms.layout != HOST_LAYOUT,
        "--best": entrants.is_best,
        "--output show": terms.output is Output.SHOW,
    }
    for option, is_asked in refused.items():
        if is_asked:
            message = f"`{option}` is for one host; `--on` places a comparison on several"
            raise UsageError(message, hint=f"leave out `{option}` or `--on`", code="usage.not-placeable")
    for entry in terms.environment:
        name, is_set, _ = entry.partition("=")
        if is_set and has_secret_name(name):
            message = f"cannot place `--environment {name}=...`: the plan would show it to all who read it"
            hint = f"set it on each host, and pass it on with `--environment {name}`"
            raise UsageError(message, hint=hint, code="usage.not-placeable")
    if terms.extent.blocks_max < FEWEST_RUNS:
        message = f"`--runs-max {terms.extent.blocks_max}` with `--on`: allowed: at least {FEWEST_RUNS}"
        raise UsageError(message, hint="it is the number of runs of each command on each host")
