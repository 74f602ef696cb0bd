"""The catalogue over SQLite and over a real server of PostgreSQL: what is registered is found again."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import zipfile
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fixtures.postgresql import missing, served
from steelyard.catalogue import Catalogue, Filter
from steelyard.catalogue.database import without_password
from steelyard.catalogue.folder import read_folder
from steelyard.catalogue.scan import scan
from steelyard.cli import execute
from steelyard.errors import DataError, SteelyardError, UsageError
from steelyard.record.folder_lock import claimed
from steelyard.record.labels import Labels, write_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGES = Path(__file__).parents[2] / "fixtures" / "packages"
HARNESSES = Path(__file__).parents[2] / "fixtures" / "harnesses"
SQLITE = "sqlite"
POSTGRESQL = pytest.param(
    "postgresql",
    marks=[
        pytest.mark.needs_postgres,
        pytest.mark.skipif(missing() is not None, reason=str(missing())),
        pytest.mark.timeout(60),
    ],
)


@pytest.fixture(params=[SQLITE, POSTGRESQL])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == SQLITE:
        yield str(tmp_path / "catalogue.sqlite")
    else:
        with served() as place:
            yield place


def quiet(_done: int, _total: int) -> None:
    """Watch nothing."""


def test_what_is_registered_is_found_by_each_filter(address: str, results: Path) -> None:
    with Catalogue.at(address) as catalogue:
        done = scan(catalogue, [results], quiet)
        assert (done.found, len(done.new)) == (3, 3)
        first = catalogue.register(results / "run-compare")
        assert first.state == "complete"
        assert first.verdict.startswith("`sleep 0.002` takes 5.42 times as long as `true`")
        assert (first.study, first.verdict_kind, first.cells, first.runs) == ("compare", "slower", 4, 18)
        assert first.title == "true, sleep 0.002"
        day = first.started
        asked = {
            "study": (Filter(study="compare"), 2),
            "host": (Filter(host=first.host[:6].upper()), 1),
            "since": (Filter(since=day, until=day + timedelta(seconds=1)), 1),
            "until": (Filter(until=day), 0),
            "verdict": (Filter(verdict="slower"), 2),
            "text": (Filter(text="SLEEP 5.42"), 1),
            "sign": (Filter(text="%"), 3),
            "none": (Filter(text="5_42"), 0),
            "tag": (Filter(tag="paper"), 0),
            "commit": (Filter(commit="ab"), 0),
        }
        assert {name: catalogue.entries(wanted).total for name, (wanted, _) in asked.items()} == {
            name: count for name, (_, count) in asked.items()
        }
        page = catalogue.entries(order="-started", limit=1, offset=1)
        assert (page.total, len(page.entries)) == (3, 1)
        assert scan(catalogue, [results], quiet).unchanged == 3


def test_an_id_follows_a_folder_that_moves_and_labels_outlive_the_catalogue(
    address: str, results: Path, tmp_path: Path
) -> None:
    with Catalogue.at(address) as catalogue:
        entry = catalogue.register(results / "compare")
        write_labels(entry.folder, Labels(("night", "paper"), "a note"))
        catalogue.register(entry.folder)
        moved = tmp_path / "elsewhere"
        shutil.move(entry.folder, moved)
        assert catalogue.entry(entry.id).state == "missing"
        done = scan(catalogue, [tmp_path], quiet)
        assert [one.id for one in done.moved] == [entry.id]
        again = catalogue.entries(Filter(tag="paper")).entries[0]
        assert (again.id, again.folder, again.note) == (entry.id, moved, "a note")
        catalogue.forget(entry.id)
        assert catalogue.entries(Filter(tag="paper")).total == 0
        assert catalogue.register(moved).tags == ("night", "paper")


def test_a_copy_has_an_id_of_its_own(address: str, results: Path, tmp_path: Path) -> None:
    with Catalogue.at(address) as catalogue:
        one = catalogue.register(results / "compare")
        other = catalogue.register(shutil.copytree(results / "compare", tmp_path / "copy"))
        assert one.id != other.id
        assert catalogue.register(results / "compare").id == one.id
        assert catalogue.register(tmp_path / "copy").id == other.id
        assert catalogue.entries().total == 2


def test_damaged_and_vanished_folders_are_told_and_not_lost(address: str, results: Path) -> None:
    with Catalogue.at(address) as catalogue:
        scan(catalogue, [results], quiet)
        before = catalogue.entry(results / "compare")
        (results / "compare" / "plan.json").write_bytes(b"{" * 100_000)
        (results / "run-compare" / "runs.parquet").write_bytes(b"PAR1")
        (results / "run-stability" / "findings.json").write_text('{"schema": 1}', encoding="utf-8")
        done = scan(catalogue, [results], quiet)
        assert len(done.damaged) == 3
        entry = catalogue.entry(before.id)
        assert (entry.state, entry.verdict) == ("damaged", before.verdict)
        assert "plan.json" in entry.problem
        shutil.rmtree(results / "compare")
        assert [one.id for one in scan(catalogue, [results], quiet).missing] == [before.id]
        assert catalogue.entry(before.id).state == "missing"


def test_a_study_that_is_held_is_running_and_one_that_was_killed_is_incomplete(
    address: str, results: Path
) -> None:
    result = results / "run-stability"
    (result / "findings.json").unlink()
    with Catalogue.at(address) as catalogue:
        with claimed(result):
            running = catalogue.register(result)
            assert (running.state, running.ended) == ("running", None)
            assert catalogue.entry(running.id[:4]).state == "running"
        ended = catalogue.entry(running.id)
        assert (ended.state, ended.id) == ("incomplete", running.id)


def test_ids_that_are_not_clear_are_refused(address: str, results: Path) -> None:
    with Catalogue.at(address) as catalogue:
        reading = read_folder(results / "compare", says_verdict=False)
        catalogue.put(
            replace(
                reading, entry=replace(reading.entry, id=f"ab{place}3456789", folder=Path(f"/no/{place}"))
            )
            for place in range(3)
        )
        assert catalogue.entry("ab1").id == "ab13456789"
        for unclear in ("ab", "ffff", "a' OR '1'='1", "no/such"):
            with pytest.raises(DataError, match="cannot"):
                catalogue.entry(unclear)
        with pytest.raises(UsageError, match="allowed"):
            catalogue.entries(order="started; DROP TABLE result")
        assert catalogue.entries(Filter(study="' OR 1=1 --")).total == 0


def test_texts_of_a_stranger_are_kept_as_texts(address: str, results: Path) -> None:
    reading = read_folder(results / "compare", says_verdict=False)
    nasty = "'; DROP TABLE result; -- \0 \udcff ? %s <script>"
    with Catalogue.at(address) as catalogue:
        catalogue.put([replace(reading, entry=replace(reading.entry, title=nasty))])
        assert "DROP TABLE" in catalogue.entries(Filter(text="<SCRIPT> %s")).entries[0].title


WRITER = """
import sys
import threading
from dataclasses import replace
from pathlib import Path
from steelyard.catalogue import Catalogue
from steelyard.catalogue.folder import read_folder
address, folder, number = sys.argv[1:]
reading = read_folder(Path(folder), says_verdict=False)
for place in range(20):
    entry = replace(reading.entry, id=f"{int(number):05x}{place:05x}", folder=Path(f"/no/{number}/{place}"))
    with Catalogue.at(address) as catalogue:
        catalogue.put([replace(reading, entry=entry)])
"""


@pytest.mark.long("several interpreters and a server start, as several hosts do")
def test_several_processes_write_at_once(address: str, results: Path) -> None:
    words = [sys.executable, "-c", WRITER, address, str(results / "compare")]
    writers = [subprocess.Popen([*words, str(number)]) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0] * 4
    with Catalogue.at(address) as catalogue:
        assert catalogue.entries().total == 80


def test_what_is_no_catalogue_is_refused_and_left_alone(tmp_path: Path) -> None:
    foreign = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    (tmp_path / "text").write_text("no database at all, but a text" * 10, encoding="utf-8")
    before = foreign.read_bytes()
    for place in (foreign, tmp_path / "text", tmp_path, "mysql://host/name", "/dev/null/x"):
        with pytest.raises(SteelyardError, match="cannot"):
            Catalogue.at(place)
    assert foreign.read_bytes() == before
    assert "secret" not in without_password("postgresql://ada:secret@db/bench?password=secret")


def test_a_newer_catalogue_is_named_as_such(tmp_path: Path) -> None:
    place = tmp_path / "c.sqlite"
    Catalogue.at(place).__exit__(None, None, None)
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("UPDATE catalogue SET value = 'steelyard/catalogue/9'")
    with pytest.raises(DataError, match="this version reads"):
        Catalogue.at(place)


def test_verbs_register_tag_and_remove(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEELYARD_CATALOGUE", str(tmp_path / "c.sqlite"))
    (tmp_path / "t.csv").write_text("pid,t\n1,0.5\n2,0.25\n3,0.3\n", encoding="utf-8")
    words = ["--column", "value=t", "--column", "run=pid", "--unit", "s"]
    assert execute(["import", "csv", "t.csv", *words, "--out", "r"]) == 0
    assert _listed(capsys)[0]["state"] == "incomplete"
    assert execute(["analyse", "r"]) == 0
    entry = _listed(capsys)[0]
    assert (entry["state"], entry["title"]) == ("complete", "csv: t.csv")
    assert entry["verdict"]
    assert execute(["results", "tag", entry["id"][:5], "paper"]) == 0
    assert execute(["results", "note", "r", "why"]) == 0
    assert _listed(capsys, "--tag", "paper")[0]["note"] == "why"
    assert execute(["results", "tag", "r", "two words"]) == 2
    assert execute(["results", "rm", "r"]) == 2
    assert (tmp_path / "r").is_dir()
    (tmp_path / "r" / "thesis.tex").write_text("mine", encoding="utf-8")
    assert execute(["results", "rm", "r", "--yes"]) == 5
    assert "thesis.tex" in capsys.readouterr().err
    (tmp_path / "r" / "thesis.tex").unlink()
    with claimed(tmp_path / "r"):
        assert execute(["results", "rm", "r", "--yes"]) == 5
    assert execute(["results", "rm", "r", "--yes"]) == 0
    assert not (tmp_path / "r").exists()
    assert not _listed(capsys)
    assert execute(["results", "rm", ".", "--yes"]) == 5


def _listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, str]]:
    capsys.readouterr()
    assert execute(["results", "list", "--json", *words]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["results"]
    return found


def test_an_unusable_catalogue_costs_a_warning_and_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("1\n2\n3\n", encoding="utf-8")
    words = ["import", "csv", str(tmp_path / "t.csv"), "--no-header", "--column", "value=1", "--unit", "s"]
    assert execute([*words, "--out", str(tmp_path / "r"), "--catalogue", "/dev/null/c"]) == 0
    assert capsys.readouterr().err.count("warning: ") == 1


def test_a_list_fits_80_columns(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "c.sqlite")
    assert execute(["results", "scan", str(results), "--catalogue", place]) == 0
    capsys.readouterr()
    assert execute(["results", "list", "--catalogue", place, "--until", "2100-01-01"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    assert execute(["results", "list", "--catalogue", place, "--since", "yesterday"]) == 2


@pytest.mark.parametrize(
    ("file", "form"), [("hyperfine.json", "hyperfine"), ("harnesses/catch2.xml", "catch2")]
)
def test_a_file_of_another_tool_is_opened_in_one_command(
    file: str, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = Path(__file__).parents[2] / "golden" / "importers" / file
    assert execute(["open", str(sample), "--no-browser"]) == 0
    text = capsys.readouterr().out
    assert f"imported as `{form}`: steelyard-results/{form}-" in text
    page = next(tmp_path.glob("steelyard-results/*/report.html"))
    assert f"report: {page.relative_to(tmp_path)}" in text
    assert execute(["open", str(page.parent)]) == 0
    assert execute(["open", str(page)]) == 5
    assert "no format reads it" in capsys.readouterr().err


NESTED = b"[" * 100_000


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "it is empty"), (NESTED, "not JSON"), (gzip.compress(NESTED)[:-20], "gzip that was cut off")],
)
def test_a_damaged_file_is_refused_at_once_by_what_is_wrong_with_it(
    content: bytes,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_bytes(content)
    assert execute(["open", "a"]) == 5
    assert said in " ".join(capsys.readouterr().err.split())
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_pipe_is_read_as_the_format_that_is_named_and_never_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "p")
    assert execute(["open", "p"]) == 5
    assert "it is a pipe, which is read once only, and no format is named" in capsys.readouterr().err
    content = (Path(__file__).parents[2] / "golden/importers/hyperfine.json").read_bytes()
    writer = threading.Thread(target=lambda: (tmp_path / "p").write_bytes(content))
    writer.start()
    assert execute(["open", "p", "--format", "hyperfine", "--out", "r", "--no-browser"]) == 0
    writer.join()


def test_of_a_damaged_file_the_format_that_knows_it_best_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sample = Path(__file__).parents[2] / "golden/importers/harnesses/nanobench.json"
    text = sample.read_text(encoding="utf-8").replace('"elapsed": ', '"elapsed": -', 1)
    (tmp_path / "n.json").write_text(text, encoding="utf-8")
    assert execute(["open", "n.json", "--no-browser"]) == 5
    said = capsys.readouterr().err
    assert "as `nanobench`: `n.json`, at `results[0].measurements[0].elapsed`: " in said
    assert not list(tmp_path.glob("steelyard-results/*"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "sysbench 1.0.20\nNumber of threads: 1\n\nThreads started!\n",
            "as `sysbench`: `f`, line 4: the lines",
        ),
        (" Performance counter stats for 'true':\n\n 0.69 msec task-clock\n", "as `perf-stat`: `f`, line 1"),
        (
            "Benchmark   Time   CPU   Iterations\nBM_A  5 ns  5 ns  100\n",
            "hint: expected Google Benchmark's JSON",
        ),
        (
            '{"start": {"connected": []}, "intervals": [], "end": {}, "error": "no route"}',
            "; a test failed: no route",
        ),
        ('{"results": [{"command": "a", ', "as JSON: `f`, line 1, column 31: not JSON: "),
        ('{\n"unknown": 1\n}', "as JSON: no tool is known that writes such a document"),
        ("a\tb\n1\t2\n", "as a table: "),
        (
            (HARNESSES / "go-build-fails.jsonl").read_text(encoding="utf-8"),
            "`example.org/work` failed, so that no benchmark ran: ./work_test.go:15:46: undefined: missing",
        ),
        (
            "# a.org/x\n./x.go:1:1: no package\nFAIL\ta.org/x [build failed]\nFAIL\n",
            "the build of `a.org/x` failed, so that no benchmark ran: ./x.go:1:1: no package",
        ),
        ("FAIL\ta.org/x [build failed]\nFAIL\n", "the build of `a.org/x` failed, so that no benchmark ran\n"),
        (
            '{"metric":"vus","type":"Point","data":{"value":1}}\n{"metric":"vu',
            "as `k6`: `f`, line 2, column 11: not JSON: ",
        ),
        (
            '{"attack":"a","seq":0,"code":200}\n{"attack":"a","seq":1,"code":200}\n',
            "as `vegeta`: `f`, line 1, at the top: no member `method`",
        ),
    ],
)
def test_a_file_that_no_format_reads_is_called_what_it_is(
    text: str,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_text(text, encoding="utf-8")
    assert execute(["open", "f", "--no-browser"]) == 5
    assert said in capsys.readouterr().err


def test_an_option_that_no_format_of_a_file_takes_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "f").write_text('{"results": [{"command": "a", "times": [1.0, 1.1]}]}', encoding="utf-8")
    assert execute(["open", "f", "--no-browser", "--unit", "ms"]) == 5
    said = capsys.readouterr().err
    assert "no format that takes the options given reads it" in said
    assert "leave out options such as `--unit`" in said


def test_a_package_is_opened_with_a_report_made_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    package = tmp_path / "theirs.zip"
    with zipfile.ZipFile(PACKAGES / "steelyard-0.1.0-compare.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    theirs = hashlib.sha256(files["result/report.html"]).hexdigest().encode()
    files["result/report.html"] = b"<script>steal()</script>"
    ours = hashlib.sha256(files["result/report.html"]).hexdigest().encode()
    files["manifest-sha256.txt"] = files["manifest-sha256.txt"].replace(theirs, ours)
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    assert execute(["open", str(package), "--no-browser", "--out", "theirs"]) == 0
    assert "unpacked: theirs" in capsys.readouterr().out
    assert "steal" not in (tmp_path / "theirs" / "report.html").read_text(encoding="utf-8")
    assert execute(["results", "show", "theirs"]) == 0
    assert "complete" in capsys.readouterr().out
    assert execute(["open", str(package), "--out", "theirs"]) == 2
    assert execute(["open", str(package), "--unit", "ms"]) == 2
    (tmp_path / "cut.zip").write_bytes(package.read_bytes()[:-1000])
    assert execute(["open", "cut.zip"]) == 5
    assert not (tmp_path / "steelyard-results").exists()
