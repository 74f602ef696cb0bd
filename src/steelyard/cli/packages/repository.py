"""``steelyard repository``: packages offered in a folder or on a server of static files."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import Annotated, Final

from cyclopts import Parameter

from steelyard.cli.packages.pack import ProgressLine

_REFUSED: Final = 1


def index(
    folder: Path,
    *,
    verify: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Write the index of a folder of packages.

    Writes `index.json` and `index.html`; any server of static files can then offer the folder. The exit
    code is 1 if a file was left out because it is not a package, or not confirmed.

    Parameters
    ----------
    folder
        Folder with packages (`*.zip`).
    verify
        Compute every finding of every package again, and offer only confirmed packages.

    Examples
    --------
    Offer the packages of a folder::

        steelyard repository index public
    """
    from steelyard.report.drawing.engine import NO_ENGINE, has_engine  # noqa: PLC0415 - start-up time
    from steelyard.share.repository.index import INDEX_NAME, make_index  # noqa: PLC0415 - start-up time

    if verify and not has_engine():
        sys.stderr.write(f"not compared: the chart engine inside each `report.html`: {NO_ENGINE}\n")
    found = make_index(folder, is_verified=verify)
    for name, reason in found.refused.items():
        sys.stderr.write(f"left out: {name}: {reason}\n")
    count = len(found.packages)
    noun = "package" if count == 1 else "packages"
    sys.stdout.write(f"index {folder / INDEX_NAME}: {count} {noun}\n")
    return _REFUSED if found.refused else 0


def list_packages(
    place: str, *, as_json: Annotated[bool, Parameter(name="--json", negative="")] = False
) -> None:
    """List the packages that a folder or a server offers.

    Parameters
    ----------
    place
        Folder with an index, or the address of one (http, https).
    as_json
        Print the entries of the index.

    Examples
    --------
    List the packages of a server::

        steelyard repository list https://example.org/packages
    """
    from steelyard.share.repository.fetching import fetch_index  # noqa: PLC0415 - start-up time
    from steelyard.share.repository.index import list_lines  # noqa: PLC0415 - start-up time

    packages = fetch_index(place)
    if as_json:
        sys.stdout.write(json.dumps([asdict(each) for each in packages], indent=1, ensure_ascii=False) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in list_lines(packages))


def fetch(
    place: str, name: str, *, output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None
) -> None:
    """Fetch a package from a folder or a server and check its hash.

    An interrupted transfer is continued. A file that differs from what the index says is deleted.

    Parameters
    ----------
    place
        Folder with an index, or the address of one (http, https).
    name
        Name of the package.
    output
        File to write; it must not exist. By default the name of the package, here.

    Examples
    --------
    Fetch a package, check it, repeat it::

        steelyard repository fetch https://example.org/packages night.zip

        steelyard verify night.zip

        steelyard rerun night.zip
    """
    from steelyard.share.package.archive import UNWATCHED  # noqa: PLC0415 - start-up time
    from steelyard.share.repository.fetching import fetch as fetch_package  # noqa: PLC0415 - start-up time

    watcher = ProgressLine(sys.stderr, "fetching") if sys.stderr.isatty() else UNWATCHED
    path = fetch_package(place, name, output, watcher)
    sys.stdout.write(f"package {path}\n")
