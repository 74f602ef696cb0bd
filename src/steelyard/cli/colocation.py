"""Options of the command line that say which policies the colocation study tries, under which load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from steelyard.cli.amounts import WholeOrNone  # noqa: TC001 - cyclopts reads it
from steelyard.cli.verb_app import options_of
from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

Flag = Annotated[bool, Parameter(negative="")]
PERCENT = 100


@Parameter(name="*", group=options_of("colocation"))
@dataclass(frozen=True, slots=True)
class Colocation:
    """Trials of the colocation study.

    Parameters
    ----------
    policies
        Policies by commas: none, default, nice, weights, idle, cpu-idle, be,
        be-no-entry, be-no-exit, be-no-local, fifo. Those that do not work here are recorded with the reason.
    loads
        CPU time that the requests alone ask for [percent of the CPUs], by commas.
    repetitions
        Trials of each policy and load; each repetition has arrivals of its own.
    in_vm
        Execute every trial in a virtual machine whose kernel can load a scheduler, its time
        counted in instructions: the same on every machine.
    vcpus
        Processors of that machine.
    instruction_ns
        Time that an instruction takes on each of them while all are busy [ns]; default and
        least: their number. Slower ones are simulated sooner, and the kernel's own work weighs more there.
    cpus
        CPUs that service and best-effort jobs share, separated by commas.
    kind
        Service of worker threads (pool), or over HTTP with a second tier behind it (web).
    long_share
        Share of requests that are long, as `2%`.
    """

    policies: str | None = None
    loads: str | None = None
    repetitions: Annotated[WholeOrNone, Parameter(name=["--repetitions", "--seeds"])] = None
    in_vm: Flag = False
    vcpus: WholeOrNone = None
    instruction_ns: WholeOrNone = None
    cpus: str | None = None
    kind: str | None = None
    long_share: str | None = None

    def given(self) -> Mapping[str, object]:
        """Give what was said, by key of the study file.

        Raises
        ------
        UsageError
            If a list of numbers, or a share, cannot be read.
        """
        return {
            "policies": None if self.policies is None else tuple(_words(self.policies)),
            "loads": None if self.loads is None else _numbers("loads", self.loads),
            "repetitions": self.repetitions,
            "in_vm": self.in_vm or None,
            "vcpus": self.vcpus,
            "instruction_ns": self.instruction_ns,
            "cpus": None if self.cpus is None else _cpus(self.cpus),
            "kind": self.kind,
            "long_share": None if self.long_share is None else _share(self.long_share),
        }


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _numbers(option: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word.removesuffix("%")) for word in _words(text))
    except ValueError as error:
        message = f"`--{option} {text}`: allowed: whole numbers separated by commas"
        raise UsageError(message, hint=f"--{option} 85,95") from error


def _cpus(text: str) -> tuple[int, ...]:
    """Read a list of CPUs with ranges.

    Examples
    --------
    >>> _cpus("0-2,5")
    (0, 1, 2, 5)
    """
    found: list[int] = []
    try:
        for word in _words(text):
            first, _, last = word.partition("-")
            found.extend(range(int(first), int(last or first) + 1))
    except ValueError as error:
        message = f"`--cpus {text}`: allowed: numbers and ranges separated by commas"
        raise UsageError(message, hint="--cpus 0-3") from error
    return tuple(found)


def _share(text: str) -> float:
    """Read a share, as a percentage or as a number.

    Examples
    --------
    >>> _share("2%"), _share("0.02")
    (0.02, 0.02)
    """
    try:
        return float(text.removesuffix("%")) / PERCENT if text.endswith("%") else float(text)
    except ValueError as error:
        message = f"`--long-share {text}`: allowed: a percentage, or a number from 0 to 1"
        raise UsageError(message, hint="--long-share 2%") from error


NO_COLOCATION = Colocation()
