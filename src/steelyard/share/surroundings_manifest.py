"""``environment.json`` of a package: on what the result was recorded, and how to have the same again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from steelyard.record.trace_folder import TRACES_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from steelyard.model import Plan
    from steelyard.record.provenance import Provenance

ENVIRONMENT_NAME: Final = "environment.json"
RECIPE_NAME: Final = "Containerfile"
SCHEMA: Final = "steelyard/environment/1"

_IMAGE: Final = "docker.io/library/debian:trixie-slim"
_BEHIND_STUDY: Final = {
    "stability": ("gcc", "default-jdk-headless", "bubblewrap", "crun", "podman", "systemd-container"),
    "communication": ("openmpi-bin", "libopenmpi-dev", "mpich", "gcc", "iproute2"),
    "colocation": ("qemu-system-x86",),
    "scaling": (),
    "replication": ("default-jdk-headless", "maven", "postgresql", "crun"),
    "compare": (),
}
"""Debian packages with the programs that a study can use beyond Steelyard itself."""


def environment(result: Path, plan: Plan, provenance: Provenance, licences: Mapping[str, str]) -> str:
    """Write ``environment.json``.

    Parameters
    ----------
    result : Path
        Result folder; runs of the replication study say their devices and roles in it.
    plan : Plan
        Its plan.
    provenance : Provenance
        Its provenance.
    licences : mapping
        By name of a Python package, as who packed the result found them.
    """
    used = sorted({cell.execution.isolation for cell in plan.cells if cell.execution is not None})
    settings = list(_settings(result))
    content = {
        "schema": SCHEMA,
        "study": plan.study,
        "devices": _devices(provenance, settings),
        "storage": sorted({role["storage"] for role in _roles(settings) if role.get("storage")}),
        "images": {name: provenance.technologies.get(name) for name in used if name != "bare"},
        "containers": sorted({str(role["container"]) for role in _roles(settings) if role.get("container")}),
        "isolations": used,
        "roles": {setting["name"]: setting["roles"] for setting in settings if "name" in setting},
        "tunables": [tuning for session in provenance.sessions for tuning in session.tunings],
        "versions": provenance.versions,
        "licences": {name: licences[name] for name in provenance.versions if name in licences},
        "git": None
        if provenance.git is None
        else {"commit": provenance.git.commit, "is_modified": provenance.git.is_modified},
        "missing": {
            ", ".join(cell.levels.values()): cell.missing for cell in plan.cells if cell.missing is not None
        },
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _settings(result: Path) -> Iterator[dict[str, Any]]:
    """Give each setting and the devices it names once: runs of the replication study say them."""
    seen: set[str] = set()
    for path in sorted((result / TRACES_NAME).glob("*/experiment.json")):
        asked = json.loads(path.read_bytes())
        setting = {**asked.get("setting", {}), "devices": asked.get("devices", {})}
        name = json.dumps(setting, sort_keys=True)
        if name not in seen:
            seen.add(name)
            yield setting


def _roles(settings: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for setting in settings:
        yield from (role for role in setting.get("roles", {}).values() if isinstance(role, dict))


def _devices(provenance: Provenance, settings: list[dict[str, Any]]) -> dict[str, Any]:
    devices: dict[str, Any] = {"host": provenance.host} if provenance.host else {}
    for setting in settings:
        devices.update(setting["devices"])
    return devices


def recipe(plan: Plan, provenance: Provenance) -> str:
    """Write a recipe for a container in which the package can be verified and executed again."""
    versions = provenance.versions
    packages = ("python3", "python3-venv", *_BEHIND_STUDY.get(plan.study, ()))
    pinned = [
        f"'{name}=={versions[name]}'" for name in ("numpy", "pyarrow", "scipy", "polars") if name in versions
    ]
    wanted = ('"$STEELYARD"', *pinned)
    exactly = f"=={versions['steelyard']}" if "steelyard" in versions else ""
    steelyard = f'"steelyard[all]{exactly}"'
    host = provenance.host
    recorded = (
        host.get("distribution") or "system not recorded",
        f"Linux {host.get('kernel_release', 'not recorded')}",
        host.get("cpu_model") or "processor not recorded",
        f"Python {versions.get('python', 'not recorded')}",
    )
    return "\n".join(
        (
            "# In which this package can be verified, and its study executed again.",
            f"# Recorded on: {', '.join(map(str, recorded))}.",
            "# A container shares the kernel of its host.",
            f"FROM {_IMAGE}",
            f"RUN apt-get update && apt-get install --yes --no-install-recommends {' '.join(packages)}",
            "RUN python3 -m venv /opt/steelyard",
            "# Steelyard by its name in the package index, or the path of a wheel: --build-arg STEELYARD=...",
            f"ARG STEELYARD={steelyard}",
            f"RUN /opt/steelyard/bin/pip install {' '.join(wanted)}",
            "COPY . /package",
            "WORKDIR /work",
            'ENTRYPOINT ["/opt/steelyard/bin/steelyard"]',
            'CMD ["verify", "/package"]',
            "",
        )
    )
