"""Build backend: builds the launcher and the workload programs, then lets maturin do the rest.

One wheel carries the Python package, the native module and these programs. The programs are
linked statically so that they also run inside containers and virtual machines. They are built for
`CARGO_BUILD_TARGET`, as the native module is, or for this machine.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import maturin

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "steelyard"
PROGRAMS = {
    "steelyard-launch": "steelyard-launch",
    "steelyard-work": "steelyard-work",
    "steelyard-truth": "steelyard-work",
    "steelyard-packets": "steelyard-sync",
    "steelyard-comm": "steelyard-comm",
    "steelyard-govern": "steelyard-govern",
    "steelyard-load": "steelyard-load",
    "steelyard-watch": "steelyard-watch",
}


def _target_triple() -> str:
    if "CARGO_BUILD_TARGET" in os.environ:
        return os.environ["CARGO_BUILD_TARGET"]
    answer = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True, cwd=ROOT)
    return next(line.split()[1] for line in answer.stdout.splitlines() if line.startswith("host:"))


def _setting(triple: str, name: str) -> str:
    """Give the environment variable of cargo's setting for one target."""
    return f"CARGO_TARGET_{triple.upper().replace('-', '_')}_{name}"


def build_programs() -> None:
    """Build the static programs and put them into the package."""
    triple = _target_triple()
    variable = _setting(triple, "RUSTFLAGS")
    environment = dict(os.environ)
    # With --target the flags reach the programs but not procedural macros, which cannot be static.
    environment[variable] = f"{environment.get(variable, '')} -C target-feature=+crt-static".strip()
    command = ["cargo", "build", "--locked", "--profile", "dist", "--target", triple]
    for crate in dict.fromkeys(PROGRAMS.values()):
        command += ["-p", crate]
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    target = Path(environment.get("CARGO_TARGET_DIR", ROOT / "target"))
    folder = PACKAGE / "_bin"
    folder.mkdir(exist_ok=True)
    for program in PROGRAMS:
        temporary = folder / f".{program}"
        shutil.copy2(target / triple / "dist" / program, temporary)
        temporary.replace(folder / program)


def build_scheduler() -> None:
    """Build the loader of the best-effort class where it is asked for; it takes clang, which users lack."""
    if os.environ.get("STEELYARD_SCHEDULER") == "yes":
        subprocess.run([ROOT / "scripts" / "build-scheduler.sh"], check=True)


def _place_workloads(*, editable: bool) -> None:
    place = PACKAGE / "_workloads"
    if place.is_symlink():
        place.unlink()
    elif place.exists():
        shutil.rmtree(place)
    if editable:
        place.symlink_to(ROOT / "workloads")
    else:
        shutil.copytree(ROOT / "workloads", place, ignore=shutil.ignore_patterns("__pycache__", "*.class"))


def _prepare(*, editable: bool) -> None:
    build_programs()
    _place_workloads(editable=editable)


def write_readme() -> None:
    """Write README.md with whole addresses beside the manifest that maturin reads, for package indexes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    repository = project["urls"]["Repository"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = re.sub(r"(!\[[^\]]*\]\()(?!\w+:|#)", rf"\1{repository}/raw/HEAD/", text)
    text = re.sub(r"(\]\()(?!\w+:|#)", rf"\1{repository}/blob/HEAD/", text)
    (ROOT / "crates" / "py" / "README.md").write_text(text, encoding="utf-8")


# Each of the hooks below makes maturin read it.
write_readme()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    _prepare(editable=False)
    build_scheduler()
    # Who profiles Steelyard installs it editable; a wheel would be three times as large with symbols.
    os.environ.setdefault("MATURIN_STRIP", "true")
    if "--zig" in os.environ.get("MATURIN_PEP517_ARGS", ""):
        # A linker that cargo is told, as the programs need it across, would take the place of zig.
        os.environ.pop(_setting(_target_triple(), "LINKER"), None)
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    _prepare(editable=True)
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)


build_sdist = maturin.build_sdist
get_requires_for_build_wheel = maturin.get_requires_for_build_wheel
get_requires_for_build_editable = maturin.get_requires_for_build_editable
get_requires_for_build_sdist = maturin.get_requires_for_build_sdist
prepare_metadata_for_build_wheel = maturin.prepare_metadata_for_build_wheel
prepare_metadata_for_build_editable = maturin.prepare_metadata_for_build_editable
