"""``Containerfile`` of a package: a container in which it can be verified, and its study run again.

Nothing in it is installed by a name alone, since somebody else may offer that name: the base image is named
by its digest, Python packages and uv by their hashes, Steelyard itself by the hash of its wheel.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from steelyard.share.package.entry_names import visible
from steelyard.study import installed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance
    from steelyard.share.package.statement import Statement

RECIPE_NAME: Final = "Containerfile"
REQUIREMENTS_NAME: Final = "requirements.txt"
INSTALLER_NAME: Final = "installer.txt"
WHEELS: Final = "wheels/"
"""Folder of the wheel inside a package."""

_INSTALL: Final = "/opt/uv/bin/uv pip install --python /opt/steelyard"
_BY_HASH: Final = "--no-deps --only-binary :all: --require-hashes"
_PYTHON: Final = re.compile(r"3\.\d{1,2}\.\d{1,2}")


def locked(name: str) -> str:
    """Give the packages that the container installs, each by its hashes.

    Parameters
    ----------
    name : str
        `REQUIREMENTS_NAME` or `INSTALLER_NAME`.
    """
    return (files("steelyard.share") / f"locked_{name}").read_text(encoding="utf-8")


def recipe(plan: Plan, provenance: Provenance, statement: Statement) -> str:
    """Write the recipe.

    Parameters
    ----------
    plan, provenance : Plan, Provenance
        Of the result. What they say goes into comments, or is checked: a recipe is run.
    statement : Statement
        Wheel and base image.
    """
    return "\n".join(_lines(plan, provenance, statement)) + "\n"


def _lines(plan: Plan, provenance: Provenance, statement: Statement) -> Iterator[str]:
    versions, host = provenance.versions, provenance.host
    recorded = (
        host.get("distribution") or "system not recorded",
        f"Linux {host.get('kernel_release', 'not recorded')}",
        host.get("cpu_model") or "processor not recorded",
        f"Python {versions.get('python', 'not recorded')}",
    )
    study = installed(plan.study)
    packages = ("ca-certificates", "python3", "python3-venv", *study.debian_packages)
    yield "# A container in which this package can be verified, and its study run again."
    yield f"# Recorded on: {visible(', '.join(map(str, recorded)))}."
    yield "# A container shares the kernel of its host."
    yield f"FROM {statement.base_image}"
    yield (
        "RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends "
        f"{' '.join(packages)}"
    )
    yield "COPY . /package"
    yield f"# The interpreter that recorded the result: uv {_of_uv()} brings it, and holds its hash."
    yield f"RUN python3 -m venv /opt/uv && /opt/uv/bin/pip install {_BY_HASH} -r /package/{INSTALLER_NAME}"
    python = versions.get("python", "")
    wanted = python if _PYTHON.fullmatch(python) else "3.13"
    yield f"RUN /opt/uv/bin/uv venv --managed-python --python {wanted} /opt/steelyard"
    yield from _others(versions)
    yield f"RUN {_INSTALL} {_BY_HASH} -r /package/{REQUIREMENTS_NAME}"
    yield from _steelyard(statement, visible(versions.get("steelyard", "of the result")))
    yield from (f"RUN {command}" for command in study.build_commands)
    yield "WORKDIR /work"
    yield 'ENTRYPOINT ["/opt/steelyard/bin/steelyard"]'
    yield 'CMD ["verify", "/package"]'


def _of_uv() -> str:
    return locked(INSTALLER_NAME).partition(" ")[0].rpartition("=")[2]


def _others(versions: Mapping[str, str]) -> Iterator[str]:
    """Name the packages that took part in another version than the container has."""
    pinned: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([\w.]+)", locked(REQUIREMENTS_NAME), re.MULTILINE):
        pinned.setdefault(name, set()).add(version)
    for name, version in versions.items():
        if name in pinned and version not in pinned[name]:
            here = " or ".join(sorted(pinned[name]))
            yield f"# Recorded with {name} {visible(version)}; this is {here}."


def _steelyard(statement: Statement, version: str) -> Iterator[str]:
    """Install Steelyard from a wheel of a known hash, never by its name."""
    install = f"{_INSTALL} --no-deps --offline"
    if statement.wheel is None:
        yield f"# Lay the wheel of Steelyard {version} into `{WHEELS}`, and say which it is:"
        yield f"# docker build --build-arg WHEEL=steelyard-{version}-....whl --build-arg WHEEL_SHA256=... ."
        yield "ARG WHEEL"
        yield "ARG WHEEL_SHA256"
        yield f'RUN echo "$WHEEL_SHA256  /package/{WHEELS}$WHEEL" | sha256sum --check --strict -'
        yield f'RUN {install} "/package/{WHEELS}$WHEEL" && rm -r /package/{WHEELS}'
        return
    name, sha256 = statement.wheel["name"], statement.wheel["sha256"]
    if not statement.carries_wheel:
        yield f"# The wheel is not in the package: lay it into `{WHEELS}`."
    yield f'RUN echo "{sha256}  /package/{WHEELS}{name}" | sha256sum --check --strict -'
    removed = "" if statement.carries_wheel else f" && rm -r /package/{WHEELS}"
    yield f"RUN {install} /package/{WHEELS}{name}{removed}"
