"""The wheel that is published, installed where nothing of the checkout is, here and in an old userland."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.guest_needs import require_sched_ext_guest
from integration.study_process import check_whole, write_study_file
from steelyard.record.tables import read_runs
from steelyard.studies.colocation.guest.task_init import LOG
from steelyard.studies.colocation.guest.tasks import Guest, GuestTask, execute_tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
OLD_ROOT = ROOT / ".tools" / "bullseye"
UV = shutil.which("uv") or str(ROOT / ".tools" / "bin" / "uv")
GENERATED = {"PKG-INFO", "crates/py/Cargo.toml", "crates/py/README.md"}
LEADING_BACK = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT"}
LONGEST_S = 300
BLOCKS = 3
ITERATIONS = 4
# A mount namespace of its own, so that no mount is left however this ends; and its own root instead of a
# `chroot`, in which no further mount namespace could be made.
ENTER_OLD_ROOT = """
mount --bind "$0" "$0"; cd "$0"
mount --rbind /proc proc; mount --rbind /sys sys; mount --rbind /dev dev; mount -t tmpfs tmpfs tmp
mkdir -p ".$1" ".$2"
for path in "$1" "$2" /etc/resolv.conf /etc/ssl/certs; do mount --bind "$path" ".$path"; done
pivot_root . mnt; umount --lazy mnt
cd "$1"; shift 2
exec "$@"
"""

pytestmark = [pytest.mark.slow, pytest.mark.timing, pytest.mark.needs_wheel, pytest.mark.timeout(900)]


X86_64 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="only the wheel for x86_64 has the loader")


def is_of_checkout(source: Path) -> bool:
    """Check that every file of a source distribution is as it is in the checkout."""
    with tarfile.open(source) as archive:
        for member in archive:
            name = member.name.partition("/")[2]
            if name in GENERATED:
                continue
            file, kept = ROOT / name, archive.extractfile(member)
            if kept is not None and (not file.is_file() or kept.read() != file.read_bytes()):
                return False
    return True


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Give the wheel of ``dist/``, built anew where it is not that of the checkout."""

    def built() -> list[Path]:
        return list((ROOT / "dist").glob(f"steelyard-*_{os.uname().machine}.whl"))

    sources, wheels = list((ROOT / "dist").glob("steelyard-*.tar.gz")), built()
    # A wheel that is older than the sources beside it was not made from them, but one for another processor.
    is_fresh = (
        len(wheels) == len(sources) == 1
        and wheels[0].stat().st_mtime >= sources[0].stat().st_mtime
        and is_of_checkout(sources[0])
    )
    if not is_fresh:
        subprocess.run([ROOT / "scripts" / "wheel.sh"], check=True)
        wheels = built()
    (found,) = wheels
    return found


class Installed:
    """The wheel in an empty environment: its programs are started in a folder, by a way into a userland."""

    def __init__(self, folder: Path, enter: list[str], python: str) -> None:
        self.folder = folder
        self._enter = enter
        self._python = python

    def start(self, *words: object) -> subprocess.CompletedProcess[str]:
        # How packages are reached is the machine's; nothing leads back to the checkout.
        kept = {name: value for name, value in os.environ.items() if name not in LEADING_BACK}
        environment = {
            **kept,
            "HOME": str(self.folder),
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "STEELYARD_STATE": str(self.folder / "state"),
            "UV_CACHE_DIR": uv_cache(),
        }
        return subprocess.run(
            [*self._enter, *map(str, words)],
            capture_output=True,
            text=True,
            timeout=LONGEST_S,
            check=False,
            cwd=self.folder,
            env=environment,
        )

    def install(self, wheel: Path) -> None:
        for file in (UV, wheel):
            shutil.copy(file, self.folder)
        for words in (
            ["venv", "--quiet", "--no-project", "--python", self._python, "venv"],
            ["pip", "install", "--quiet", "--python", "venv", wheel.name],
        ):
            made = self.start("./uv", *words)
            assert made.returncode == 0, made.stderr

    def steelyard(self, *words: object, code: int = 0) -> str:
        ended = self.start("venv/bin/steelyard", *words)
        assert ended.returncode == code, ended.stdout + ended.stderr
        return ended.stdout

    def steelyard_json(self, *words: object, code: int = 0) -> Any:
        return json.loads(self.steelyard(*words, code=code))


def uv_cache() -> str:
    return subprocess.run([UV, "cache", "dir"], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(
    scope="module", params=["here", pytest.param("bullseye", marks=pytest.mark.needs_old_userland)]
)
def installed(request: pytest.FixtureRequest, wheel: Path) -> Iterator[Installed]:
    enter, python = [], "3.11"
    with tempfile.TemporaryDirectory(prefix="sy-") as folder:  # short: sockets lie below it
        if request.param == "bullseye":
            if os.getuid() != 0 or not (OLD_ROOT / "opt" / "python").is_dir():
                pytest.skip("needs root and an old userland, `make old-userland`")
            enter = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", ENTER_OLD_ROOT]
            enter += [str(OLD_ROOT), folder, uv_cache()]
            python = "/opt/python/bin/python3.11"
        found = Installed(Path(folder), enter, python)
        found.install(wheel)
        yield found


def test_the_wheel_has_the_terms_of_what_it_contains(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        texts = [f"LICENSES/{name}.txt" for name in ("GPL-3.0", "LGPL-2.1", "LGPL-3.0")]
        for name in ("LICENSE", "NOTICE", *texts):
            (place,) = [entry for entry in archive.namelist() if entry.endswith(f"licenses/{name}")]
            assert archive.read(place) == (ROOT / name).read_bytes()


def test_the_readme_of_the_wheel_has_no_relative_link(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (place,) = [entry for entry in archive.namelist() if entry.endswith("dist-info/METADATA")]
        text = archive.read(place).decode()
    assert "](https://" in text
    assert "](" not in text.replace("](https://", "")


def test_the_installed_package_is_that_of_the_wheel(installed: Installed, wheel: Path) -> None:
    version = wheel.name.split("-")[1]
    assert installed.steelyard("--version") == f"steelyard {version}\n"
    said = installed.start("venv/bin/python", "-c", "import steelyard; print(steelyard.__file__)").stdout
    assert said.startswith(f"{installed.folder}/venv/")


def test_the_userland_is_as_old_as_it_claims(installed: Installed, request: pytest.FixtureRequest) -> None:
    said = installed.start("getconf", "GNU_LIBC_VERSION").stdout.split()
    assert said[0] == "glibc"
    if "bullseye" in request.node.name:
        assert said[1] == "2.31"


@X86_64
def test_the_loader_of_the_class_says_what_it_can_here(installed: Installed) -> None:
    place = "from steelyard.run.programs import scheduler_program; print(scheduler_program())"
    loader = installed.start("venv/bin/python", "-c", place).stdout.strip()
    assert loader.startswith(f"{installed.folder}/venv/")
    has_class = Path("/sys/kernel/sched_ext").is_dir()
    probed = installed.start(loader, "probe", "--json")
    found = json.loads(probed.stdout)
    assert (probed.returncode, found["available"]) == ((0, True) if has_class else (3, False))
    if not has_class:
        begin = time.monotonic()
        started = installed.start(loader, "start", "--state", installed.folder / "scheduler")
        assert time.monotonic() - begin < 2
        assert started.returncode == 3
        assert "`/sys/kernel/sched_ext` is missing" in started.stderr
        assert not (installed.folder / "scheduler").exists()


@X86_64
@pytest.mark.needs_sched_ext_guest
def test_the_loader_of_the_wheel_attaches_the_class(wheel: Path, tmp_path: Path) -> None:
    require_sched_ext_guest()
    loader = tmp_path / "steelyard-scheduler"
    with zipfile.ZipFile(wheel) as archive:
        loader.write_bytes(archive.read("steelyard/_bin/steelyard-scheduler"))
    loader.chmod(0o755)
    steps = (
        "steelyard-scheduler start --within-s 60",
        "cat /sys/kernel/sched_ext/state",
        "steelyard-scheduler stop",
    )
    guest = Guest({"steelyard-scheduler": loader}, timeout_s=LONGEST_S)
    (outcome,) = execute_tasks(
        [GuestTask("attach", " && ".join(steps), limit_s=120)], tmp_path / "left", guest
    )
    outcome.require_success()
    said = (tmp_path / "left" / "attach" / LOG).read_text(encoding="utf-8").splitlines()
    assert said[0].startswith("the best-effort class is attached (process ")
    assert said[1:] == ["enabled", "the best-effort class is detached"]


@pytest.mark.parametrize("isolation", ["bare", "sandbox"])
def test_a_command_is_measured(installed: Installed, isolation: str) -> None:
    script = "sleep 0.2; id -u"
    found = installed.steelyard_json("measure", "--json", "--isolation", isolation, "--", "sh", "-c", script)
    assert (found["status"], found["exit_code"], found["isolation"]) == ("completed", 0, isolation)
    assert 200_000_000 <= found["wall_ns"] < 2_000_000_000
    assert 0 < found["cpu_ns"] < found["wall_ns"]
    (outcome,) = found["outcomes"]
    user = int(outcome["standard_output"]["text"])
    assert user == os.getuid() if isolation == "bare" else user >= 60000
    assert outcome["quantities"]["wall_ns"]["source"]


def test_a_slower_command_is_found(installed: Installed) -> None:
    found = installed.steelyard_json(
        "compare", "sleep 0.02", "sleep 0.04", "--json", "--budget", "20s", code=1
    )
    (claim,) = found["claims"]
    assert (found["verdict"], claim["verdict"], claim["is_regression"]) == ("slower", "slower", True)
    assert 1.5 < claim["low"] <= claim["ratio"] <= claim["high"] < 2.5


def test_a_study_is_run_analysed_reported_and_verified(installed: Installed) -> None:
    study_file = write_study_file(installed.folder, blocks=BLOCKS, iterations=ITERATIONS)
    result = installed.folder / "result"
    installed.steelyard("run", "stability", "--study-file", study_file, "--out", result, "--no-analyse")
    assert not (result / "findings.json").exists()
    runs = read_runs(result)
    # The cell and its twin.
    assert runs.num_rows == 2 * BLOCKS * ITERATIONS
    assert min(runs["wall_ns"].to_pylist()) > 0

    findings = installed.steelyard_json("analyse", result, "--json")
    assert findings["study"] == "stability"
    assert findings["findings"]
    installed.steelyard("report", result)
    check_whole(result)

    assert installed.steelyard_json("verify", result, "--json")["confirmed"] is True
    findings["findings"][0]["verdict"] = "up to 0.1 %"
    (result / "findings.json").write_text(json.dumps(findings), encoding="utf-8")
    answer = installed.steelyard_json("verify", result, "--json", code=1)
    assert answer["confirmed"] is False
    assert answer["problems"]
