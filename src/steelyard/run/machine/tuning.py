"""Reversible machine settings: journalled before the first change, restored even after SIGKILL."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.errors import CapabilityError
from steelyard.run.machine import journal as journals
from steelyard.run.machine.settings import SETTINGS, Setting, read_value, same_value
from steelyard.run.machine.settings import setting as named_setting
from steelyard.run.state import machine_state_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class SettingState:
    """A setting as it is: its values now, the wanted one, or why this host does not have it."""

    name: str
    purpose: str
    values: tuple[str, ...]
    wanted: str
    unavailable: str | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether nothing would have to be changed."""
        return bool(self.values) and all(same_value(value, self.wanted) for value in self.values)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A value that could not be set, with the reason in words."""

    setting: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Tuned:
    """What a tuning found and did; stored in the provenance.

    Parameters
    ----------
    changed : tuple of Change
        What was changed, with the original values.
    kept : tuple of str
        Settings that were as wanted.
    refused : tuple of Refusal
        What could not be changed, with the reason.
    """

    changed: tuple[journals.Change, ...]
    kept: tuple[str, ...]
    refused: tuple[Refusal, ...]


class Outcome(StrEnum):
    """What became of one value on restoring."""

    RESTORED = "restored"
    """It was still as we set it; the original is back."""
    UNTOUCHED = "untouched"
    """It already was the original."""
    FOREIGN = "changed by somebody else"
    """It is neither ours nor the original and stays as it is."""
    REFUSED = "refused"
    """The host did not take the original back; the journal stays."""
    REBOOTED = "forgotten by a reboot"
    """The machine was started again since, which undoes such settings."""


@dataclass(frozen=True, slots=True)
class Restoration:
    """What became of one value: the change it undoes, the value found, and the reason if refused."""

    change: journals.Change
    outcome: Outcome
    found: str | None
    reason: str | None = None


class Tuning:
    """Changes machine settings and takes the changes back.

    Parameters
    ----------
    root : Path
        Root of the host, ``/`` but in tests.
    folder : Path or None
        Where journals are kept; by default the machine's state folder.
    """

    def __init__(self, root: Path = Path("/"), folder: Path | None = None) -> None:
        self._root = root
        self._folder = machine_state_folder() / "tuning" if folder is None else folder
        self._restorations: tuple[Restoration, ...] = ()

    @property
    def restorations(self) -> tuple[Restoration, ...]:
        """What became of each value when the last `applied` block ended."""
        return self._restorations

    def show(self, names: Iterable[str] | None = None) -> list[SettingState]:
        """Read settings without changing anything.

        Parameters
        ----------
        names : iterable of str or None
            Which; all by default.

        Raises
        ------
        UsageError
            If a name is unknown.
        """
        chosen = SETTINGS.values() if names is None else [named_setting(name) for name in names]
        return [self._state(setting) for setting in chosen]

    def available(self) -> list[str]:
        """Give the names of the settings that this host has."""
        return [state.name for state in self.show() if state.unavailable is None]

    @contextlib.contextmanager
    def applied(self, settings: Sequence[Setting | str]) -> Iterator[Tuned]:
        """Apply settings for the duration of a block.

        What cannot be changed is recorded as refused; it never ends the block.

        Parameters
        ----------
        settings : sequence of Setting or str
            Settings, or their names.

        Yields
        ------
        Tuned
            What was found and done.

        Raises
        ------
        UsageError
            If a name is unknown.
        CapabilityError
            If the journal cannot be written; then nothing is changed.
        """
        chosen = [named_setting(one) if isinstance(one, str) else one for one in settings]
        wanted, kept, refused = self._plan(chosen)
        if not wanted:
            yield Tuned((), tuple(kept), tuple(refused))
            return
        path = self._write_journal(tuple(wanted))
        try:
            changed = []
            for change in wanted:
                reason = write_value(self._root / change.path, change.wanted)
                if reason is None:
                    changed.append(change)
                else:
                    refused.append(Refusal(change.setting, change.path, reason))
            yield Tuned(tuple(changed), tuple(kept), tuple(refused))
        finally:
            self._restorations = tuple(self._undo(path))

    def restore_abandoned(self) -> list[Restoration]:
        """Undo every journal whose process is gone; those of living studies are left alone.

        Returns
        -------
        list of Restoration
            One per value, in the order of undoing; empty when nothing was left behind.

        Raises
        ------
        DataError
            If a journal is damaged.
        """
        done: list[Restoration] = []
        for path in journals.find_journals(self._folder):
            if journals.read_journal(path).is_abandoned():
                done += self._undo(path)
        return done

    def _state(self, setting: Setting) -> SettingState:
        files = setting.files(self._root)
        values = tuple(dict.fromkeys(value for value in map(read_value, files) if value is not None))
        unavailable = None
        if not files:
            unavailable = "this host has no such setting"
        elif not values:
            unavailable = f"cannot read `{files[0]}`"
        return SettingState(setting.name, setting.purpose, values, setting.wanted, unavailable)

    def _plan(self, chosen: Iterable[Setting]) -> tuple[list[journals.Change], list[str], list[Refusal]]:
        wanted: list[journals.Change] = []
        kept: list[str] = []
        refused: list[Refusal] = []
        for setting in chosen:
            state = self._state(setting)
            if state.unavailable is not None:
                refused.append(Refusal(setting.name, "", state.unavailable))
            elif state.is_wanted:
                kept.append(setting.name)
            for file in setting.files(self._root):
                value = read_value(file)
                if value is not None and not same_value(value, setting.wanted):
                    relative = str(file.relative_to(self._root))
                    wanted.append(journals.Change(setting.name, relative, value, setting.wanted))
        return wanted, kept, refused

    def _write_journal(self, changes: tuple[journals.Change, ...]) -> Path:
        try:
            return journals.write_journal(self._folder, journals.own_journal(self._root, changes))
        except OSError as error:
            message = f"cannot write the tuning journal to `{self._folder}`: {error.strerror}"
            hint = "make the folder writable, or run without tuning; without a journal nothing is changed"
            raise CapabilityError(message, hint=hint, code="capability.journal") from error

    def _undo(self, path: Path) -> list[Restoration]:
        journal = journals.read_journal(path)
        rebooted = journal.boot_id != journals.boot_id()
        done = [
            Restoration(change, Outcome.REBOOTED, None)
            if rebooted
            else _undo_change(Path(journal.root), change)
            for change in reversed(journal.changes)
        ]
        if all(one.outcome is not Outcome.REFUSED for one in done):
            path.unlink(missing_ok=True)
        return done


def write_value(path: Path, value: str) -> str | None:
    """Write a value and give the reason if the host did not take it."""
    try:
        # One write call, unbuffered: the kernel takes or refuses it as a whole.
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        return error.strerror or str(error)
    found = read_value(path)
    if found is None or not same_value(found, value):
        return f"the host keeps `{found}`"
    return None


def _undo_change(root: Path, change: journals.Change) -> Restoration:
    path = root / change.path
    found = read_value(path)
    if found is not None and same_value(found, change.original):
        return Restoration(change, Outcome.UNTOUCHED, found)
    if found is None or not same_value(found, change.wanted):
        return Restoration(change, Outcome.FOREIGN, found)
    reason = write_value(path, change.original)
    return Restoration(change, Outcome.RESTORED if reason is None else Outcome.REFUSED, found, reason)


@contextlib.contextmanager
def idle_states_held(root: Path = Path("/")) -> Iterator[str | None]:
    """Keep the CPUs out of deep idle states for the duration of a block.

    The kernel drops the request when the device is closed, so a killed process leaves nothing behind.

    Parameters
    ----------
    root : Path
        Root of the host.

    Yields
    ------
    str or None
        Why the request could not be made, ``None`` when it holds.
    """
    path = root / "dev" / "cpu_dma_latency"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError as error:
        yield f"`{path}`: {error.strerror}"
        return
    try:
        # SOURCE: Documentation/power/pm_qos_interface.rst: a 32-bit number of microseconds.
        os.write(descriptor, (0).to_bytes(4, "little"))
        yield None
    finally:
        os.close(descriptor)
