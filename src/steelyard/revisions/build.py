"""Building revisions outside of their repository, once for each state of the files."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from steelyard.errors import DataError, RunError, unwritable
from steelyard.model.run_outcome import RunStatus
from steelyard.model.run_spec import Limits, OutputStream, RunSpec
from steelyard.record.clock import now_utc
from steelyard.record.seal import hash_file
from steelyard.revisions.repository import Commit, outside_hooks, run_git
from steelyard.run.environment import callers_environment, unpassable
from steelyard.run.redact import last_lines, without_secrets
from steelyard.run.state import cache_folder
from steelyard.units import NS_PER_S, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from steelyard.revisions.repository import Repository

BUILD_SCHEMA: Final = "steelyard/build/1"
FOLDER_VARIABLE: Final = "STEELYARD_BUILDS"
KEPT_DAYS: Final = 30
LONGEST_BUILD_S: Final = 7200.0
"""A build that waits for ever would hold a job until its runner gives up, without a verdict (GitHub: 6 h)."""
_PATIENCE_S: Final = 60.0
"""For the launcher, to end a build and say so."""
_DIGITS: Final = 20
_TAIL_BYTES: Final = 8192
_SECONDS_PER_DAY: Final = 86_400
_OF_SESSION: Final = re.compile(
    r"_|(OLD)?PWD|SHLVL|TERM.*|COLUMNS|LINES|COLORTERM|LS_COLORS|DISPLAY|WAYLAND_DISPLAY|WINDOWID|STY|TMUX.*"
    r"|DBUS_.*|XDG_(SESSION|RUNTIME|SEAT|VTNR).*|SSH_.*|HIST.*|PS[0-9]|PROMPT.*|PAGER|EDITOR|VISUAL|MAIL"
    r"|GPG_TTY|INVOCATION_ID|JOURNAL_STREAM|MAKELEVEL|MAKE_TERM.*|VSCODE_.*|PYTEST_.*|STEELYARD_.*"
    r"|GITHUB_.*|RUNNER_.*|ACTIONS_.*|CI_.*|GITLAB_.*|_RJEM_MALLOC_CONF"
)
"""Variables of a session, which say nothing to a build; a change of any other builds again."""
_TOOLS: Final = (
    *("cc", "c++", "gcc", "g++", "clang", "clang++", "gfortran", "ld", "as"),
    *("make", "cmake", "ninja", "meson", "mvn", "gradle", "npm", "cargo"),
    *("rustc", "go", "javac", "java", "node", "python3", "dotnet", "ghc"),
)
"""Programs that builds use; one that was replaced builds again."""
_SHOWN_FILES: Final = 3
_VERBS: Final = frozenset({"init", "config", "checkout", "status", "submodule"})
_OF_FILES: Final = re.compile(
    r"filter\..*|lfs\..*|url\..*|remote\..*\.(url|promisor|partialclonefilter|fetch)|extensions\.partialclone"
    r"|core\.(autocrlf|eol|safecrlf|attributesfile|symlinks|filemode|ignorecase|precomposeunicode)"
)
"""Configuration of a repository that decides what is in its files."""


@dataclass(frozen=True, slots=True)
class Build:
    """A revision whose build has ended.

    Parameters
    ----------
    commit : Commit
        What was built.
    folder : Path
        Where its files are; the folder below the root in which the user stood.
    command : str or None
        What built it; ``None`` for files alone.
    status : str
        ``ready`` or ``failed``.
    exit_status : int
        Of the command.
    seconds : float
        How long the build took, when it was made.
    log : Path
        What it said.
    is_reused : bool
        Whether it had been made before.
    timeout_s : float or None
        The limit that ended it, if one did.
    """

    commit: Commit
    folder: Path
    command: str | None
    status: Literal["ready", "failed"]
    exit_status: int
    seconds: float
    log: Path
    is_reused: bool = False
    timeout_s: float | None = None

    def facts(self, programs: Iterable[str] = ()) -> dict[str, Any]:
        """Give what is recorded of it, with the hashes of those programs that are its own."""
        own = sorted(
            name
            for name in programs
            if "/" in name and not name.startswith("/") and (self.folder / name).is_file()
        )
        return {
            "name": self.commit.name,
            "asked": self.commit.asked,
            "commit": self.commit.id,
            "tree": self.commit.tree,
            "subject": self.commit.subject,
            "committed_s": self.commit.committed_s,
            "command": self.command,
            "status": self.status,
            "exit_status": self.exit_status,
            "seconds": round(self.seconds, 3),
            "is_reused": self.is_reused,
            "folder": str(self.folder),
            "programs": {name: hash_file(self.folder / name) for name in own},
        }

    def failure(self) -> RunError:
        """Give the error that a failed build is where nothing can be measured without it."""
        hint, how = f"all it said is in {self.log}", f"exit status {self.exit_status}"
        if self.timeout_s is not None:
            how = f"it had not ended after {format_seconds(self.timeout_s)} and was ended"
            hint = f"`--build-timeout` gives it more time; {hint}"
        elif self.exit_status < 0:
            how = f"signal {-self.exit_status}"
        said = _said(self.log)
        message = f"cannot build {self.commit.name} by `{self.command}`: {how}" + (
            f": {said}" if said else ""
        )
        return RunError(message, hint=hint, code="run.build")


class BuildCache:
    """Where builds are kept, one for each state of files, command, folder, environment and tools.

    Parameters
    ----------
    folder : Path or None
        The variable ``STEELYARD_BUILDS`` unless given, else ``steelyard/builds`` in the user's cache (XDG).
    timeout_s : float
        How long a build may take [s], positive; then all its processes are killed, and it has failed.
    """

    def __init__(self, folder: Path | None = None, *, timeout_s: float = LONGEST_BUILD_S) -> None:
        self.folder = _default_folder() if folder is None else folder
        self._timeout_s = timeout_s
        self._made: dict[str, Build] = {}

    @contextmanager
    def building(
        self,
        repository: Repository,
        commit: Commit,
        command: str | None,
        *,
        is_again: bool = False,
        tell: Callable[[Build | None, Commit], None] = lambda _build, _commit: None,
    ) -> Iterator[Build]:
        """Give the build of a revision, which nobody removes until the block ends.

        Parameters
        ----------
        repository : Repository
            Where the revision is from.
        commit : Commit
            The revision.
        command : str or None
            Shell line that builds it, in the folder in which the user stands; ``None`` builds nothing.
        is_again : bool
            Build although it has been built.
        tell : callable
            Called with ``None`` before something is built, and with the build when there is one.

        Raises
        ------
        DataError
            If the files cannot be checked out, or the cache cannot be written.
        UsageError
            If the revision does not contain the folder.
        """
        key = build_key(repository, commit, command)
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = (self.folder / f"{key}.lock").open("a")
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        with lock:
            # Who uses a build shares the lock; who makes it, or removes it, has it alone.
            _wait(lock, fcntl.LOCK_SH, commit)
            found = self._made.get(key) or (None if is_again else self._kept(repository, commit, key))
            if found is None:
                _wait(lock, fcntl.LOCK_EX, commit)
                found = None if is_again else self._kept(repository, commit, key)
                if found is None:
                    tell(None, commit)
                    found = self._make(repository, commit, command, key)
                fcntl.flock(lock, fcntl.LOCK_SH)
            self._made[key] = replace(found, is_reused=True)
            self._touch(key)
            found = replace(found, commit=commit)
            tell(found, commit)
            yield found

    def tidy(self) -> None:
        """Remove builds that nobody has used for `KEPT_DAYS` days."""
        oldest_s = datetime.fromisoformat(now_utc()).timestamp() - KEPT_DAYS * _SECONDS_PER_DAY
        for path in self.folder.glob("*.lock"):
            with suppress(OSError), path.open("a") as lock:
                if path.stat().st_mtime < oldest_s:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._remove(path.stem)
                    path.unlink()

    def _kept(self, repository: Repository, commit: Commit, key: str) -> Build | None:
        try:
            found = json.loads((self.folder / f"{key}.json").read_bytes())
            status, exit_status, seconds = found["status"], int(found["exit_status"]), float(found["seconds"])
            command = found["command"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        place = self.folder / key / repository.below
        # Runs may have written into it, and anything may have removed a part.
        if status != "ready" or not place.is_dir() or found.get("files") != files_hash(self.folder / key):
            return None
        return Build(commit, place, command, "ready", exit_status, seconds, self._log(key), is_reused=True)

    def _make(self, repository: Repository, commit: Commit, command: str | None, key: str) -> Build:
        self._remove(key)
        root = self.folder / key
        try:
            self._log(key).write_bytes(b"")
            _check_out(repository, commit, root)
            place = _below(root, repository, commit)
            exit_status, is_ended, seconds = 0, False, 0.0
            if command is not None:
                exit_status, is_ended, seconds = _build(command, place, self._log(key), self._timeout_s)
            status: Literal["ready", "failed"] = "failed" if exit_status else "ready"
            found = Build(
                *(commit, place, command, status, exit_status, seconds, self._log(key)),
                timeout_s=self._timeout_s if is_ended else None,
            )
            content = {"schema": BUILD_SCHEMA, **found.facts(), "files": files_hash(root)}
            written = self.folder / f"{key}.json.new"
            written.write_text(json.dumps(content, indent=1), encoding="utf-8", errors="backslashreplace")
            written.replace(self.folder / f"{key}.json")
        except OSError as error:
            self._remove(key)
            raise _unwritable(root, error) from error
        except BaseException:
            self._remove(key)
            raise
        return found

    def _log(self, key: str) -> Path:
        return self.folder / f"{key}.log"

    def _touch(self, key: str) -> None:
        with suppress(OSError):
            os.utime(self.folder / f"{key}.lock")

    def _remove(self, key: str) -> None:
        for name in (f"{key}.json", f"{key}.log"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / key, ignore_errors=True)


def _said(log: Path) -> str:
    """Give the last lines of what a build said, without secrets."""
    try:
        with log.open("rb") as file:
            file.seek(-min(_TAIL_BYTES, log.stat().st_size), os.SEEK_END)
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return last_lines(without_secrets(text))


def _default_folder() -> Path:
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).absolute() if named else cache_folder() / "builds"


def _unwritable(path: Path, error: OSError) -> DataError:
    return unwritable(path, error, f"name another folder for builds in the variable {FOLDER_VARIABLE}")


def build_key(repository: Repository, commit: Commit, command: str | None) -> str:
    """Give what a build follows from, in a name that is equally long for all: paths are part of layouts.

    Who needs several builds at once takes them in the order of their keys, so that no two processes wait for
    each other.
    """
    variables = {
        name: value for name, value in callers_environment().items() if not _OF_SESSION.fullmatch(name)
    }
    place = [str(repository.root), str(repository.below)]
    parts = [BUILD_SCHEMA, place, commit.tree, command, variables, [_identity(tool) for tool in _TOOLS]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:_DIGITS]


def _below(root: Path, repository: Repository, commit: Commit) -> Path:
    """Give the folder in which the user stands, in another checkout."""
    place = root / repository.below
    if not place.is_dir():
        message = f"{commit.name} does not contain the folder `{repository.below}`"
        raise DataError(message, hint="go into a folder that all revisions have", code="data.git")
    return place


def _identity(tool: str) -> list[str | int] | None:
    """Give what changes when a program on the PATH is replaced."""
    found = shutil.which(tool)
    if found is None:
        return None
    status = Path(found).stat()
    return [os.path.realpath(found), status.st_size, status.st_mtime_ns]


def files_hash(root: Path) -> str:
    """Give a hash of names, sizes, times and modes of all files in a checkout, Git's own left out."""
    found = hashlib.sha256()
    for above, folders, names in os.walk(root):
        if above == str(root) and ".git" in folders:
            folders.remove(".git")
        folders.sort()
        for name in sorted((*names, *folders)):
            status = os.lstat(os.path.join(above, name))  # noqa: PTH118 - bytes that are not text stay as they are
            size, time_ns = (0, 0) if stat.S_ISDIR(status.st_mode) else (status.st_size, status.st_mtime_ns)
            line = f"{above}\0{name}\0{status.st_mode}\0{size}\0{time_ns}\n"
            found.update(line.encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def _wait(lock: IO[str], kind: int, commit: Commit) -> None:
    """Take a lock, and say so where somebody else has it."""
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.stderr.write(f"waiting for another process that builds or measures {commit.name} ...\n")
        fcntl.flock(lock, kind)


def _check_out(repository: Repository, commit: Commit, root: Path) -> None:
    """Make a clone of its own, which shares the objects: the user's repository is not touched."""

    def ask(folder: Path, *arguments: str) -> str:
        # Hooks are the user's own, and know nothing of this checkout.
        done = run_git(folder, ["-c", f"core.hooksPath={os.devnull}", *arguments])
        if done.returncode != 0:
            said = " ".join((done.stderr or done.stdout).split()[-60:]) or f"exit status {done.returncode}"
            verb = next(word for word in arguments if word in _VERBS)
            message = f"cannot check out {commit.name}: `git {verb}` failed: {said}"
            hint = "`git submodule update --init --recursive` in the repository brings submodules"
            raise DataError(message, hint=hint if verb == "submodule" else None, code="data.git")
        return done.stdout.strip()

    form = repository.ask("rev-parse", "--show-object-format")
    ask(root.parent, "init", "--quiet", "--template=", f"--object-format={form}", str(root))
    own = root / ".git"
    (own / "objects" / "info").mkdir(exist_ok=True)
    (own / "objects" / "info" / "alternates").write_bytes(os.fsencode(repository.path_of("objects")) + b"\n")
    if (shallow := repository.path_of("shallow")).exists():
        shutil.copyfile(shallow, own / "shallow")
    # Builds ask for the newest tag, or count the commits of a branch.
    refs = repository.ask("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
    (own / "packed-refs").write_text(f"{refs}\n" if refs else "", encoding="utf-8", errors="surrogateescape")
    _take_configuration(repository, root, ask)
    ask(root, "checkout", "--quiet", "--detach", commit.id)
    changed = ask(root, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")
    if changed:
        shown = "; ".join(changed.splitlines()[:_SHOWN_FILES])
        message = f"cannot check out {commit.name} as it was committed: {shown}"
        raise DataError(message, hint="objects or filters of the repository may be missing", code="data.git")
    if (root / ".gitmodules").exists():
        _bring_submodules(repository.modules, root, ask)


def _take_configuration(repository: Repository, root: Path, ask: Callable[..., str]) -> None:
    """Take over what decides what is in files: filters, ends of lines, where missing objects are."""
    listed = run_git(repository.root, ["config", "--local", "--null", "--list"]).stdout
    for entry in listed.split("\0"):
        name, _, value = entry.partition("\n")
        if _OF_FILES.fullmatch(name):
            ask(root, "config", "--add", name, value)
    attributes = repository.path_of("info/attributes")
    if attributes.exists():
        (root / ".git" / "info").mkdir(exist_ok=True)
        shutil.copyfile(attributes, root / ".git" / "info" / "attributes")
    large_files = repository.path_of("lfs")
    if large_files.is_dir():
        ask(root, "config", "lfs.storage", str(large_files))


def _bring_submodules(copies: Path, root: Path, ask: Callable[..., str]) -> None:
    """Check out submodules, and those inside of them, from the user's own copies where there are any."""
    ask(root, "submodule", "--quiet", "init")
    listed = ask(root, "config", "--null", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
    entries = [entry.partition("\n") for entry in listed.split("\0") if entry]
    paths = {name.removeprefix("submodule.").removesuffix(".path"): path for name, _, path in entries}
    own = {name: copies / name for name in paths if (copies / name).is_dir()}
    for name, copy in own.items():
        ask(root, "config", f"submodule.{name}.url", str(copy))
    local = ("-c", "protocol.file.allow=always") if own else ()
    ask(root, *local, "submodule", "--quiet", "update", "--init")
    for name, path in paths.items():
        # Git ignores paths that lead out of the checkout, and so does this.
        if ".." not in Path(path).parts and (root / path / ".gitmodules").exists():
            _bring_submodules(copies / name / "modules", root / path, ask)


def _build(command: str, folder: Path, log: Path, timeout_s: float) -> tuple[int, bool, float]:
    """Build by a launcher, which ends every process of it after the build, the limit, or this process.

    Returns
    -------
    tuple
        Exit status, negative for a signal; whether the limit ended it; how long it took [s].
    """
    # Here: they take a while to load, and most builds are there already.
    from steelyard.run.executor.resident import BARE, require_started, resident  # noqa: PLC0415

    environment = {**outside_hooks(), "PWD": str(folder)}
    kept = environment.keys() - set(unpassable(environment))
    spec = RunSpec(
        id="build",
        command=("sh", "-c", command),
        environment={name: environment[name] for name in kept},
        working_directory=str(folder),
        standard_output=OutputStream.appended(str(log)),
        standard_error=OutputStream.appended(str(log)),
        limits=Limits(wall_time_ns=round(timeout_s * NS_PER_S)),
    )
    with resident(BARE) as worker:
        (outcome,) = worker.execute(spec, timeout_s=timeout_s + _PATIENCE_S)
    require_started([outcome], "sh", BARE)
    # Without the start of the launcher, which takes as long as a short build on a busy machine.
    seconds = ((outcome.end_ns or 0) - (outcome.start_ns or 0)) / NS_PER_S
    if outcome.status is RunStatus.WALL_TIMEOUT:
        return -signal.SIGKILL, True, seconds
    status = -(outcome.signal or signal.SIGKILL) if outcome.exit_code is None else outcome.exit_code
    return status, False, seconds
