"""Parts of a study as tasks of Slurm's arrays, each alone on its node."""

from __future__ import annotations

import re
import secrets
import shlex
import time
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, RunError, UsageError
from steelyard.model.document import read_document, write_document
from steelyard.run.hosts.engine import Pending, part_command
from steelyard.run.isolation.attempt import attempt, installed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from steelyard.run.isolation.attempt import Attempt

ARRAYS_NAME: Final = "slurm.json"
ARRAYS_SCHEMA: Final = "steelyard/slurm/1"
USUAL_ARRAY: Final = 1001
"""``MaxArraySize`` where the controller does not say it."""
ANSWER_S: Final = 60.0
AGAIN_S: Final = 10.0
"""Between two attempts to submit what was not taken."""
FIXED: Final = ("--array", "--job-name", "--output", "--error", "--wrap", "--parsable")
"""What Steelyard says to sbatch itself."""
PARTITION: Final = "--partition"
NODES: Final = "--nodes"
NODE_LIST: Final = "--nodelist"
EXCLUDE: Final = "--exclude"
CONSTRAINT: Final = "--constraint"
_LONG: Final = {
    "-A": "--account",
    "-C": CONSTRAINT,
    "-J": "--job-name",
    "-N": NODES,
    "-a": "--array",
    "-e": "--error",
    "-o": "--output",
    "-p": PARTITION,
    "-t": "--time",
    "-w": NODE_LIST,
    "-x": EXCLUDE,
}
"""Short names of the options that are read here; each has a value."""
_LOST: Final = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT"})
"""States in which Slurm waits for an administrator."""
_HELD: Final = "requeued held"
"""End of the reason for such a wait where the state does not say it: a prolog failed."""
_AWAY: Final = (
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted or received",
    "temporarily unable to accept job",
)
"""What sbatch says, whatever it was asked, of a controller that does not answer or has too many jobs."""


@dataclass(frozen=True, slots=True)
class Array:
    """Parts that were submitted together.

    Parameters
    ----------
    name : str
        Name of the job, which nothing else has.
    parts : tuple of str
        Name of the part of each task.
    """

    name: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Submitted:
    """What was submitted, or was going to be.

    Parameters
    ----------
    arrays : tuple of Array
        In order.
    """

    arrays: tuple[Array, ...] = ()
    schema: str = ARRAYS_SCHEMA


class SlurmEngine:
    """Places parts by ``sbatch --array --exclusive``.

    What is submitted is written down before, so that a later process finds it again by the name of its job.
    Parts wait here while the controller is away, or takes no more jobs of this user's and has some.

    Parameters
    ----------
    words : sequence of str
        Options of sbatch: partition, account, constraint, time.
    folder : Path
        Folder of the parts, which all nodes see at the same place.

    Raises
    ------
    UsageError
        If an option has no value.
    CapabilityError
        If Slurm is not installed, does not answer, or an option is one that Steelyard sets itself.
    """

    is_here: Final = False

    def __init__(self, words: Sequence[str], folder: Path) -> None:
        words = spelled_out(words)
        taken = [word for word in words if word.partition("=")[0] in FIXED]
        if taken:
            message = f"cannot give `{taken[0]}` to sbatch: Steelyard sets it itself"
            hint = "give options that say where and how long, e.g. slurm:PARTITION --account=A --time=60"
            raise CapabilityError(message, hint=hint, code="capability.slurm")
        for program in ("sbatch", "squeue", "scancel", "sinfo", "scontrol"):
            if installed(program) is None:
                message = f"cannot place runs by Slurm: `{program}` is not installed"
                hint = "run this on a login node of the cluster"
                raise CapabilityError(message, hint=hint, code="capability.slurm")
        self._words = tuple(words)
        self._folder = folder
        self._arrays = _read(folder / ARRAYS_NAME)
        self._waiting: list[tuple[Path, tuple[str, ...]]] = []
        self._has_others = False
        self._not_taken = ""
        self._again_s = 0.0
        self._width = self._largest = 0
        self._anywhere: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Nodes that could take a part now or later."""
        return self.width

    @property
    def width(self) -> int:
        """Nodes that could take a part now or later; as before while the controller does not answer."""
        answering = self._nodes("--responding", known=self._width)
        self._width = len(self._chosen(answering)) or self._width or 1
        return self._width

    @property
    def names(self) -> tuple[str, ...]:
        """Nodes of the partition and of `--nodelist`, without `--exclude`, that meet `--constraint`.

        Raises
        ------
        UsageError
            If one of the list is not there.
        """
        nodes = self._nodes()
        if absent := [name for name in self._expanded(NODE_LIST) if name not in nodes]:
            message = f"`{NODE_LIST}` names the node `{absent[0]}`, which is not there"
            raise UsageError(message, hint=f"nodes: {', '.join(nodes)}", code="usage.placement")
        return self._chosen(nodes)

    def _chosen(self, nodes: Iterable[str]) -> tuple[str, ...]:
        named, excluded = (self._expanded(option) for option in (NODE_LIST, EXCLUDE))
        return tuple(name for name in nodes if name not in excluded and (not named or name in named))

    def _nodes(self, *words: str, known: int = 0) -> tuple[str, ...]:
        partition = [word for word in self._words if word.startswith(f"{PARTITION}=")]
        said = self._ask(["sinfo", "--noheader", "--Node", "--format=%N %f", *words, *partition], known=known)
        wanted = self._given(CONSTRAINT)
        lines = (line.split() for line in (said or "").splitlines())
        return tuple(dict.fromkeys(name for name, *features in lines if is_met(wanted, *features)))

    def _given(self, option: str) -> str:
        values = [word.partition("=")[2] for word in self._words if word.startswith(f"{option}=")]
        return values[-1] if values else ""

    def _expanded(self, option: str) -> tuple[str, ...]:
        given = self._given(option)
        if not given:
            return ()
        return tuple((self._ask(["scontrol", "show", "hostnames", given], known=0) or "").split())

    def place(self, parts: Sequence[Path], hosts: Sequence[str] = (), /) -> None:
        """Submit parts, in as many arrays as the site's limit demands.

        Raises
        ------
        RunError
            If sbatch refuses all of them.
        """
        self._waiting += [(part, tuple(hosts)) for part in parts]
        self._submit_waiting()

    def pending(self) -> Pending | None:
        """Give the parts whose task Slurm still has or that wait; ``None`` while nobody answers.

        Raises
        ------
        RunError
            If sbatch refuses what waits, and Slurm has nothing of this study that could end before.
        """
        found: set[str] = set()
        reasons: dict[str, None] = {}
        if self._arrays:
            names = ",".join(array.name for array in self._arrays)
            command = ["squeue", "--noheader", "--array", f"--name={names}", "--format=%j|%K|%i|%T|%r"]
            said = attempt(command, timeout_s=ANSWER_S)
            if not said.succeeded:
                return None
            self._read_queue(said.output, found, reasons)
        # An answer of sbatch may have been lost and the job be there.
        self._waiting = [each for each in self._waiting if each[0].name not in found]
        waiting = {part.name for part, _ in self._waiting}
        self._has_others = bool(found)
        if self._waiting and time.monotonic() >= self._again_s:
            self._submit_waiting()
        if self._waiting:
            reasons[self._not_taken] = None
        return Pending(frozenset(found | waiting), tuple(reasons))

    def _read_queue(self, output: str, found: set[str], reasons: dict[str, None]) -> None:
        """Add the parts that are in the queue, and why they wait there; bring them on where that is known."""
        parts_of = {array.name: array.parts for array in self._arrays}
        for line in output.splitlines():
            name, task, job, state, reason = (line.split("|", 4) + [""] * 4)[:5]
            if name not in parts_of or not task.isdecimal():
                continue
            if state in _LOST or reason.endswith(_HELD):
                attempt(["scancel", job], timeout_s=ANSWER_S)
                continue
            found.add(parts_of[name][int(task)])
            if reason == "BeginTime":
                # Slurm holds what it queued again for two minutes, since the node may be the cause.
                attempt(["scontrol", "update", f"JobId={job}", "StartTime=now"], timeout_s=ANSWER_S)
            elif state == "PENDING" and reason not in {"None", "Priority", "Resources"}:
                reasons[reason] = None

    def cancel(self) -> None:
        """Cancel every array, whatever ends this process meanwhile; Slurm ends the tasks in order."""
        self._waiting.clear()
        names = [array.name for array in self._arrays]
        command = ["sh", "-c", 'for name; do scancel --name="$name"; done', "sh", *names]
        attempt(command, timeout_s=ANSWER_S * max(len(names), 1), goes_on=True)

    def _submit_waiting(self) -> None:
        """Submit what waits; what is not taken goes on waiting where that may pass."""
        while self._waiting:
            hosts, first = next(groupby(self._waiting[: self._largest_array()], lambda each: each[1]))
            parts = [part for part, _ in first]
            said = self._submit(parts, hosts)
            if said.succeeded:
                del self._waiting[: len(parts)]
                self._has_others = True
                continue
            is_away = said.exit_code is None or any(words in said.error for words in _AWAY)
            if not self._has_others and not is_away:
                raise _refused(said)
            self._not_taken = f"sbatch: {said.last_words}"
            self._again_s = time.monotonic() + AGAIN_S
            return

    def _submit(self, parts: Sequence[Path], hosts: Sequence[str]) -> Attempt:
        names = tuple(part.name for part in parts)
        # What was not taken keeps its name: an outage of a day must not make the list too long for squeue.
        if not self._arrays or self._arrays[-1].parts != names:
            self._arrays = (*self._arrays, Array(f"steelyard-{secrets.token_hex(6)}", names))
            hint = "give another folder with --out"
            write_document(self._folder / ARRAYS_NAME, Submitted(self._arrays), hint=hint)
        array = self._arrays[-1]
        *command, _ = part_command(self._folder)
        script = (
            "#!/bin/sh\n"
            f"set -- {shlex.join(array.parts)}\n"
            'shift "$SLURM_ARRAY_TASK_ID"\n'
            f'exec {shlex.join(command)} {shlex.quote(str(self._folder))}/"$1"\n'
        )
        words = [
            "sbatch",
            "--parsable",
            f"--array=0-{len(parts) - 1}",
            "--exclusive",
            "--requeue",
            "--open-mode=append",
            f"--job-name={array.name}",
            f"--output={self._folder}/slurm-%A_%a.txt",
            *(self._words_for(hosts) if hosts else self._words_anywhere()),
        ]
        return attempt(words, timeout_s=ANSWER_S, text=script)

    def _words_for(self, hosts: Sequence[str]) -> tuple[str, ...]:
        """Give the options of jobs that have certain nodes, in place of what is said about nodes."""
        about_nodes = (NODE_LIST, EXCLUDE, NODES)
        others = (word for word in self._words if word.partition("=")[0] not in about_nodes)
        return (*others, f"{NODES}={len(hosts)}", f"{NODE_LIST}={','.join(hosts)}")

    def _words_anywhere(self) -> tuple[str, ...]:
        """Give the options of jobs that have one node: of a list of nodes, sbatch gives each job all."""
        if not self._anywhere and len(self._expanded(NODE_LIST)) > 1:
            kept = self.names
            others = ",".join(name for name in self._nodes() if name not in kept)
            words = (word for word in self._words if word.partition("=")[0] not in (NODE_LIST, EXCLUDE))
            self._anywhere = (*words, f"{NODES}=1", *([f"{EXCLUDE}={others}"] if others else []))
        return self._anywhere or self._words

    def _largest_array(self) -> int:
        """Give the site's limit, which is asked for once."""
        if not self._largest:
            said = self._ask(["scontrol", "show", "config"], known=0) or ""
            found = re.search(r"^MaxArraySize\s*=\s*(\d+)", said, re.MULTILINE)
            # Slurm allows no index as large as that.
            self._largest = max(int(found[1]) if found else USUAL_ARRAY, 1)
        return self._largest

    @staticmethod
    def _ask(command: Sequence[str], *, known: int) -> str | None:
        """Give what a program of Slurm says, nothing where it fails and an earlier answer is known."""
        said = attempt(command, timeout_s=ANSWER_S)
        if said.succeeded:
            return said.output
        if known:
            return None
        message = f"cannot reach Slurm: `{command[0]}`: {said.last_words}"
        hint = "does `squeue` answer on this host?"
        raise CapabilityError(message, hint=hint, code="capability.slurm")


def spelled_out(words: Iterable[str]) -> tuple[str, ...]:
    """Write the options of sbatch that are read here in one way, whichever of its ways they were given in.

    Raises
    ------
    UsageError
        If one has no value.

    Examples
    --------
    >>> spelled_out(["-w", "n1", "-pmain", "--exclude", "n2", "--time=5", "--mem", "2G"])
    ('--nodelist=n1', '--partition=main', '--exclude=n2', '--time=5', '--mem', '2G')
    """
    found, left = [], iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        if word[:2] in _LONG:
            name, value = _LONG[word[:2]], word[2:]
        elif name not in _LONG.values():
            found.append(word)
            continue
        value = value or ("" if equals else next(left, ""))
        if not value:
            message = f"cannot give `{word}` to sbatch: it has no value"
            raise UsageError(message, hint=f"write `{name}=VALUE`", code="usage.placement")
        found.append(f"{name}={value}")
    return tuple(found)


def is_met(constraint: str, features: str = "") -> bool:
    """Tell whether a node with such features meets a constraint; what says more than that is left to Slurm.

    Examples
    --------
    >>> is_met("fast&big", "big,fast"), is_met("fast|big", "big"), is_met("fast", "(null)"), is_met("[a|b]")
    (True, True, False, True)
    """
    if not re.fullmatch(r"[\w.-]+([&,][\w.-]+)*|[\w.-]+(\|[\w.-]+)*", constraint, re.ASCII):
        return True
    there = features.split(",")
    return any(set(re.split("[&,]", each)) <= set(there) for each in constraint.split("|"))


def _refused(said: Attempt) -> RunError:
    message = f"cannot submit to Slurm: {said.last_words}"
    hint = (
        "check partition, account and time: steelyard run STUDY --on 'slurm:PARTITION --account=A --time=60'"
    )
    return RunError(message, hint=hint, code="run.slurm")


def _read(path: Path) -> tuple[Array, ...]:
    if not path.exists():
        return ()
    hint = "remove it to place everything again; cancel what Slurm still has of this study before"
    return read_document(path, Submitted, ARRAYS_SCHEMA, absent=hint, damaged=hint).arrays
