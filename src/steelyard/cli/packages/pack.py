"""``steelyard pack``: a result folder as one archive that others verify and run again."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, dataclass
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import TYPE_CHECKING, Annotated, Final, TextIO

from cyclopts import Parameter

from steelyard.units import format_bytes

if TYPE_CHECKING:
    from steelyard.share.about import About
    from steelyard.share.package.pack import Packed

_AUTHOR: Final = re.compile(r"(?P<name>[^()]+?)\s*\((?P<orcid>[^()]+)\)")


@Parameter(name="*")
@dataclass(frozen=True)
class Said:
    """Description of the package; each option overrides the same key of `--about`.

    Parameters
    ----------
    about
        TOML file with title, description, authors, licence, lessons, see `docs/guides/packages.md`.
    title
        Title.
    author
        Name, or name and ORCID as in `Ada Lovelace (0000-0002-1825-0097)`; may be given several times.
    licence
        SPDX identifier, such as `CC-BY-4.0`.
    """

    about: Path | None = None
    title: str | None = None
    author: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = ()
    licence: str | None = None


_NOTHING: Final = Said()


@Parameter(name="*")
@dataclass(frozen=True)
class How:
    """How a result is packed.

    Parameters
    ----------
    anonymous
        Replace names and ids of the host with a pseudonym, and refuse a package that still names users,
        other hosts, addresses or keys.
    unchecked
        Do not recompute the findings first; the package says so.
    wheel
        Wheel of the Steelyard that recorded the result, which the package carries for its container; without
        it, whoever builds the container supplies one.
    base_image
        Base image of the container, by its digest, as in `docker.io/library/debian:trixie-slim@sha256:...`.
    """

    anonymous: Annotated[bool, Parameter(negative="")] = False
    unchecked: Annotated[bool, Parameter(negative="")] = False
    wheel: Path | None = None
    base_image: str | None = None


_PLAINLY: Final = How()


def pack(
    directory: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    said: Said = _NOTHING,
    how: How = _PLAINLY,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Pack a result folder into one archive that others can verify and run again.

    The archive is an RO-Crate (Process Run Crate): plan, study file, workload sources, a recipe for a
    container, environment, raw data, findings, report, citation, licence, and the hash of every file. It is
    written whole or not at all, and the same result gives the same bytes.

    Parameters
    ----------
    directory
        Complete result folder of any study; it is not changed.
    output
        Archive to write, usually `NAME.zip`; it must not exist.
    said
        Description of the package.
    how
        How it is packed.
    as_json
        Print one JSON object.

    Examples
    --------
    Pack a result for a colleague::

        steelyard pack results/night -o night.zip

    Pack it for publication::

        steelyard pack results/night -o night.zip --about about.toml --anonymous
    """
    from steelyard.share.package.archive import UNWATCHED  # noqa: PLC0415 - start-up time
    from steelyard.share.package.pack import Packing  # noqa: PLC0415 - start-up time
    from steelyard.share.package.pack import pack as pack_result  # noqa: PLC0415 - start-up time
    from steelyard.share.package.statement import BASE_IMAGE  # noqa: PLC0415 - start-up time

    packing = Packing(
        _about(said),
        is_checked=not how.unchecked,
        is_anonymous=how.anonymous,
        wheel=how.wheel,
        base_image=how.base_image or BASE_IMAGE,
    )
    watcher = ProgressLine(sys.stderr, "packing") if sys.stderr.isatty() else UNWATCHED
    packed = pack_result(directory, output, packing, watcher)
    sys.stderr.writelines(f"not compared: {each}\n" for each in packed.not_compared)
    size = output.stat().st_size
    if as_json:
        answer = {"package": str(output), "package_bytes": size, **asdict(packed)}
        sys.stdout.write(json.dumps(answer, indent=1, ensure_ascii=False) + "\n")
        return
    sys.stderr.writelines(f"{line}\n" for line in _remarks(packed))
    shown = f"{packed.files} files, {format_bytes(packed.byte_count)}, packed {format_bytes(size)}"
    sys.stdout.write(f"package {output}: {shown}\n")


def _about(said: Said) -> About:
    from steelyard.share.about import checked_about, read_about  # noqa: PLC0415 - start-up time

    content = read_about(said.about).model_dump(exclude_unset=True)
    if said.title is not None:
        content["title"] = said.title
    if said.licence is not None:
        content["licence"] = said.licence
    if said.author:
        content["authors"] = [_author(text) for text in said.author]
    return checked_about(content, "the description of the package")


def _author(text: str) -> dict[str, str]:
    match = _AUTHOR.fullmatch(text)
    return match.groupdict() if match else {"name": text}


def _remarks(packed: Packed) -> list[str]:
    lines = [f"left out: {name}: {why}" for name, why in packed.left_out.items()]
    for name, files in packed.private.items():
        shown = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")  # noqa: PLR2004
        lines.append(f"note: the package names `{name}`, in {shown}; `--anonymous` refuses that")
    return lines


class ProgressLine:
    """Shows on a terminal how far something is.

    Parameters
    ----------
    stream : TextIO
        The terminal.
    doing : str
        What is done.
    """

    def __init__(self, stream: TextIO, doing: str) -> None:
        self._stream = stream
        self._doing = doing
        self._shown = -1

    def packed(self, done_bytes: int, total_bytes: int) -> None:
        """Rewrite the line whenever another percent is done."""
        percent = 100 if total_bytes == 0 else 100 * done_bytes // total_bytes
        if percent != self._shown:
            self._shown = percent
            self._stream.write(f"\r{self._doing} {percent:3d} %" + ("\r\x1b[K" if percent == 100 else ""))  # noqa: PLR2004
            self._stream.flush()
