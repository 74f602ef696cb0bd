"""``environment.json`` of a package: on what the result was recorded."""

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
SCHEMA: Final = "steelyard/environment/1"


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
