"""What a catalogue must survive: exchanged folders, other writers, strange names and files, no home."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fixtures.postgresql import missing, served
from steelyard.catalogue import Catalogue
from steelyard.catalogue.database import without_password
from steelyard.catalogue.scan import scan
from steelyard.cli import execute
from steelyard.errors import CapabilityError, DataError, UsageError
from steelyard.record.labels import read_labels
from steelyard.record.provenance import read_provenance, write_provenance
from steelyard.share.complete_result import strangers

PACKAGES = Path(__file__).parents[2] / "fixtures" / "packages"


def quiet(_done: int, _total: int) -> None:
    """Watch nothing."""


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    place = str(tmp_path / "catalogue.sqlite")
    monkeypatch.setenv("STEELYARD_CATALOGUE", place)
    return place


def exchange(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def test_a_result_is_not_removed_in_place_of_the_one_that_was_there(
    catalogue: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Catalogue.at(catalogue) as opened:
        scan(opened, [results], quiet)
        first = opened.entry(results / "compare").id
        second = opened.entry(results / "run-compare").id
    exchange(results / "compare", results / "run-compare")
    for words in (["rm", first, "--yes"], ["tag", first, "mine"], ["open", first]):
        assert execute(["results", *words]) == 5
        assert "holds another result now" in capsys.readouterr().err
    assert (results / "compare" / "plan.json").exists()
    assert (results / "run-compare" / "plan.json").exists()
    with Catalogue.at(catalogue) as opened:
        assert opened.entry(results / "compare").id == second, "a path is what is there"
        done = scan(opened, [results], quiet)
        assert opened.entry(first).folder == results / "run-compare"
        assert opened.entry(second).folder == results / "compare"
        assert not done.new


def test_what_is_not_of_a_result_keeps_it_from_being_removed(
    catalogue: str, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = results / "compare"
    assert strangers(result) == []
    own = (
        "tables/mine.R",
        "measurements/thesis.tex",
        "figures/paper.tex",
        "mine.parquet",
        "data.parquet/x",
        "notes",
    )
    for name in own:
        path = result / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("years of work", encoding="utf-8")
        assert execute(["results", "rm", str(result), "--yes"]) == 5
        assert name.split("/")[-1 if "data" not in name else 0] in capsys.readouterr().err
        assert path.read_text(encoding="utf-8") == "years of work"
        shutil.rmtree(path.parent) if name.startswith("data") else path.unlink()
    (result / "logs").symlink_to(results)
    assert execute(["results", "rm", str(result), "--yes"]) == 5
    (result / "logs").unlink()
    assert execute(["results", "rm", str(result), "--yes"]) == 0
    assert not result.exists()
    assert (results / "run-compare").exists()


@pytest.mark.parametrize("is_known_before", [True, False])
def test_a_result_whose_entry_cannot_be_deleted_stays(
    catalogue: str, results: Path, capsys: pytest.CaptureFixture[str], *, is_known_before: bool
) -> None:
    """By a rule of the database, or by one that is found broken when all is to be kept."""
    result = results / "compare"
    when = "" if is_known_before else " DEFERRABLE INITIALLY DEFERRED"
    with Catalogue.at(catalogue) as opened:
        scan(opened, [results], quiet)
        identifier = opened.entry(result).id
    with closing(sqlite3.connect(catalogue)) as database:
        database.execute(f"CREATE TABLE pinned (result TEXT REFERENCES result (id){when})")
        database.execute("INSERT INTO pinned VALUES (?)", (identifier,))
        database.commit()
    assert execute(["results", "rm", identifier, "--yes"]) == 5
    assert "cannot use the catalogue" in capsys.readouterr().err
    assert (result / "plan.json").exists()
    with Catalogue.at(catalogue) as opened:
        assert opened.entry(identifier).folder == result


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs_root: mounts a file system")
def test_a_mount_inside_of_a_result_is_left_alone(catalogue: str, results: Path) -> None:
    result = results / "compare"
    (result / "logs").mkdir()
    line = (
        f"mount -t tmpfs none '{result}/logs' && echo mine > '{result}/logs/x' && "
        f"'{sys.executable}' -m steelyard results rm '{result}' --yes; echo $?; cat '{result}/logs/x'"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", line],
        env={**os.environ, "STEELYARD_CATALOGUE": catalogue},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["5", "mine"], done.stderr
    assert (result / "plan.json").exists()


def test_an_id_that_is_a_folder_here_is_not_guessed(
    catalogue: str, results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Catalogue.at(catalogue) as opened:
        identifier = opened.register(results / "compare").id
    here = results / identifier[:4]
    shutil.copytree(results / "run-compare", here)
    monkeypatch.chdir(results)
    assert execute(["results", "rm", here.name, "--yes"]) == 5
    assert "cannot tell which result" in capsys.readouterr().err
    assert execute(["results", "rm", f"./{here.name}", "--yes"]) == 0
    assert not here.exists()
    assert (results / "compare").exists()


def test_a_database_of_something_else_is_left_alone_also_with_a_journal(tmp_path: Path) -> None:
    place = tmp_path / "bookmarks.sqlite"
    with closing(sqlite3.connect(place)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE bookmarks (x)")
        other.commit()
    with pytest.raises(DataError, match="something else"):
        Catalogue.at(place)
    with closing(sqlite3.connect(place)) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("bookmarks",)]


def test_a_name_that_is_not_text_is_kept_as_it_is(catalogue: str, results: Path) -> None:
    strange = Path(os.fsdecode(os.fsencode(results) + b"/z\xff"))
    shutil.move(results / "compare", strange)
    with Catalogue.at(catalogue) as opened:
        done = scan(opened, [results], quiet)
        assert len(done.new) == 2
        assert ["not UTF-8" in one.problem for one in done.damaged] == [True]
        entry = opened.entry(strange)
        assert entry.folder == strange
        assert opened.entry(entry.id).folder == strange
        assert scan(opened, [results], quiet).unchanged == 3


@pytest.mark.parametrize(
    "name", ["runs.parquet", "measurements/values.parquet", "tables/x.csv", "provenance.json"]
)
@pytest.mark.timeout(20)
def test_a_named_pipe_is_not_waited_for(catalogue: str, results: Path, name: str) -> None:
    pipe = results / "compare" / name
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with Catalogue.at(catalogue) as opened:
        done = scan(opened, [results], quiet)
        assert [Path(name).name in one.problem for one in done.damaged] == [True]
        assert len(done.new) == 2


@pytest.mark.timeout(20)
def test_a_folder_whose_provenance_became_a_pipe_is_still_found(catalogue: str, results: Path) -> None:
    with Catalogue.at(catalogue) as opened:
        entry = opened.register(results / "compare")
        (entry.folder / "provenance.json").unlink()
        os.mkfifo(entry.folder / "provenance.json")
        assert opened.entry(entry.id).folder == entry.folder


def test_a_link_that_a_program_left_and_leads_nowhere_damages_nothing(catalogue: str, results: Path) -> None:
    left = results / "compare" / "traces" / "000000.01"
    left.mkdir(parents=True)
    (left / "latest").symlink_to("gone")
    with Catalogue.at(catalogue) as opened:
        assert opened.register(results / "compare").state == "complete"


def test_without_a_home_the_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STEELYARD_CATALOGUE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)

    def nobody() -> Path:
        message = "Could not determine home directory."
        raise RuntimeError(message)

    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(CapabilityError, match="home folder") as caught:
        Catalogue.at()
    assert "XDG_DATA_HOME" in str(caught.value.hint)
    monkeypatch.undo()
    with pytest.raises(UsageError, match="nobody here"):
        Catalogue.at("~no-such-user/c.sqlite")


def test_tags_that_are_given_at_once_are_all_kept(catalogue: str, results: Path) -> None:
    words = [sys.executable, "-m", "steelyard", "results", "tag", str(results / "compare")]
    environment = {**os.environ, "STEELYARD_CATALOGUE": catalogue}
    started = [subprocess.Popen([*words, f"t{at}"], env=environment) for at in range(6)]
    assert [process.wait() for process in started] == [0] * 6
    assert len(read_labels(results / "compare").tags) == 6


def test_what_is_removed_beside_a_scan_is_not_listed(catalogue: str, results: Path) -> None:
    with Catalogue.at(catalogue) as opened:
        done = scan(
            opened, [results], lambda _done, _total: shutil.rmtree(results / "compare", ignore_errors=True)
        )
        assert len(done.new) == 2
        assert not done.damaged
        assert opened.entries().total == 2


def test_a_limit_beyond_all_numbers_is_all(catalogue: str, results: Path) -> None:
    with Catalogue.at(catalogue) as opened:
        scan(opened, [results], quiet)
    assert execute(["results", "list", "--limit", "99999999999999999999"]) == 0


def test_a_password_is_not_said(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    for address in ("postgresql://u:geheim@[bad/x", "postgres://u:gehe@im@127.0.0.1:1/x"):
        assert "gehe" not in without_password(address)
        with pytest.raises((DataError, UsageError)) as caught:
            Catalogue.at(address)
        assert not {"geheim", "gehe", "im@"} & set(str(caught.value.message).replace("@", "@ ").split())
        assert "gehe" not in caught.value.message


@pytest.mark.needs_postgres
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
@pytest.mark.timeout(60)
def test_a_writer_that_is_suspended_is_not_waited_for_without_end(results: Path) -> None:
    import psycopg  # noqa: PLC0415 - an extra

    with served() as place:
        Catalogue.at(place).__exit__(None, None, None)
        with psycopg.connect(place) as other:
            other.execute("SELECT pg_advisory_xact_lock(360161)")
            began_s = time.monotonic()
            with Catalogue.at(place, patience_s=1) as opened, pytest.raises(DataError, match="timeout"):
                opened.register(results / "compare")
            assert time.monotonic() - began_s < 5


def test_a_full_disk_keeps_nobody_from_reading(catalogue: str, results: Path) -> None:
    with Catalogue.at(catalogue) as opened:
        total = len(scan(opened, [results], quiet).new)
    # Nothing can be written to any file, as on a full disk; pipes are none.
    words = f"ulimit -f 0; trap '' XFSZ; exec {shlex.quote(sys.executable)} -B -m steelyard results"
    listed = subprocess.run(
        ["bash", "-c", f"{words} list --json"], capture_output=True, text=True, check=False
    )
    assert listed.returncode == 0, listed.stderr
    assert len(json.loads(listed.stdout)["results"]) == total
    scanned = subprocess.run(
        ["bash", "-c", f"{words} scan {shlex.quote(str(results))}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert scanned.returncode != 0
    assert "cannot use the catalogue" in scanned.stderr
    assert "hint:" in scanned.stderr
    assert "Traceback" not in scanned.stderr


KILLED = """
import os
import shutil
import signal
import sys
from steelyard.cli import execute
copytree = shutil.copytree
def cut(*values, **options):
    copytree(*values, **options)
    os.kill(os.getpid(), signal.SIGKILL)
shutil.copytree = cut
execute(sys.argv[1:])
"""


@pytest.mark.parametrize("has_provenance", [False, True])
def test_an_import_that_was_cut_off_is_not_complete(
    catalogue: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, has_provenance: bool
) -> None:
    table, result = tmp_path / "t.csv", tmp_path / "t"
    table.write_text("value,workload\n" + "1,a\n2,b\n" * 10, encoding="utf-8")
    assert execute(["import", "csv", str(table), "--unit", "ms", "--out", str(result)]) == 0
    if has_provenance:
        write_provenance(result, replace(read_provenance(result), tables={}))
    else:
        (result / "provenance.json").unlink()
    capsys.readouterr()
    assert execute(["open", str(result), "--no-browser"]) == 5
    assert "was cut off" in capsys.readouterr().err
    execute(["analyse", str(result)])
    with Catalogue.at(catalogue) as opened:
        scan(opened, [result], quiet)
        assert [each.state for each in opened.entries().entries] == ["incomplete"]


def test_a_package_whose_opening_is_killed_is_no_result(
    catalogue: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = PACKAGES / "steelyard-0.1.0-run-compare.zip"
    words = ["open", str(package), "--no-browser", "--out", str(tmp_path / "results" / "theirs")]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert execute(["results", "scan", str(tmp_path / "results")]) == 0
    assert "0 result folders" in capsys.readouterr().out
    assert execute(words) == 0
    with Catalogue.at(catalogue) as opened:
        assert [each.state for each in opened.entries().entries] == ["complete"]
