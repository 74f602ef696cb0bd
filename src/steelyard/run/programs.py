"""Find the programs Steelyard brings along, and build those that are made on the host."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, InternalError
from steelyard.run.state import cache_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


PACKAGE: Final = Path(__file__).resolve().parent.parent

C_FLAGS: Final = ("-std=c11", "-O0", "-ffp-contract=off")
"""Without optimisation, as the published study compiled; contraction would change the checksums."""

JAVA_FLAGS: Final = ("--release", "11")
"""Class files for every Java that is still supported."""

MPI_FLAGS: Final = ("-std=c99", "-O2")
"""What stands between two stamps is the library's; the ranks themselves add little, and optimised."""

_MPI_SOURCES: Final = ("endpoint.h", "plan.h", "run.h", "rank.c", "thresholds.c")
_SOURCES: Final = ("c/kernels.c", "c/kernels.h", "c/main.c", "java/Qsort.java", "python/qsort.py")
_BUILD_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class BuiltProgram:
    """How a workload was built on this host; part of the provenance.

    Parameters
    ----------
    language : str
        ``c`` or ``java``.
    compiler : str
        Path of the compiler.
    version : str
        First line of what the compiler says of itself.
    flags : tuple of str
        Flags it was given.
    """

    language: str
    compiler: str
    version: str
    flags: tuple[str, ...]


def launcher_path() -> Path:
    """Give the launcher, a static program.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-launch")


def work_path() -> Path:
    """Give the native workload program, a static program.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-work")


def truth_path() -> Path:
    """Give the calibration program, which knows its own times and has no start-up code.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-truth")


def packets_program() -> Path:
    """Give the packet program of the scaling study, a static program.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-packets")


def comm_program() -> Path:
    """Give the program of both endpoints of a native transport, a static program.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-comm")


def load_program() -> Path:
    """Give the program of the service, its client and the best-effort jobs, a static program.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-load")


def watch_program() -> Path:
    """Give the program that watches threads and the host, a static program.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-watch")


def govern_program() -> Path:
    """Give the program that runs commands best-effort and governs them, a static program.

    Raises
    ------
    InternalError
        If the installation lacks it.
    """
    return _installed("_bin/steelyard-govern")


def scheduler_program() -> Path | None:
    """Give the loader of the scheduling class; nothing where it was not built (``make scheduler``)."""
    path = PACKAGE / "_bin" / "steelyard-scheduler"
    return path if path.exists() else None


def _installed(name: str) -> Path:
    path = PACKAGE / name
    if not path.exists():
        message = f"this installation of Steelyard is incomplete: `{path}` is missing"
        hint = "`make setup` in a checkout, `pip install --force-reinstall steelyard` elsewhere"
        raise InternalError(message, hint=hint, code="internal.incomplete")
    return path


def workloads_path() -> Path:
    """Give the folder that ``{workloads}`` stands for in commands.

    It lies in the user's cache and holds ``python/qsort.py``, and after `build_c` and
    `build_java` also ``c/kernels`` and ``java/Qsort.class``. Its name changes with the sources,
    the flags and the compilers, so that a program never outlives what it was built from.

    Raises
    ------
    CapabilityError
        If the cache cannot be written.
    InternalError
        If the installation lacks the sources.
    """
    folder = cache_folder() / "workloads" / _build_key()
    script = folder / "python" / "qsort.py"
    if not script.exists():
        with _writing_to(folder):
            script.parent.mkdir(parents=True, exist_ok=True)
            _place(script, _source("python/qsort.py").read_bytes(), mode=0o644)
    return folder


def build_c() -> Path:
    """Build the kernels in C if they are not built yet, and give the program.

    It is linked statically where the C library allows it, so that it runs in any container.

    Raises
    ------
    CapabilityError
        If there is no C compiler, or it fails.
    """
    program = workloads_path() / "c" / "kernels"
    if program.exists():
        return program
    compiler = find_compiler("cc", package="gcc libc6-dev")
    sources = [str(_source(name)) for name in _SOURCES if name.endswith(".c")]
    with _writing_to(program.parent), tempfile.TemporaryDirectory(dir=_made(program.parent)) as scratch:
        built = Path(scratch) / "kernels"
        for linking in (("-static",), ()):
            flags = (*C_FLAGS, *linking)
            answer = _compile([str(compiler), *flags, "-o", str(built), *sources])
            if answer.returncode == 0:
                break
        else:
            raise _compiler_failed(compiler, answer.stderr)
        _finish(built, program, BuiltProgram("c", str(compiler), _version(compiler), flags))
    return program


def build_java() -> Path:
    """Build the Java quicksort if it is not built yet, and give its class file.

    Raises
    ------
    CapabilityError
        If there is no Java compiler, or it fails.
    """
    program = workloads_path() / "java" / "Qsort.class"
    if program.exists():
        return program
    compiler = find_compiler("javac", package="default-jdk-headless")
    source = str(_source("java/Qsort.java"))
    with _writing_to(program.parent), tempfile.TemporaryDirectory(dir=_made(program.parent)) as scratch:
        answer = _compile([str(compiler), *JAVA_FLAGS, "-d", scratch, source])
        if answer.returncode != 0:
            raise _compiler_failed(compiler, answer.stderr)
        built = BuiltProgram("java", str(compiler), _version(compiler), JAVA_FLAGS)
        _finish(Path(scratch) / "Qsort.class", program, built)
    return program


def build_mpi(compiler: Path, version: str, *, flags: tuple[str, ...] = ()) -> Path:
    """Build the MPI programs if they are not built yet, and give their folder.

    Parameters
    ----------
    compiler : Path
        An MPI library's compiler, as ``mpicc``, or SimGrid's ``smpicc``.
    version : str
        What the library says of itself; another version gets another folder.
    flags : tuple of str
        Flags on top of `MPI_FLAGS`, as ``-DSTEELYARD_SIMULATED``.

    Returns
    -------
    Path
        Folder that holds ``rank``, ``thresholds`` and ``build.json``.

    Raises
    ------
    CapabilityError
        If the compiler fails or the cache cannot be written.
    """
    all_flags = (*MPI_FLAGS, *flags)
    content = hashlib.sha256(repr((str(compiler), version, all_flags)).encode())
    for name in _MPI_SOURCES:
        content.update(_source(f"mpi/{name}").read_bytes())
    folder = cache_folder() / "workloads" / f"mpi-{content.hexdigest()[:16]}"
    with _writing_to(folder), tempfile.TemporaryDirectory(dir=_made(folder)) as scratch:
        for name in ("thresholds", "rank"):
            if (folder / name).exists():
                continue
            built = Path(scratch) / name
            source = str(_source(f"mpi/{name}.c"))
            answer = _compile([str(compiler), *all_flags, "-o", str(built), source, "-lm"])
            if answer.returncode != 0:
                raise _compiler_failed(compiler, answer.stderr)
            _finish(built, folder / name, BuiltProgram("c", str(compiler), version, all_flags))
    return folder


def built_programs() -> tuple[BuiltProgram, ...]:
    """Give what is built on this host and how, for the provenance."""
    records = sorted(workloads_path().glob("*/build.json"))
    contents = [json.loads(record.read_text(encoding="utf-8")) for record in records]
    return tuple(BuiltProgram(**{**content, "flags": tuple(content["flags"])}) for content in contents)


def find_compiler(name: str, *, package: str) -> Path:
    """Give a compiler on the PATH.

    Parameters
    ----------
    name : str
        ``cc`` or ``javac``.
    package : str
        Debian packages that bring it, for the hint.

    Raises
    ------
    CapabilityError
        If there is none.
    """
    found = shutil.which(name)
    if found is None:
        message = f"`{name}` is not on the PATH, but a workload must be compiled with it"
        hint = f"`apt-get install {package}`, or leave these workloads out"
        raise CapabilityError(message, hint=hint, code="capability.compiler")
    return Path(found)


def _source(name: str) -> Path:
    return _installed(f"_workloads/{name}")


def _build_key() -> str:
    """Hash of the sources, the flags and the compilers.

    A compiler counts by its resolved path, size and time of change: asking it for its version
    would start a virtual machine for `javac` each time.
    """
    content = hashlib.sha256(repr((C_FLAGS, JAVA_FLAGS)).encode())
    for name in _SOURCES:
        content.update(_source(name).read_bytes())
    for name in ("cc", "javac"):
        found = shutil.which(name)
        identity: tuple[object, ...] = (name,)
        if found is not None:
            path = Path(found).resolve()
            state = path.stat()
            identity = (name, str(path), state.st_size, state.st_mtime_ns)
        content.update(repr(identity).encode())
    return content.hexdigest()[:16]


@contextlib.contextmanager
def _writing_to(folder: Path) -> Iterator[None]:
    """Turn a refused write into an error that names the folder."""
    try:
        yield
    except OSError as error:
        message = f"cannot write built workloads to `{folder}`: {error.strerror}"
        hint = "set XDG_CACHE_HOME to a folder that can be written"
        raise CapabilityError(message, hint=hint, code="capability.cache") from error


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _place(path: Path, content: bytes, *, mode: int) -> None:
    """Write a file whole or not at all; parallel writers all write the same."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as temporary:
        temporary.write(content)
    Path(temporary.name).chmod(mode)
    Path(temporary.name).replace(path)


def _compile(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace", timeout=_BUILD_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as error:
        message = f"`{command[0]}` did not finish within {_BUILD_TIMEOUT_S:g} s"
        raise CapabilityError(
            message, hint="try again on a quieter machine", code="capability.compiler"
        ) from error


def _compiler_failed(compiler: Path, said: str) -> CapabilityError:
    message = f"`{compiler}` cannot compile a workload:\n{said.strip()[-2000:]}"
    hint = "install a complete compiler with its library, or leave these workloads out"
    return CapabilityError(message, hint=hint, code="capability.compiler")


@functools.cache
def _version(compiler: Path) -> str:
    answer = _compile([str(compiler), "--version"])
    return (answer.stdout or answer.stderr).partition("\n")[0]


def _finish(built: Path, program: Path, record: BuiltProgram) -> None:
    """Put a built program in its place, its record first: a program that is there is complete."""
    text = json.dumps(asdict(record), indent=1) + "\n"
    _place(program.parent / "build.json", text.encode(), mode=0o644)
    built.chmod(0o755)
    built.replace(program)
