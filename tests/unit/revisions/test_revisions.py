"""Revisions of real repositories: which ones are meant, how they are built, and that nothing else changes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.git_repository import MadeRepository
from steelyard.errors import DataError, SteelyardError, UsageError
from steelyard.revisions.build import BuildCache, build_key
from steelyard.revisions.repository import Repository, chosen, outside_hooks
from steelyard.run.executor.worker import Worker

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.revisions.build import Build

BUILD = "cat n > made && git describe --tags --always > version"


@pytest.fixture
def made(tmp_path: Path) -> MadeRepository:
    """`main` has moved on since `work` left it."""
    made = MadeRepository(tmp_path / "source")
    made.commit("first", n="1", _dot_gitignore="made\nversion\n")
    made.git("tag", "v1")
    made.git("checkout", "--quiet", "-b", "work")
    made.commit("slower", n="2")
    made.git("checkout", "--quiet", "main")
    made.commit("readme", README="text")
    made.git("checkout", "--quiet", "work")
    return made


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(tmp_path / "builds")


def built(cache: BuildCache, made: MadeRepository, name: str, command: str | None = BUILD) -> Build:
    repository = Repository(made.folder)
    with cache.building(repository, repository.commit(name), command) as found:
        return found


def names(made: MadeRepository, *asked: str, is_exact: bool = False) -> tuple[list[str], list[str]]:
    commits, remarks = chosen(Repository(made.folder), asked, is_exact=is_exact)
    return [commit.subject for commit in commits], remarks


def alive(command: str) -> bytes:
    """Give who runs a command; what is dead and not collected yet does no harm."""
    words = ["pgrep", "-f", "-x", "-r", "R,S,D", command]
    return subprocess.run(words, capture_output=True, check=False).stdout


def test_the_baseline_is_where_the_branches_parted(made: MadeRepository) -> None:
    assert names(made, "main", "HEAD")[0] == ["first", "slower"]
    assert names(made, "main", "HEAD", is_exact=True)[0] == ["readme", "slower"]
    assert names(made, "v1", "HEAD") == (["first", "slower"], [])


def test_a_branch_that_contains_the_other_is_compared_as_it_is(made: MadeRepository) -> None:
    subjects, remarks = names(made, "main", "v1")
    assert subjects == ["readme", "first"]
    assert "contains another revision" in remarks[0]


def test_branches_without_a_common_commit_are_compared_as_they_are(made: MadeRepository) -> None:
    made.git("checkout", "--quiet", "--orphan", "other")
    made.commit("alone", n="7")
    subjects, remarks = names(made, "work", "other")
    assert subjects == ["slower", "alone"]
    assert "no commit in common" in remarks[0]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (("main",), "two revisions"),
        (("main", "main"), "given twice"),
        (("main", "no-such"), "no revision `no-such`"),
        (("main", "--upload-pack=touch x"), "no revision"),
        (("main", "work:n"), "no revision"),
        (("main", ""), "no revision"),
    ],
)
def test_revisions_that_are_none_are_named(made: MadeRepository, asked: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        names(made, *asked)


def test_outside_of_a_repository_the_reason_is_git_s(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no working tree of a Git repository: .*not a git repository"):
        Repository(tmp_path)


def test_a_build_sees_its_own_files_and_tags(made: MadeRepository, cache: BuildCache) -> None:
    old, new = built(cache, made, "v1"), built(cache, made, "work")
    assert (old.folder / "made").read_text() == "1"
    assert (new.folder / "made").read_text() == "2"
    assert (old.folder / "version").read_text().strip() == "v1"
    assert len(str(old.folder)) == len(str(new.folder)), "the length of a path shifts the stack"
    assert old.facts(["./made", "made", "/bin/sh"])["programs"].keys() == {"./made"}


def test_the_repository_is_left_alone(made: MadeRepository, cache: BuildCache) -> None:
    (made.folder / "n").write_text("3")
    (made.folder / "new").write_text("x")

    def state() -> tuple[str, ...]:
        return (
            made.git("status", "--porcelain"),
            made.git("for-each-ref"),
            made.git("worktree", "list"),
            made.git("stash", "list"),
            (made.folder / ".git" / "config").read_text(),
            made.git("ls-files", "--stage"),
        )

    before = state()
    built(cache, made, "main")
    built(cache, made, ".")
    assert state() == before


def test_the_same_files_are_built_once(made: MadeRepository, cache: BuildCache) -> None:
    first = built(cache, made, "work")
    made.commit("no change")
    again = built(cache, made, "HEAD")
    assert (first.is_reused, again.is_reused) == (False, True)
    assert again.folder == first.folder
    assert not built(cache, made, "HEAD", "true").is_reused


def test_another_compiler_flag_builds_again(
    made: MadeRepository, cache: BuildCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(cache, made, "work")
    monkeypatch.setenv("CFLAGS", "-O3")
    assert not built(cache, made, "work").is_reused


def test_the_working_tree_is_a_revision(made: MadeRepository, cache: BuildCache) -> None:
    assert Repository(made.folder).commit(".").subject == "no change since HEAD"
    (made.folder / "n").write_text("3")
    (made.folder / "new file").write_text("x")
    (made.folder / "steelyard-results" / "one").mkdir(parents=True)
    (made.folder / "steelyard-results" / "one" / "plan.json").write_text("{}")
    found = built(cache, made, ".")
    assert (found.folder / "made").read_text() == "3"
    assert (found.folder / "new file").exists()
    assert not (found.folder / "steelyard-results").exists()
    assert not (found.folder / ".git" / "refs" / "heads" / "working").exists()
    (made.folder / "steelyard-results" / "two").write_text("")
    assert built(cache, made, ".").is_reused


def test_a_build_that_fails_says_why_and_is_tried_again(made: MadeRepository, cache: BuildCache) -> None:
    found = built(cache, made, "work", "echo compiling; echo 'no such header' >&2; exit 3")
    assert (found.status, found.exit_status) == ("failed", 3)
    assert "compiling; no such header" in found.failure().message
    other = BuildCache(cache.folder)
    assert not built(other, made, "work", "echo compiling; echo 'no such header' >&2; exit 3").is_reused


def test_a_failed_build_twice_in_one_call_is_made_once(made: MadeRepository, cache: BuildCache) -> None:
    repository = Repository(made.folder)
    with ExitStack() as stack:
        first = stack.enter_context(cache.building(repository, repository.commit("work"), "exit 1"))
        second = stack.enter_context(cache.building(repository, repository.commit("HEAD"), "exit 1"))
    assert first.folder == second.folder


def test_an_interrupted_build_leaves_nothing(
    made: MadeRepository, cache: BuildCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = made.folder.parent / "began"

    await_reply = Worker.await_reply

    def interrupted(worker: Worker, timeout_s: float, said: str) -> Any:
        if said != "did not answer":
            return await_reply(worker, timeout_s, said)
        while not began.exists():
            time.sleep(0.02)
        raise KeyboardInterrupt

    monkeypatch.setattr(Worker, "await_reply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        built(cache, made, "work", f"sleep 76543 & touch {began}; sleep 76543")
    assert [path.suffix for path in cache.folder.iterdir()] == [".lock"]
    assert not alive("sleep 76543")


@pytest.mark.parametrize(
    "command", ["sleep 76544", "setsid sleep 76544 & (sleep 76544 &); cat n; sleep 76544"]
)
def test_a_build_that_hangs_is_ended_with_all_its_processes(made: MadeRepository, command: str) -> None:
    cache = BuildCache(made.folder.parent / "builds", timeout_s=0.5)
    found = built(cache, made, "work", command)
    assert (found.status, found.exit_status, found.timeout_s) == ("failed", -9, 0.5)
    assert found.seconds >= 0.5
    failure = found.failure()
    assert f"by `{command}`: it had not ended after 500.0 ms and was ended" in failure.message
    assert failure.hint is not None
    assert failure.hint.startswith("`--build-timeout` gives it more time")
    assert not alive("sleep 76544")


def test_what_a_build_leaves_running_ends_with_it(made: MadeRepository, cache: BuildCache) -> None:
    found = built(cache, made, "work", "setsid sleep 76545 & cat n; sleep 0.2")
    assert found.status == "ready"
    assert found.seconds >= 0.2
    assert not alive("sleep 76545")


def test_a_build_ends_with_the_process_that_wanted_it(made: MadeRepository, cache: BuildCache) -> None:
    program = (
        "import sys; from pathlib import Path; from steelyard.revisions.build import BuildCache;"
        "from steelyard.revisions.repository import Repository; repository = Repository(Path(sys.argv[1]));"
        "commit = repository.commit('work'); cache = BuildCache(Path(sys.argv[2]));"
        "cache.building(repository, commit, 'echo $$ > group; sleep 777 & sleep 777').__enter__()"
    )
    process = subprocess.Popen([sys.executable, "-c", program, made.folder, cache.folder])
    while not (found := list(cache.folder.glob("*/group"))) or not found[0].read_text().endswith("\n"):
        assert process.poll() is None
        time.sleep(0.02)
    group = found[0].read_text().strip()
    process.kill()
    process.wait()
    while subprocess.run(["pgrep", "-g", group, "-r", "R,S,D"], capture_output=True, check=False).stdout:
        time.sleep(0.02)  # the limit of the test ends this
    assert built(cache, made, "work", "true").status == "ready"


def test_two_who_want_the_same_build_make_it_once(made: MadeRepository, cache: BuildCache) -> None:
    command = f"sleep 0.3; echo x >> {made.folder.parent}/count"
    found: list[bool] = []

    def build() -> None:
        found.append(built(BuildCache(cache.folder), made, "work", command).is_reused)

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [False, True, True]
    assert (made.folder.parent / "count").read_text() == "x\n"


def test_old_builds_go_and_used_ones_stay(made: MadeRepository, cache: BuildCache) -> None:
    repository = Repository(made.folder)
    old = built(cache, made, "v1")
    with cache.building(repository, repository.commit("work"), BUILD) as used:
        for lock in cache.folder.glob("*.lock"):
            os.utime(lock, (0, 0))
        cache.tidy()
        assert used.folder.exists()
    assert not old.folder.exists()
    assert len(list(cache.folder.glob("*.lock"))) == 1


def test_a_folder_below_the_root_is_where_it_builds(made: MadeRepository, cache: BuildCache) -> None:
    made.commit("sub", sub__n="9")
    repository = Repository(made.folder / "sub")
    with cache.building(repository, repository.commit("HEAD"), "cp n made") as found:
        assert (found.folder / "made").read_text() == "9"
        assert found.folder.name == "sub"
    with (
        pytest.raises(DataError, match="does not contain the folder `sub`"),
        cache.building(repository, repository.commit("v1"), "true"),
    ):
        pass


def test_a_shallow_clone_at_a_detached_head_is_built(tmp_path: Path, made: MadeRepository) -> None:
    place = tmp_path / "shallow"
    made.git("clone", "--quiet", "--depth=1", "--branch=work", made.folder.as_uri(), str(place))
    shallow = MadeRepository(place)
    shallow.git("checkout", "--quiet", "--detach")
    (place / "n").write_text("5")
    cache = BuildCache(tmp_path / "builds")
    assert (built(cache, shallow, ".").folder / "made").read_text() == "5"
    assert (built(cache, shallow, "HEAD").folder / "made").read_text() == "2"
    with pytest.raises(UsageError, match="no revision `v1`") as caught:
        Repository(place).commit("v1")
    assert caught.value.hint is not None
    assert "unshallow" in caught.value.hint


def test_a_linked_worktree_and_a_hook_see_the_right_repository(
    tmp_path: Path, made: MadeRepository, cache: BuildCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = MadeRepository(tmp_path / "other")
    other.commit("elsewhere", n="100")
    made.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), "v1")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    repository = Repository(tmp_path / "linked")
    with cache.building(repository, repository.commit("HEAD"), BUILD) as found:
        assert (found.folder / "made").read_text() == "1"
    (tmp_path / "linked" / "n").write_text("8")
    with cache.building(repository, repository.commit("."), BUILD) as found:
        assert (found.folder / "made").read_text() == "8"


def test_submodules_come_from_the_copies_that_are_here(
    tmp_path: Path, made: MadeRepository, cache: BuildCache
) -> None:
    part = MadeRepository(tmp_path / "part")
    part.commit("part", code="inner")
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.folder), "lib part")
    made.commit("with a part")
    part.folder.rename(tmp_path / "gone")
    found = built(cache, made, "HEAD", "cat 'lib part/code' > made")
    assert (found.folder / "made").read_text() == "inner"


def test_submodules_inside_of_submodules_come_from_the_copies_that_are_here(
    tmp_path: Path, made: MadeRepository, cache: BuildCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.file.allow")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "always")
    inner, outer = MadeRepository(tmp_path / "inner"), MadeRepository(tmp_path / "outer")
    inner.commit("inner", code="innermost")
    outer.git("submodule", "--quiet", "add", str(inner.folder), "deep")
    outer.commit("outer")
    made.git("submodule", "--quiet", "add", str(outer.folder), "lib")
    made.git("submodule", "--quiet", "update", "--init", "--recursive")
    made.commit("with parts")
    for name in ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"):
        monkeypatch.delenv(name)
    for part in (inner, outer):
        part.folder.rename(tmp_path / f"{part.folder.name} gone")
    found = built(cache, made, "HEAD", "cat lib/deep/code > made")
    assert (found.folder / "made").read_text() == "innermost"
    # Without a copy the reason is Git's, and the hint says what brings it.
    (made.folder / ".git/modules/lib/modules/deep").rename(tmp_path / "copy")
    with pytest.raises(DataError, match=r"cannot check out .*: `git submodule` failed: ") as caught:
        built(cache, made, "HEAD", "true")
    assert "git submodule update --init --recursive" in str(caught.value.hint)


def test_a_shallow_clone_says_what_it_does_not_know(tmp_path: Path, made: MadeRepository) -> None:
    place = tmp_path / "job"
    made.git("clone", "--quiet", "--depth=1", "--branch=work", made.folder.as_uri(), str(place))
    job = MadeRepository(place)
    job.git("fetch", "--quiet", "--depth=1", "origin", "main:refs/remotes/origin/main")
    subjects, remarks = names(job, "origin/main", "HEAD")
    assert subjects == ["readme", "slower"]
    assert "counts as a change of them; a whole clone (`fetch-depth: 0`" in remarks[0]
    job.git("fetch", "--quiet", "--unshallow", "origin", "main", "work")
    assert names(job, "origin/main", "HEAD")[0] == ["first", "slower"]


def test_a_bare_repository_and_a_merge_that_has_not_ended_are_refused(
    tmp_path: Path, made: MadeRepository
) -> None:
    made.git("clone", "--quiet", "--bare", str(made.folder), str(tmp_path / "bare"))
    with pytest.raises(UsageError) as bare:
        Repository(tmp_path / "bare")
    assert "git worktree add" in str(bare.value.hint)
    made.git("checkout", "--quiet", "-b", "other", "v1")
    made.commit("faster", n="0")
    with pytest.raises(subprocess.CalledProcessError):
        made.git("merge", "work")
    with pytest.raises(UsageError, match=r"`\.` has conflicts: `n` is not merged"):
        Repository(made.folder).commit(".")


def test_names_of_files_and_folders_may_be_anything(tmp_path: Path, cache: BuildCache) -> None:
    made = MadeRepository(tmp_path / "a b\tc'\"ü")
    made.commit("x", n="4", **{"with space $(touch pwned)": "y"})
    found = built(cache, made, "HEAD", "cat n > made")
    assert (found.folder / "made").read_text() == "4"
    assert not (tmp_path / "pwned").exists()


def test_a_cache_that_cannot_be_written_is_named(made: MadeRepository, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SteelyardError, match="file") as caught:
        built(BuildCache(tmp_path / "file"), made, "HEAD")
    assert "STEELYARD_BUILDS" in str(caught.value.hint)


def test_what_runs_left_in_a_checkout_does_not_stay(made: MadeRepository, cache: BuildCache) -> None:
    first = built(cache, made, "work")
    (first.folder / "history.txt").write_text("of runs")
    again = built(BuildCache(cache.folder), made, "work")
    assert not again.is_reused
    assert not (again.folder / "history.txt").exists()
    (again.folder / "made").unlink()
    assert (built(BuildCache(cache.folder), made, "work").folder / "made").exists()
    assert built(BuildCache(cache.folder), made, "work").is_reused


def test_a_package_that_is_imported_builds_nothing_again(
    made: MadeRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second comparison in a process has what the first one imported, and goes on with its checkouts."""
    repository = Repository(made.folder)
    commit = repository.commit("HEAD")
    monkeypatch.delenv("_RJEM_MALLOC_CONF", raising=False)
    before = build_key(repository, commit, BUILD)
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "dirty_decay_ms:500")  # as `import polars` does
    assert build_key(repository, commit, BUILD) == before
    assert "_RJEM_MALLOC_CONF" not in outside_hooks()
    monkeypatch.setenv("OTHER_MALLOC_CONF", "dirty_decay_ms:500")
    assert build_key(repository, commit, BUILD) != before


def test_another_variable_or_compiler_builds_again(
    made: MadeRepository, cache: BuildCache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "bin" / "gcc"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    built(cache, made, "work")
    monkeypatch.setenv("SSH_AUTH_SOCK", "other")
    assert built(cache, made, "work").is_reused
    monkeypatch.setenv("N", "8000000")
    assert not built(cache, made, "work").is_reused
    monkeypatch.delenv("N")
    tool.write_text("#!/bin/sh\necho newer\n")
    assert not built(cache, made, "work").is_reused


def test_filters_and_attributes_of_the_repository_hold(made: MadeRepository, cache: BuildCache) -> None:
    made.git("config", "filter.f.smudge", "sed s/1/one/")
    made.git("config", "filter.f.clean", "sed s/one/1/")
    (made.folder / ".git" / "info" / "attributes").write_text("n filter=f\n")
    made.git("checkout", "--quiet", "v1", "--", "n")
    assert (built(cache, made, "v1").folder / "n").read_text() == "one"


def test_a_clone_without_its_files_is_completed_or_refused(tmp_path: Path, made: MadeRepository) -> None:
    made.git("config", "uploadpack.allowFilter", "true")
    place = tmp_path / "partial"
    made.git("clone", "--quiet", "--filter=blob:none", "--branch=work", made.folder.as_uri(), str(place))
    partial = MadeRepository(place)
    cache = BuildCache(tmp_path / "builds")
    assert (built(cache, partial, "HEAD~1").folder / "made").read_text() == "1"
    made.folder.rename(tmp_path / "gone")
    made = MadeRepository(tmp_path / "gone")
    with pytest.raises(DataError, match="cannot check out"):
        built(cache, partial, "origin/main", "true")


def test_an_empty_message_and_the_first_second_of_time_are_read(
    made: MadeRepository, cache: BuildCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_DATE", "@0 +0000")
    made.git("commit", "--quiet", "--allow-empty", "--allow-empty-message", "--message", "")
    assert Repository(made.folder).commit("HEAD").subject == ""
    (made.folder / "n").write_text("9")
    assert (built(cache, made, ".").folder / "made").read_text() == "9"


def test_hooks_of_the_user_do_not_see_the_checkout(
    made: MadeRepository, cache: BuildCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = tmp_path / "hooks" / "post-checkout"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hook.parent))
    assert (built(cache, made, "work").folder / "made").exists()


def test_changes_that_no_commit_could_hold_are_refused(tmp_path: Path, made: MadeRepository) -> None:
    part = MadeRepository(tmp_path / "part")
    part.commit("part", code="inner")
    made.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part.folder), "lib")
    made.commit("with a part")
    (made.folder / "lib" / "code").write_text("changed")
    with pytest.raises(UsageError, match="inside of the submodule `lib`"):
        Repository(made.folder).commit(".")
    made.git("submodule", "--quiet", "foreach", "git checkout --quiet code")
    MadeRepository(made.folder / "nested").commit("alone", x="1")
    with pytest.raises(UsageError, match="`nested`: it is a repository of its own"):
        Repository(made.folder).commit(".")


def test_a_file_that_git_was_told_to_ignore_changes_of_is_taken_as_it_is(
    made: MadeRepository, cache: BuildCache
) -> None:
    made.git("update-index", "--assume-unchanged", "n")
    (made.folder / "n").write_text("7")
    assert (built(cache, made, ".").folder / "made").read_text() == "7"
