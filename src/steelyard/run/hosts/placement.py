"""Where runs are placed, as the command line says it: ``--on slurm:PARTITION --account=A``."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError, unwritable
from steelyard.run.hosts.fleet_file import read_fleet
from steelyard.run.hosts.local import LocalEngine
from steelyard.run.hosts.slurm import SlurmEngine
from steelyard.run.hosts.ssh_engine import SshEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from steelyard.run.hosts.engine import Engine
    from steelyard.run.hosts.fleet_file import Fleet

ALLOWED: Final = (
    "`local`, `local:PARTS_AT_A_TIME`; `slurm`, `slurm:PARTITION`, both with options of sbatch; "
    "`ssh:FILE`, with `--label=LABEL`"
)
LABEL: Final = "--label="
ENGINE_NAME: Final = "engine.txt"
MOST_PARTS: Final = 1024


def continued_placement(said: str | None, folder: Path, *, resume: bool) -> Callable[[Path], Engine] | None:
    """Read where runs are placed, and keep it with the parts: a study is resumed where it was begun.

    Parameters
    ----------
    said : str or None
        What the command line says.
    folder : Path
        Folder of the parts, which need not exist.
    resume : bool
        Whether what an earlier command said holds where this one says nothing.

    Raises
    ------
    UsageError
        As `read_placement`.
    """
    kept = folder / ENGINE_NAME
    text = said
    if said is None and resume and kept.exists():
        text = kept.read_text(encoding="utf-8")
    if text is None:
        return None
    make = read_placement(text)

    def begun(parts: Path) -> Engine:
        _keep(kept, _from_anywhere(text))
        return make(parts)

    return begun


def _keep(path: Path, text: str) -> None:
    """Write a file whole, or leave the older one: whoever writes it may be killed."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, error, "give another folder with --out") from error


def _from_anywhere(text: str) -> str:
    """Name a file of hosts by its whole path: a study may be resumed in another folder."""
    first, *words = shlex.split(text)
    name, _, where = first.partition(":")
    return shlex.join([f"{name}:{Path(where).absolute()}", *words]) if name == "ssh" else text


def read_placement(text: str) -> Callable[[Path], Engine]:
    """Read where runs are placed; give what makes the engine for the folder of the parts.

    Parameters
    ----------
    text : str
        ``local[:N]``, ``slurm[:PARTITION] [OPTIONS OF SBATCH]``, or ``ssh:FILE [--label=LABEL]``.

    Raises
    ------
    UsageError
        If it is something else.
    StudyFileError
        If a file of hosts is wrong.

    Examples
    --------
    >>> read_placement("cloud")
    Traceback (most recent call last):
    ...
    steelyard.errors.UsageError: cannot place runs on `cloud`: no such engine
    """
    hint = f"allowed: {ALLOWED}"
    try:
        first, *words = shlex.split(text) or [""]
    except ValueError as error:
        message = f"cannot read `--on {text}`: {error}"
        raise UsageError(message, hint=hint, code="usage.placement") from error
    name, colon, where = first.partition(":")
    if name == "slurm" and (where or not colon):
        partition = [f"--partition={where}"] if where else []
        return lambda folder: SlurmEngine([*partition, *words], folder)
    if name == "ssh" and where and all(word.startswith(LABEL) for word in words):
        fleet = _chosen(read_fleet(Path(where)), [word.removeprefix(LABEL) for word in words], text)
        return lambda folder: SshEngine(fleet, folder)
    width = int(where) if where.isdecimal() else 0 if colon else 1
    if name == "local" and not words and 1 <= width <= MOST_PARTS:
        return lambda folder: LocalEngine(width, folder)
    reason = "no such engine" if name not in {"slurm", "local", "ssh"} else "it cannot be read"
    message = f"cannot place runs on `{text}`: {reason}"
    raise UsageError(message, hint=hint, code="usage.placement")


def _chosen(fleet: Fleet, labels: Sequence[str], text: str) -> Fleet:
    hosts = tuple(host for host in fleet.hosts if set(labels) <= set(host.labels))
    if not hosts:
        message = f"cannot place runs on `{text}`: no host of the file has these labels"
        known = sorted({label for host in fleet.hosts for label in host.labels})
        raise UsageError(message, hint=f"labels: {', '.join(known) or 'none'}", code="usage.placement")
    return replace(fleet, hosts=hosts)
