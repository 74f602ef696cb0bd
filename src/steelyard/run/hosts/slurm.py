"""Parts of a study as tasks of Slurm's arrays, each alone on its node."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, RunError, unwritable
from steelyard.run.hosts.engine import Pending, part_command
from steelyard.run.isolation.attempt import attempt, installed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.run.isolation.attempt import Attempt

ARRAYS_NAME: Final = "slurm.json"
USUAL_ARRAY: Final = 1001
"""``MaxArraySize`` where the controller does not say it."""
ANSWER_S: Final = 60.0
FIXED: Final = (
    "--array",
    "-a",
    "--job-name",
    "-J",
    "--output",
    "-o",
    "--error",
    "-e",
    "--wrap",
    "--parsable",
)
"""What Steelyard says to sbatch itself."""
NODE_LIST: Final = "--nodelist"
EXCLUDE: Final = "--exclude"
_LOST: Final = frozenset({"REQUEUE_HOLD", "SPECIAL_EXIT"})
"""States in which Slurm waits for an administrator."""


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


class SlurmEngine:
    """Places parts by ``sbatch --array --exclusive``.

    What was submitted is written down before, so that a later process finds it again by the name of its job.

    Parameters
    ----------
    words : sequence of str
        Options of sbatch: partition, account, constraint, time.
    folder : Path
        Folder of the parts, which all nodes see at the same place.

    Raises
    ------
    CapabilityError
        If Slurm is not installed, does not answer, or an option is one that Steelyard sets itself.
    """

    is_here: Final = False

    def __init__(self, words: Sequence[str], folder: Path) -> None:
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

    @property
    def size(self) -> int:
        """Nodes that could take a part now or later."""
        return self.width

    @property
    def width(self) -> int:
        """Nodes that could take a part now or later."""
        return max(len(self._nodes("--responding")), 1)

    @property
    def names(self) -> tuple[str, ...]:
        """Nodes of the partition, those of `--nodelist` where that is given, without `--exclude`."""
        named, excluded = (self._expanded(option) for option in (NODE_LIST, EXCLUDE))
        return tuple(name for name in named or self._nodes() if name not in excluded)

    def _nodes(self, *words: str) -> tuple[str, ...]:
        chosen = [word for word in self._words if word.startswith(("--partition", "-p"))]
        said = self._ask(["sinfo", "--noheader", "--Node", "--format=%N", *words, *chosen])
        return tuple(dict.fromkeys(said.output.split()))

    def _expanded(self, option: str) -> tuple[str, ...]:
        given = [word.partition("=")[2] for word in self._words if word.startswith(f"{option}=")]
        if not given:
            return ()
        return tuple(self._ask(["scontrol", "show", "hostnames", given[-1]]).output.split())

    def place(self, parts: Sequence[Path], hosts: Sequence[str] = (), /) -> None:
        """Submit parts, in as many arrays as the site's limit demands.

        Raises
        ------
        RunError
            If sbatch refuses them.
        """
        most = self._largest_array()
        for begin in range(0, len(parts), most):
            self._submit(parts[begin : begin + most], hosts)

    def pending(self) -> Pending | None:
        """Give the parts whose task Slurm still has; ``None`` while the controller does not answer."""
        if not self._arrays:
            return Pending(frozenset())
        names = ",".join(array.name for array in self._arrays)
        command = ["squeue", "--noheader", "--array", f"--name={names}", "--format=%j|%K|%A|%T|%r"]
        said = attempt(command, timeout_s=ANSWER_S)
        if not said.succeeded:
            return None
        parts_of = {array.name: array.parts for array in self._arrays}
        found: set[str] = set()
        reasons: dict[str, None] = {}
        for line in said.output.splitlines():
            name, task, job, state, reason = (line.split("|", 4) + [""] * 4)[:5]
            if name not in parts_of or not task.isdecimal():
                continue
            if state in _LOST:
                attempt(["scancel", job], timeout_s=ANSWER_S)
                continue
            found.add(parts_of[name][int(task)])
            if reason == "BeginTime":
                # Slurm holds what it queued again for two minutes, since the node may be the cause.
                attempt(["scontrol", "update", f"JobId={job}", "StartTime=now"], timeout_s=ANSWER_S)
            elif state == "PENDING" and reason not in {"None", "Priority", "Resources"}:
                reasons[reason] = None
        return Pending(frozenset(found), tuple(reasons))

    def cancel(self) -> None:
        """Cancel every array; Slurm ends the tasks in order."""
        for array in self._arrays:
            attempt(["scancel", f"--name={array.name}"], timeout_s=ANSWER_S)

    def _submit(self, parts: Sequence[Path], hosts: Sequence[str]) -> None:
        array = Array(f"steelyard-{secrets.token_hex(6)}", tuple(part.name for part in parts))
        self._arrays = (*self._arrays, array)
        _write(self._folder / ARRAYS_NAME, self._arrays)
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
            *(self._words if not hosts else self._words_for(hosts)),
        ]
        said = attempt(words, timeout_s=ANSWER_S, text=script)
        if not said.succeeded:
            raise _refused(said)

    def _words_for(self, hosts: Sequence[str]) -> tuple[str, ...]:
        """Give the options of jobs that have certain nodes, in place of what is said about nodes."""
        about_nodes = (NODE_LIST, EXCLUDE, "--nodes")
        others = (word for word in self._words if word.partition("=")[0] not in about_nodes)
        return (*others, f"--nodes={len(hosts)}", f"{NODE_LIST}={','.join(hosts)}")

    def _largest_array(self) -> int:
        said = self._ask(["scontrol", "show", "config"])
        found = re.search(r"^MaxArraySize\s*=\s*(\d+)", said.output, re.MULTILINE)
        # Slurm allows no index as large as that.
        return max(int(found[1]) if found else USUAL_ARRAY, 1)

    @staticmethod
    def _ask(command: Sequence[str]) -> Attempt:
        said = attempt(command, timeout_s=ANSWER_S)
        if not said.succeeded:
            message = f"cannot reach Slurm: `{command[0]}`: {said.last_words}"
            hint = "does `squeue` answer on this host?"
            raise CapabilityError(message, hint=hint, code="capability.slurm")
        return said


def _refused(said: Attempt) -> RunError:
    message = f"cannot submit to Slurm: {said.last_words}"
    hint = (
        "check partition, account and time: steelyard run STUDY --on 'slurm:PARTITION --account=A --time=60'"
    )
    return RunError(message, hint=hint, code="run.slurm")


def _read(path: Path) -> tuple[Array, ...]:
    if not path.exists():
        return ()
    content = json.loads(path.read_text(encoding="utf-8"))
    return tuple(Array(each["name"], tuple(each["parts"])) for each in content)


def _write(path: Path, arrays: Sequence[Array]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(json.dumps([asdict(each) for each in arrays], indent=1), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, error, "give another folder with --out") from error
