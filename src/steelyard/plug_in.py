"""Entry points: how studies, isolation technologies and importers are found, Steelyard's own and plug-ins.

There is one registry a group, and Steelyard's own package is in it like any other. A package that cannot be
used costs what it offers and nothing else: an error names it when it is asked for, and ``doctor`` lists it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final, Generic, TypeVar, cast

from steelyard.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from importlib.metadata import EntryPoint

OWN: Final = "steelyard"
"""The package whose names no other can take."""

STUDY_GROUP: Final = "steelyard.studies"
ISOLATION_GROUP: Final = "steelyard.isolations"
IMPORTER_GROUP: Final = "steelyard.importers"

UNLOADED: Final = (Exception, SystemExit)
"""Whatever a foreign module raises while it is imported is its fault, and is said as such."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PlugIn:
    """Something that another package offers.

    Parameters
    ----------
    kind, name : str
        What it is, as in ``study``, and what it is called.
    package, version : str
        Who offers it.
    reason, repair : str or None
        Why it cannot be used, and what to do about it; ``None`` if it can.
    """

    kind: str
    name: str
    package: str
    version: str
    reason: str | None = None
    repair: str | None = None


@dataclass(frozen=True, slots=True)
class Registry(Generic[T]):
    """What the installed packages offer in one group of entry points.

    Parameters
    ----------
    group : str
        Name of the group.
    kind : str
        What each is, for errors.
    fault : callable
        Takes the name of an entry point and what it gave; says why that cannot be used, or ``None``.
    """

    group: str
    kind: str
    fault: Callable[[str, object], str | None]

    def names(self) -> tuple[str, ...]:
        """Give every name, Steelyard's own first; nothing is loaded."""
        return tuple(self._offers())

    def find(self, name: str) -> T | None:
        """Load what has a name; ``None`` if nothing has.

        Raises
        ------
        CapabilityError
            If it cannot be used; the message names the package.
        """
        offers = self._offers().get(name)
        return None if offers is None else self._load(offers)

    def usable(self) -> dict[str, T]:
        """Load all that can be used, by name."""
        found = {}
        for name, offers in self._offers().items():
            try:
                found[name] = self._load(offers)
            except CapabilityError:
                if _is_own(offers[0]):
                    raise
        return found

    def plug_ins(self) -> list[PlugIn]:
        """Give what other packages offer, with the reason for each that cannot be used."""
        return [
            self._examined(each, offers)
            for offers in self._offers().values()
            for each in offers
            if not _is_own(each)
        ]

    def unusable(self, name: str, reason: str) -> CapabilityError:
        """Give the error for something that was found, and fails when it is used."""
        return self._error(self._offers()[name][0], reason)

    def _offers(self) -> dict[str, list[EntryPoint]]:
        """Give the entry points by name; one of our own stands before all others of its name."""
        found: dict[str, list[EntryPoint]] = {}
        for each in sorted(entry_points(group=self.group), key=lambda one: not _is_own(one)):
            found.setdefault(each.name, []).append(each)
        return found

    def _examined(self, entry: EntryPoint, offers: list[EntryPoint]) -> PlugIn:
        reason = repair = None
        try:
            if _is_own(offers[0]):
                raise self._error(entry, f"the name `{entry.name}` belongs to Steelyard")
            self._load(offers)
        except CapabilityError as error:
            reason, repair = error.message, error.hint
        return PlugIn(self.kind, entry.name, _package(entry), _version(entry), reason, repair)

    def _load(self, offers: list[EntryPoint]) -> T:
        entry, *others = offers
        if others and not _is_own(entry):
            packages = ", ".join(f"`{_package(each)} {_version(each)}`" for each in offers)
            message = f"cannot use {self.kind} `{entry.name}`: several packages offer that name: {packages}"
            raise CapabilityError(
                message, hint=f"keep one of them: pip uninstall {_package(entry)}", code="capability.plug-in"
            )
        try:
            offered = entry.load()
        except UNLOADED as error:
            raise self._error(entry, f"{type(error).__name__}: {error}") from error
        fault = self.fault(entry.name, offered)
        if fault is not None:
            raise self._error(entry, f"`{entry.value}` {fault}")
        return cast("T", offered)

    def _error(self, entry: EntryPoint, reason: str) -> CapabilityError:
        package = _package(entry)
        named = f"{self.kind} `{entry.name}` of the package `{package} {_version(entry)}`"
        message = f"cannot use {named}: {reason}"
        hint = f"ask its authors for a repaired version, or remove it: pip uninstall {package}"
        return CapabilityError(message, hint=hint, code="capability.plug-in")


def package_versions(names_by_group: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """Give the versions of the packages, other than Steelyard, that offer what has these names."""
    return {
        _package(each): _version(each)
        for group, names in names_by_group.items()
        for name in names
        for each in entry_points(group=group, name=name)
        if not _is_own(each)
    }


def fault_of(name: str, offered: object, kind: type) -> str | None:
    """Say why an object cannot be used under a name: it is of another type, or calls itself otherwise.

    Examples
    --------
    >>> fault_of("mine", 1, str)
    'is of type `int`, not `builtins.str`'
    """
    if not isinstance(offered, kind):
        return f"is of type `{type(offered).__name__}`, not `{kind.__module__}.{kind.__qualname__}`"
    own = getattr(offered, "name", name)
    return None if own == name else f"calls itself `{own}`; entry point and object must have one name"


def _is_own(entry: EntryPoint) -> bool:
    return _package(entry) == OWN


def _package(entry: EntryPoint) -> str:
    return "unknown" if entry.dist is None else entry.dist.name


def _version(entry: EntryPoint) -> str:
    return "" if entry.dist is None else entry.dist.version
