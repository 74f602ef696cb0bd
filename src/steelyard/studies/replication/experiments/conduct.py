"""Conducts one run: reads what was asked, calls the experiment, writes what happened."""

from __future__ import annotations

import json
import os
import signal
import time
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError, DataError, RunError, SteelyardError
from steelyard.studies.replication.devices.placement import artefacts_folder
from steelyard.studies.replication.devices.roles import place_of
from steelyard.studies.replication.experiments.files import EXPERIMENT_FILE, FORMAT, HEADER_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import FrameType

    from steelyard.studies.replication.devices.interface import Place

MODULES: Final = {
    "e1": "micro",
    "e2": "monitoring",
    "causes": "monitoring",
    "e3": "service",
    "e4": "macro",
}
"""Module of this package by experiment; each has ``def conduct(run: Conducted) -> None``."""
REPAIR: Final = "make deps-replication"
COMPLETED: Final = "completed"
FAILED: Final = "failed"
BROKEN: Final = "broken"
"""Outcome of a run that is no result: it is to be repeated once the reason is gone."""


class BenchmarkFailed(Exception):  # noqa: N818 - no error of ours: the result is that it failed
    """The benchmark did what it could and failed, which is a result: the run is complete.

    Parameters
    ----------
    reason : str
        Why, in one sentence.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Conducted:
    """One run as its experiment sees it.

    Parameters
    ----------
    asked : Mapping
        ``experiment.json``.
    folder : Path
        Where the files of the run go; see `files.write_table`.
    """

    def __init__(self, asked: Mapping[str, Any], folder: Path) -> None:
        self.asked = asked
        self.folder = folder
        self._header: dict[str, Any] = {
            "format": FORMAT,
            "is_complete": False,
            "outcome": BROKEN,
            "clock": "monotonic",
            "start_ns": time.monotonic_ns(),
            "measure_start_ns": None,
            "end_ns": None,
            "devices": {},
            "roles": {},
            "software": {},
            "applied": [],
            "missing": [],
        }

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What the experiment's program is given."""
        found: Mapping[str, Any] = self.asked["configuration"].get("parameters", {})
        return found

    @contextmanager
    def place(self, role: str) -> Iterator[Place]:
        """Make the place of a role; what is known of its device goes to the header."""
        with place_of(self.asked, role) as place:
            self._keep_facts(role, place.facts())
            yield place

    def says(self, key: str, value: object) -> None:
        """Put something into the header; objects and lists that are there already are added to."""
        there = self._header.get(key)
        if isinstance(there, dict) and isinstance(value, dict):
            there.update(value)
        elif isinstance(there, list) and isinstance(value, list):
            there.extend(one for one in value if one not in there)
        else:
            self._header[key] = value

    def measure_starts(self) -> None:
        """Stamp the begin of what is measured."""
        self._header["measure_start_ns"] = time.monotonic_ns()

    def missing(self, reason: str) -> None:
        """Note what could not be had, and why."""
        self.says("missing", [reason])

    def applied(self, what: str) -> None:
        """Note what was set on a device for this run."""
        self.says("applied", [what])

    def log(self, role: str) -> Path:
        """Give the file for what the program of a role writes."""
        return self.folder / f"log.{role}.txt"

    def artefact(self, name: str) -> Path:
        """Give something that ``make deps-replication`` built, as a path of this host.

        Raises
        ------
        CapabilityError
            If it was not built.
        """
        path = artefacts_folder() / name
        if not path.exists():
            experiment = self.asked["experiment"]
            message = f"experiment `{experiment}` needs `{path}`, which was not built"
            raise CapabilityError(message, hint=REPAIR, code="capability.replication")
        return path

    def ends(self, outcome: str, reason: str = "") -> None:
        """Write the header, whole or not at all."""
        self._header.update(outcome=outcome, is_complete=outcome != BROKEN, end_ns=time.monotonic_ns())
        if reason:
            self._header["reason"] = reason
        text = json.dumps(self._header, indent=1) + "\n"
        temporary = self.folder / f"{HEADER_FILE}.{os.getpid()}"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(self.folder / HEADER_FILE)

    def _keep_facts(self, role: str, facts: Mapping[str, Any]) -> None:
        of_role = {name: facts[name] for name in _OF_ROLE if name in facts}
        of_device = {name: value for name, value in facts.items() if name not in _OF_ROLE}
        self.says("roles", {role: {"device": facts["device"], **of_role}})
        self.says("devices", {facts["device"]: of_device})
        for key in ("applied", "missing"):
            self.says(key, [f"{facts['device']}: {one}" for one in facts.get(key, ())])


_OF_ROLE: Final = (
    *("role", "key", "address", "container", "network"),
    *("storage_kind", "storage_source", "storage_free_kib"),
)


def read_asked(folder: Path) -> dict[str, Any]:
    """Read ``experiment.json`` of a folder.

    Raises
    ------
    DataError
        If it is missing, damaged, or not of this version's format.
    """
    path = folder / EXPERIMENT_FILE
    hint = "`steelyard run replication` writes it"
    try:
        asked = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"cannot read `{path}`: {getattr(error, 'strerror', None) or error}"
        raise DataError(message, hint=hint, code="experiment.file") from error
    found = asked.get("format") if isinstance(asked, dict) else None
    if found != FORMAT:
        message = f"`{path}` has the format `{found}`; known: `{FORMAT}`"
        raise DataError(message, hint=hint, code="experiment.format")
    lacking = [key for key in ("experiment", "configuration", "setting", "devices") if key not in asked]
    if lacking:
        message = f"`{path}` lacks {', '.join(f'`{key}`' for key in lacking)}"
        raise DataError(message, hint=hint, code="experiment.file")
    known: dict[str, Any] = asked
    return known


def conduct(folder: Path) -> str:
    """Conduct the run of a folder, and give its outcome; the header says it too.

    Raises
    ------
    SteelyardError
        If the run is no result. Its header is written nevertheless.
    """
    run = Conducted(read_asked(folder), folder)
    try:
        with _ended_by_signals():
            _experiment(str(run.asked["experiment"])).conduct(run)
    except BenchmarkFailed as failure:
        run.ends(FAILED, failure.reason)
        return FAILED
    except SteelyardError as error:
        run.ends(BROKEN, error.message)
        raise
    except BaseException as error:
        run.ends(BROKEN, f"{type(error).__name__}: {error}")
        raise
    run.ends(COMPLETED)
    return COMPLETED


def _experiment(name: str) -> Any:
    if name not in MODULES:
        message = f"unknown experiment `{name}`; known: {', '.join(MODULES)}"
        raise DataError(message, code="experiment.name")
    module = f"{__package__}.{MODULES[name]}"
    if find_spec(module) is None:
        message = f"this installation has no part that conducts experiment `{name}`"
        raise CapabilityError(message, hint=REPAIR, code="capability.replication")
    return import_module(module)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Leave by an exception when asked to end, so that everything made is removed."""

    def leave(number: int, _frame: FrameType | None) -> None:
        # Asked twice, it is removed nevertheless.
        for one in before:
            signal.signal(one, signal.SIG_IGN)
        message = f"the run was interrupted by {signal.Signals(number).name}"
        raise RunError(message, hint="repeat the command", code="run.interrupted")

    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        for one in before:
            signal.signal(one, leave)
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
