"""A Git repository and its revisions; nothing in it is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DataError, UsageError
from steelyard.run.environment import callers_environment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORKING_TREE: Final = "."
"""In place of a revision: the files as they are, changes that are not committed included."""
SHORT_DIGITS: Final = 9
_SHOWN_WORDS: Final = 60
_LIKE_GIT: Final = frozenset(
    (
        *("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_COMMON_DIR"),
        *("GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"),
    )
)
"""Set inside of hooks, where they would lead to another repository than the one of the folder."""
_NO_RESULTS: Final = ":(top,exclude,glob)**/steelyard-results/**"
"""Results that lie in the working tree are none of its files."""
NOBODY: Final = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "steelyard"), ("EMAIL", "steelyard@localhost"))
}


@dataclass(frozen=True, slots=True)
class Commit:
    """A revision that was found.

    Parameters
    ----------
    asked : str
        As the user named it.
    id : str
        Of the commit.
    tree : str
        Of its files.
    committed_s : int
        When, in seconds since 1970.
    subject : str
        First line of its message.
    """

    asked: str
    id: str
    tree: str
    committed_s: int = 0
    subject: str = ""

    @property
    def name(self) -> str:
        """Name for people, such as ``main 3fa2c1d07``."""
        if self.asked == WORKING_TREE:
            return f"working tree {self.tree[:SHORT_DIGITS]}"
        short = self.id[:SHORT_DIGITS]
        return short if self.id.startswith(self.asked) else f"{self.asked} {short}"


class Repository:
    """The repository around a folder.

    Parameters
    ----------
    folder : Path
        Anywhere in its working tree.

    Raises
    ------
    CapabilityError
        If there is no Git.
    UsageError
        If the folder is in no repository.
    """

    def __init__(self, folder: Path) -> None:
        if shutil.which("git") is None:
            message = "revisions need `git`, which is not on the PATH"
            raise CapabilityError(
                message, hint="install git, e.g. apt-get install git", code="capability.git"
            )
        self._folder = folder
        done = run_git(folder, ["rev-parse", "--show-toplevel"])
        if done.returncode != 0:
            said = " ".join(done.stderr.split())
            message = f"`{folder}` is in no working tree of a Git repository: {said}"
            hint = "go into the repository whose revisions are to be compared"
            if self._try("rev-parse", "--is-bare-repository") == "true":
                hint = "the repository is bare: `git worktree add FOLDER`, and go there"
            elif "safe.directory" in said:
                hint = "if you trust its owner, call what Git names"
            raise UsageError(message, hint=hint)
        self.root = Path(done.stdout.removesuffix("\n"))
        self.below = Path(self.ask("rev-parse", "--show-prefix") or ".")
        """The folder as seen from the root."""

    def ask(self, *arguments: str, environment: Mapping[str, str] | None = None) -> str:
        """Give what Git answers.

        Raises
        ------
        DataError
            If it fails; the message has what it said.
        """
        done = run_git(self._folder, arguments, environment)
        if done.returncode != 0:
            said = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
            message = f"`git {' '.join(arguments)}` failed in `{self._folder}`: {said}"
            raise DataError(message, code="data.git")
        return done.stdout.strip("\n")

    def commit(self, asked: str) -> Commit:
        """Give a revision by any name that Git knows, or the working tree by ``.``.

        Raises
        ------
        UsageError
            If there is none of that name.
        """
        if asked == WORKING_TREE:
            return self._working_tree()
        # The name stands behind the end of options: it may begin with a hyphen.
        name = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}"]
        done = run_git(self._folder, name)
        found = done.stdout.strip()
        if done.returncode != 0 or not found:
            # Of what is not there Git says nothing; of what it cannot read, or finds twice, it does.
            said = " ".join(done.stderr.split()[:_SHOWN_WORDS])
            message = f"there is no revision `{asked}` in `{self.root}`" + (f": {said}" if said else "")
            hint = "`git log --oneline` lists revisions"
            if self.is_shallow:
                hint = "the repository is a shallow clone: `git fetch --unshallow` brings the rest"
            raise UsageError(message, hint=hint, code="usage.revision")
        said = self.ask("show", "-s", "--no-show-signature", "--format=%T%x1f%ct%x1f%s", found)
        tree, seconds, subject = said.split("\x1f", 2)
        return Commit(asked, found, tree, int(seconds), as_text(subject))

    def merge_base(self, commits: Sequence[Commit]) -> str | None:
        """Give the id of the newest commit that all have in common; ``None`` if there is none."""
        return self._try("merge-base", "--octopus", *(commit.id for commit in commits)) or None

    @property
    def is_shallow(self) -> bool:
        """Whether older commits were left out when it was cloned."""
        return self._try("rev-parse", "--is-shallow-repository") == "true"

    def path_of(self, name: str) -> Path:
        """Give where Git keeps a part of the repository."""
        return Path(self.ask("rev-parse", "--path-format=absolute", "--git-path", name))

    @property
    def modules(self) -> Path:
        """Where Git keeps the repositories of submodules, also of a linked worktree."""
        return Path(self.ask("rev-parse", "--path-format=absolute", "--git-common-dir")) / "modules"

    def _working_tree(self) -> Commit:
        """Give the files as they are as a commit that no branch contains."""
        head = self.commit("HEAD")
        if unmerged := self.ask("diff", "--name-only", "--diff-filter=U").splitlines():
            message = f"`{WORKING_TREE}` has conflicts: `{unmerged[0]}` is not merged"
            raise UsageError(message, hint="end the merge, or abort it", code="usage.revision")
        self._require_clean_submodules()
        with tempfile.TemporaryDirectory(prefix="steelyard-index-") as folder:
            index = Path(folder) / "index"
            beside = {"GIT_INDEX_FILE": str(index)}
            if self._try("config", "--type=bool", "core.sparseCheckout") == "true":
                # The index says what is left out. Its time tells which files may have changed since.
                shutil.copy2(self.path_of("index"), index)
            else:
                # A new index trusts no earlier look at any file.
                self.ask("read-tree", head.id, environment=beside)
            self.ask("add", "--all", "--", ":(top)", _NO_RESULTS, environment=beside)
            self._require_known_repositories(beside)
            tree = self.ask("write-tree", environment=beside)
        if tree == head.tree:
            return Commit(WORKING_TREE, head.id, tree, head.committed_s, "no change since HEAD")
        stamp = {f"GIT_{role}_DATE": f"@{head.committed_s} +0000" for role in ("AUTHOR", "COMMITTER")}
        made = self.ask(
            "commit-tree", tree, "-p", head.id, "-m", "working tree", environment={**NOBODY, **stamp}
        )
        return Commit(WORKING_TREE, made, tree, head.committed_s, "changes since HEAD")

    def _require_clean_submodules(self) -> None:
        """Refuse what no commit of the repository could hold: changes inside of submodules."""
        status = self.ask("status", "--porcelain=v2", "--ignore-submodules=none", "--untracked-files=no")
        for line in status.splitlines():
            kind, _, rest = line.partition(" ")
            state = rest.split(" ")[1] if kind in {"1", "2"} else "N..."
            if state.startswith("S") and (state[2] == "M" or state[3] == "U"):
                name = line.split(" ", 8)[-1]
                message = f"`{WORKING_TREE}` cannot hold the changes inside of the submodule `{name}`"
                raise UsageError(message, hint=f"commit them in `{name}` first", code="usage.revision")

    def _require_known_repositories(self, beside: Mapping[str, str]) -> None:
        """Refuse repositories in the working tree that are no submodules: their files would be left out."""
        listed = self.ask("ls-files", "--stage", "-z", environment=beside).split("\0")
        inside = [entry.partition("\t")[2] for entry in listed if entry.startswith("160000 ")]
        known = run_git(self.root, ["config", "--file", ".gitmodules", "--get-regexp", r"\.path$"]).stdout
        paths = {line.partition(" ")[2] for line in known.splitlines()}
        for path in inside:
            if path not in paths:
                message = f"`{WORKING_TREE}` cannot hold `{path}`: it is a repository of its own"
                raise UsageError(
                    message, hint="list it in .gitignore, or make it a submodule", code="usage.revision"
                )

    def _try(self, *arguments: str) -> str:
        done = run_git(self._folder, arguments)
        return done.stdout.strip() if done.returncode == 0 else ""


def as_text(subject: str) -> str:
    """Give a subject in which bytes of no known encoding are marked: results are written as text."""
    return subject.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def run_git(
    folder: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str] | None = None,
    given: bytes = b"",
) -> subprocess.CompletedProcess[str]:
    """Let Git work in a folder, whatever hook this process was started by."""
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(
        command,
        env={**outside_hooks(), "LC_ALL": "C.UTF-8", **(environment or {})},
        input=given,
        capture_output=True,
        check=False,
    )
    # Python's text would take a carriage return, such as one inside a subject, for the end of a line.
    return subprocess.CompletedProcess(
        done.args, done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr)
    )


def outside_hooks() -> dict[str, str]:
    """Give the environment of the caller without what Git tells its hooks."""
    return {name: value for name, value in callers_environment().items() if name not in _LIKE_GIT}


def chosen(repository: Repository, asked: Sequence[str], *, is_exact: bool) -> tuple[list[Commit], list[str]]:
    """Give the revisions to compare, the baseline first, and remarks on the choice.

    The baseline is where the first revision and the others part, so that what was added to the first since
    then does not count as a change of the others; ``is_exact`` takes the first as it is.

    Raises
    ------
    UsageError
        If there are fewer than two, one is given twice, or one does not exist.
    """
    if len(asked) < 2:  # noqa: PLR2004 - a comparison has two sides
        message = "compare needs two revisions"
        raise UsageError(message, hint="steelyard compare --rev main --rev HEAD --build make -- ./program")
    twice = next((name for number, name in enumerate(asked) if name in asked[:number]), None)
    if twice is not None:
        message = f"the revision `{twice}` is given twice"
        raise UsageError(message, hint="an A/A comparison: steelyard compare './program' './program'")
    commits = [repository.commit(name) for name in asked]
    if is_exact:
        return commits, []
    first, *others = commits
    common = repository.merge_base(commits)
    if common is None:
        why = "has no commit in common with the others"
        if repository.is_shallow:
            why += (
                " in this shallow clone, and what was added to it since they parted counts as a change of "
                "them; a whole clone (`fetch-depth: 0`, `git fetch --unshallow`) knows where they parted"
            )
        return commits, [f"`{first.asked}` {why}: it is compared as it is"]
    if common == first.id:
        return commits, []
    if any(common == other.id for other in others):
        return commits, [f"`{first.asked}` contains another revision: it is compared as it is"]
    base = repository.commit(common)
    named = ", ".join(f"`{each}`" for each in asked)
    return [base, *others], [f"the baseline {base.name} is the merge base of {named}"]
