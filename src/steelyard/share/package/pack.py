"""``steelyard pack``: a result folder becomes one archive that others can verify and run again."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.errors import DataError, UsageError
from steelyard.model.plan import PLAN_NAME, read_plan
from steelyard.record.provenance import read_provenance
from steelyard.share.about import About
from steelyard.share.anonymous.names import REPLACED, WHY_REPLACED, anonymous_copy, ids_of, private_texts
from steelyard.share.anonymous.private_names import names_here, private_names
from steelyard.share.complete_result import left_alone, left_out, require_complete
from steelyard.share.package.archive import UNWATCHED, write_archive
from steelyard.share.package.parts import package_parts
from steelyard.share.package.statement import (
    BASE_IMAGE,
    IMAGE,
    Statement,
    installed_licences,
    installed_wheel,
    wheel_of,
)
from steelyard.share.package.workload_sources import is_ours
from steelyard.share.verify import examine

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.record.provenance import Provenance
    from steelyard.share.package.archive import Watcher


@dataclass(frozen=True, slots=True)
class Packing:
    """How a result is packed.

    Parameters
    ----------
    about : About
        What people say of it.
    is_checked : bool
        Whether every finding is computed again first.
    is_anonymous : bool
        Whether names and ids of the host and places of its user are replaced, and a package is refused that
        names people, other hosts, addresses or keys all the same.
    wheel : Path or None
        Wheel of Steelyard that the package carries for its container.
    base_image : str
        Image from which the container is made, by its digest.
    """

    about: About = field(default_factory=About)
    is_checked: bool = True
    is_anonymous: bool = False
    wheel: Path | None = None
    base_image: str = BASE_IMAGE


@dataclass(frozen=True, slots=True)
class Packed:
    """What was packed.

    Parameters
    ----------
    files : int
        How many.
    byte_count : int
        Their size.
    left_out : dict
        What of the result folder is not in the package, and why.
    private : dict
        Names of this user that the package holds, with the files that hold them.
    not_compared : list of str
        What this installation could not compare before it packed.
    """

    files: int
    byte_count: int
    left_out: dict[str, str]
    private: dict[str, tuple[str, ...]]
    not_compared: list[str]


def pack(result: Path, package: Path, packing: Packing | None = None, watcher: Watcher = UNWATCHED) -> Packed:
    """Pack a result folder.

    Parameters
    ----------
    result : Path
        Complete result folder. It is not changed.
    package : Path
        Archive to write; it must not exist.
    packing : Packing or None
        How; nothing is said of it by default, and every finding is computed again.
    watcher : Watcher
        Told how far it is.

    Raises
    ------
    DataError
        If the folder is not a complete result, its findings do not follow from its raw data, it names its
        user and must not, or the archive cannot be written. Nothing is left then.
    UsageError
        If the archive exists already, or wheel or image are none.
    """
    how = packing or Packing()
    if IMAGE.fullmatch(how.base_image) is None:
        message = f"`{how.base_image}` does not name an image by its digest"
        hint = f"for example {BASE_IMAGE}"
        raise UsageError(message, hint=hint, code="usage.image")
    with left_alone(result), ExitStack() as stack:
        plan, provenance = require_complete(result)
        not_compared = _confirmed(result) if how.is_checked else []
        absent, private = left_out(result), private_texts(plan, provenance)
        packed = result
        if how.is_anonymous:
            packed = stack.enter_context(anonymous_copy(result))
            private |= private_texts(read_plan(packed / PLAN_NAME), read_provenance(packed))
            absent[REPLACED] = WHY_REPLACED
        statement = Statement(
            how.about.model_dump(mode="json", exclude_unset=True),
            is_checked=how.is_checked,
            left_out=absent,
            licences=installed_licences(provenance.versions),
            wheel=_wheel(how, provenance),
            carries_wheel=how.wheel is not None,
            base_image=how.base_image,
        )
        parts = list(package_parts(packed, statement, how.wheel))
        wanted = {*names_here(), *private} - (frozenset() if how.is_anonymous else ids_of(provenance))
        named = private_names([part for part in parts if not is_ours(part.name)], sorted(wanted))
        if how.is_anonymous and named:
            raise _named(result, named)
        write_archive(package, parts, watcher)
    return Packed(len(parts), sum(part.byte_count for part in parts), absent, named, not_compared)


def _wheel(how: Packing, provenance: Provenance) -> dict[str, str] | None:
    if how.wheel is None:
        return installed_wheel()
    return wheel_of(how.wheel, provenance.versions.get("steelyard", ""))


def _confirmed(result: Path) -> list[str]:
    """Give what could not be compared of a result that is confirmed."""
    found = examine(result)
    problems = found.problems
    if problems:
        shown = "\n".join(f"  {problem}" for problem in problems[:5])
        message = f"cannot pack `{result}`: its findings do not follow from its raw data\n{shown}"
        hint = f"`steelyard verify {result}` lists everything; `--unchecked` packs it as it is"
        raise DataError(message, hint=hint, code="data.unconfirmed")
    return found.not_compared


def _named(result: Path, private: dict[str, tuple[str, ...]]) -> DataError:
    shown = "; ".join(f"`{name}` in {', '.join(files[:3])}" for name, files in private.items())
    message = f"cannot pack `{result}` anonymously: it names its user or host: {shown}"
    hint = (
        "commands and devices are part of the result, and only your home folder, Python and programs of "
        "Steelyard get placeholders: use names and folders that say nothing, or leave out `--anonymous`"
    )
    return DataError(message, hint=hint, code="data.private")
