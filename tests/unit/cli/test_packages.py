from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import zipfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from steelyard.cli import execute
from steelyard.errors import DataError
from steelyard.model.cell import Cell, Execution
from steelyard.model.plan import Plan
from steelyard.record.folder_lock import claimed
from steelyard.record.provenance import Provenance, read_provenance
from steelyard.share.anonymous.names import private_texts
from steelyard.share.anonymous.private_names import private_names
from steelyard.share.package.archive import part_of_file, part_of_text, write_archive
from steelyard.share.package.checksums import MANIFEST_NAME
from steelyard.share.package.crate import CRATE_NAME
from steelyard.share.package.unpack import unpack

ABOUT = """
title = "Two commands: \\"true\\" & <sleep>"
description = "Compared # with care: 'quoted', ümläuts"
licence = "CC-BY-4.0"
licence_notes = "Nothing of others is in it."
lessons = "Sleeping takes longer than doing nothing."
keywords = ["sleep: yes", "- dash"]

[[authors]]
given_names = "Ada"
family_names = "Lovelace"
orcid = "0000-0002-1825-0097"
affiliation = "Analytical: Engines"

[[authors]]
name = "The whole team"
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real result: two commands compared for a moment."""
    folder = tmp_path_factory.mktemp("result") / "compared"
    words = ["compare", "--out", str(folder), "--runs-min", "8", "--runs-max", "8", "--budget", "2s"]
    assert execute([*words, "--report", "true", "sleep 0.002"]) in {0, 1}
    return folder


@pytest.fixture(scope="module")
def package(result: Path) -> Path:
    path = result.parent / "compared.zip"
    assert execute(["pack", str(result), "-o", str(path)]) == 0
    return path


def unpacked(package: Path, folder: Path) -> Path:
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
    return folder


def packed_again(folder: Path, package: Path) -> Path:
    with zipfile.ZipFile(package, "w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return package


def hashes_made_again(folder: Path) -> None:
    """Do what an attacker does: make manifest and metadata fit the files."""
    crate = json.loads((folder / CRATE_NAME).read_text())
    for entity in crate["@graph"]:
        if entity["@type"] == "File":
            content = (folder / entity["@id"]).read_bytes()
            entity["sha256"], entity["contentSize"] = hashlib.sha256(content).hexdigest(), str(len(content))
    (folder / CRATE_NAME).write_text(json.dumps(crate))
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST_NAME
    ]
    (folder / MANIFEST_NAME).write_text("".join(lines))


def test_a_packed_result_is_confirmed(package: Path, tmp_path: Path) -> None:
    assert execute(["verify", str(package)]) == 0
    assert execute(["verify", str(unpacked(package, tmp_path / "p"))]) == 0


def test_the_same_result_gives_the_same_bytes(result: Path, package: Path, tmp_path: Path) -> None:
    assert execute(["pack", str(result), "-o", str(tmp_path / "again.zip"), "--unchecked"]) == 0
    assert execute(["pack", str(result), "-o", str(tmp_path / "third.zip")]) == 0
    assert (tmp_path / "third.zip").read_bytes() == package.read_bytes()
    assert (tmp_path / "again.zip").read_bytes() != package.read_bytes()


def test_nothing_is_overwritten(result: Path, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = package.read_bytes()
    assert execute(["pack", str(result), "-o", str(package)]) == 2
    assert "already exists" in capsys.readouterr().err
    assert package.read_bytes() == before


def test_a_missing_a_surplus_and_a_changed_file_are_named(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(package, tmp_path / "p")
    (folder / "CITATION.cff").unlink()
    (folder / "result" / "more.txt").write_text("more")
    with (folder / "README.md").open("a") as file:
        file.write("another sentence\n")
    assert execute(["verify", str(packed_again(folder, tmp_path / "p.zip"))]) == 1
    said = capsys.readouterr().out
    assert "`CITATION.cff` is missing" in said
    assert "`result/more.txt` is surplus" in said
    assert "`README.md` has another hash" in said


def test_many_surplus_files_are_counted(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(package, tmp_path / "p")
    for number in range(1000):
        (folder / "result" / f"more-{number}").write_text("")
    hashes_made_again(folder)
    assert execute(["verify", str(packed_again(folder, tmp_path / "p.zip"))]) == 1
    said = capsys.readouterr().out
    assert "`result/more-0` does not follow from the result" in said
    assert "and 980 more like this one: `ro-crate-metadata.json` does not describe `result/more-" in said
    assert len(said.splitlines()) < 60


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[" * 100_000, "its lists or objects are nested too deeply"),
        ('{"schema": "\\ud800"}', "it contains half of a character"),
    ],
)
@pytest.mark.parametrize("name", ["plan.json", "findings.json", "provenance.json"])
def test_data_that_no_program_can_use_are_named_in_plain_words(
    name: str, content: str, reason: str, result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(result, tmp_path / "r")
    (tmp_path / "r" / name).write_text(content)
    assert execute(["verify", str(tmp_path / "r")]) == 5
    said = capsys.readouterr().err
    assert reason in said
    assert "hint:" in said
    assert "Error" not in said


def test_an_altered_number_with_all_hashes_made_again_is_found(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(package, tmp_path / "p")
    path = folder / "result" / "findings.json"
    findings = json.loads(path.read_text())
    estimates = next(each["estimates"] for each in findings["findings"] if each["estimates"])
    next(iter(estimates.values()))["value"] *= 1.01
    path.write_text(json.dumps(findings, indent=1, ensure_ascii=False) + "\n")
    hashes_made_again(folder)
    assert execute(["verify", str(packed_again(folder, tmp_path / "p.zip"))]) == 1
    said = capsys.readouterr().out
    assert ".value is " in said
    assert "the tables give" in said


def test_metadata_that_does_not_fit_the_files_is_found(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(package, tmp_path / "p")
    hashes_made_again(folder)
    crate = json.loads((folder / CRATE_NAME).read_text())
    for entity in crate["@graph"]:
        if entity["@id"] == "result/plan.json":
            entity["contentSize"] = "1"
    (folder / CRATE_NAME).write_text(json.dumps(crate))
    manifest = (folder / MANIFEST_NAME).read_text().splitlines()
    digest = hashlib.sha256((folder / CRATE_NAME).read_bytes()).hexdigest()
    lines = [f"{digest}  {CRATE_NAME}" if line.endswith(f"  {CRATE_NAME}") else line for line in manifest]
    (folder / MANIFEST_NAME).write_text("\n".join(lines) + "\n")
    assert execute(["verify", str(folder)]) == 1
    assert "says another size of `result/plan.json`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("absent", "hint"),
    [
        ("report.html", "steelyard report"),
        ("findings.json", "steelyard analyse"),
        ("plan.json", "steelyard run"),
    ],
)
def test_an_incomplete_result_is_refused_with_the_next_step(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], absent: str, hint: str
) -> None:
    for path in result.rglob("*"):
        if path.is_file() and path.name != absent:
            copy = tmp_path / "r" / path.relative_to(result)
            copy.parent.mkdir(parents=True, exist_ok=True)
            os.link(path, copy)
    assert execute(["pack", str(tmp_path / "r"), "-o", str(tmp_path / "r.zip")]) == 5
    assert hint in capsys.readouterr().err
    assert not (tmp_path / "r.zip").exists()
    assert list(tmp_path.glob(".*")) == []


def test_a_package_that_names_its_user_is_refused_as_anonymous(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # One of the compared commands is `sleep`: a user of that name is named by the plan.
    monkeypatch.setenv("USER", "sleep")
    words = ["pack", str(result), "-o", str(tmp_path / "r.zip"), "--unchecked"]
    assert execute([*words, "--anonymous"]) == 5
    assert "names its user or host: `sleep` in " in capsys.readouterr().err
    assert not (tmp_path / "r.zip").exists()
    assert execute(words) == 0
    assert "the package names `sleep`" in capsys.readouterr().err


def texts_of(package: Path, folder: Path) -> str:
    """Give everything that a package says, its tables decoded."""
    said = []
    for path in sorted(unpacked(package, folder).rglob("*")):
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            said += [str(table.schema.metadata), str(table.select([0]).num_rows), str(table.to_pydict())]
        elif path.is_file():
            said.append(path.read_bytes().decode("latin-1"))
    return "\n".join(said)


def test_an_anonymous_package_holds_no_id_of_its_host(result: Path, tmp_path: Path) -> None:
    provenance = read_provenance(result)
    before = {path: path.read_bytes() for path in result.rglob("*") if path.is_file()}
    ids = {provenance.host_id, str(provenance.host["machine_id_hash"])}
    assert execute(["pack", str(result), "-o", str(tmp_path / "plain.zip"), "--unchecked"]) == 0
    assert all(each[:12] in texts_of(tmp_path / "plain.zip", tmp_path / "plain") for each in ids)
    words = ["pack", str(result), "-o", str(tmp_path / "r.zip"), "--anonymous", "--unchecked"]
    assert execute(words) == 0
    said = texts_of(tmp_path / "r.zip", tmp_path / "r")
    assert not any(each[:12] in said for each in ids)
    assert execute(["verify", str(tmp_path / "r.zip")]) == 0
    assert {path: path.read_bytes() for path in result.rglob("*") if path.is_file()} == before
    assert "names and ids of the host" in (tmp_path / "r" / "README.md").read_text()
    assert len(read_provenance(tmp_path / "r" / "result").host_id) == 16


def test_an_anonymous_package_has_placeholders_for_places_of_its_user_and_runs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The fault: `/home/ada` in the plan made the package refused, `/opt/ada/bin/python` stood in it."""
    home, theirs = tmp_path / "home" / "adalove", tmp_path / "home" / "bob"
    python = tmp_path / "elsewhere" / "bin" / "python3"
    for folder in (home, theirs, python.parent):
        folder.mkdir(parents=True)
    for program in (home / "wait", theirs / "wait", python):
        program.write_text("#!/bin/sh\nexec sleep 0.002\n")
        program.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USER", "adalove")
    monkeypatch.setattr(socket, "gethostname", lambda: "labseven")
    result, package = str(tmp_path / "r"), str(tmp_path / "r.zip")
    words = ["--runs-min", "8", "--runs-max", "8", "--budget", "2s", f"{home}/wait 1", str(python)]
    assert execute(["compare", "--out", result, "--report", *words]) in {0, 1}
    assert execute(["pack", result, "-o", package, "--anonymous"]) == 0
    said = texts_of(Path(package), tmp_path / "u")
    for private in ("adalove", str(home), str(python), "labseven"):
        assert private not in said, private
    assert {"{home}/wait", "{python}"} <= {word.strip('",') for word in said.split()}
    assert execute(["verify", package]) == 0
    monkeypatch.setenv("HOME", str(theirs))
    monkeypatch.setenv("USER", "bob")
    capsys.readouterr()
    assert execute(["rerun", package, "--out", str(tmp_path / "again"), "--yes", "--margin", "100%"]) in {
        0,
        1,
    }
    answer = capsys.readouterr()
    assert f"{theirs}/wait 1" in answer.err
    assert "only in the first 0" in answer.out
    assert "adalove" not in answer.out + answer.err


DEVICES = {
    "D1": {"kind": "played", "cpus": [0], "storages": {"H1": "/srv/x"}},
    "ada-laptop": {
        "kind": "ssh",
        "host": "ada@lab7",
        "address": "192.168.1.17",
        "ssh_options": [
            "-i",
            "/keys/lab_key",
            "-oIdentityFile=~/.ssh/id_lab",
            "-J",
            "eve@jump.example",
            "-p",
            "22",
        ],
    },
}


def test_what_a_plan_says_of_people_hosts_addresses_and_keys_is_known() -> None:
    request = json.dumps({"devices": "/data/labs/mine.toml"})
    command = ("sh", "-c", "ssh bob@far.example -i /home/carol/.ssh/id_ed25519 image@sha256:00")
    cell = Cell(0, {"cell": "0"}, Execution("bare", command))
    options: dict[str, str | int | float | bool | None] = {"devices": json.dumps(DEVICES), "request": request}
    plan = Plan("replication", 1, {}, (cell,), (), 1, options).freeze()
    provenance = Provenance("replication", plan.id, 1, host_id="0a1b", host={"hostname": "desk"})
    assert private_texts(plan, provenance) == {
        "ada-laptop", "ada", "lab7", "192.168.1.17", "/keys/lab_key", "~/.ssh/id_lab", "eve", "jump.example",
        "/data/labs/mine.toml", "bob", "far.example", "/home/carol/.ssh/id_ed25519", "carol", "0a1b", "desk",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "named"),
    [
        ("run 192.168.1.17", {"192.168.1.17"}),
        ("run -h8.8.4.4:80 x=10.1.2.3/24", {"8.8.4.4", "10.1.2.3"}),
        ("--host=8.8.4.4:80", {"8.8.4.4"}),
        ("v192.168.1.1 version 192.168.1.2", {"192.168.1.2"}),
        ("fe80::5054:ff:fe12:3456", {"fe80::5054:ff:fe12:3456"}),
        ("[2a00:1028:1:2:3:4:5:6]:80", {"2a00:1028:1:2:3:4:5:6"}),
        ("52:54:00:12:34:56", {"52:54:00:12:34:56"}),
        ("52-54-00-AB-34-56", {"52-54-00-AB-34-56"}),
        ("~ada/x", {"ada"}),
        ("/Users/ada/x", {"ada"}),
        ("/root/x", {"/root/x"}),
        ("gcc -I/root/lab/x", {"/root/lab/x"}),
        ("https://ada:pw@lab7.uni.cz/x", {"pw", "lab7.uni.cz"}),
        ("jdk-17.0.9.8 numpy==1.2.3.4 --version 1.2.3.4 v1.2.3.4 1.2.3.4.5 999.1.1.1 01.2.3.4", set()),
        ("127.0.0.1 0.0.0.0 192.0.2.7 203.0.113.9 ::1 2001:db8::1 00:00:5E:00:53:01", set()),
        ("12:34:56 20-11-22-10-30-00 x[1::2] std::abc a::b ~/x /opt/root/x ~ 3~4", set()),
    ],
)
def test_addresses_and_home_folders_in_a_command_are_known(word: str, named: set[str]) -> None:
    cell = Cell(0, {"workload": word}, Execution("", (word,)))
    plan = Plan("imported", 1, {}, (cell,), (), 1, {}).freeze()
    assert private_texts(plan, Provenance("imported", plan.id, 1)) == named


def test_a_package_that_names_an_address_is_refused_as_anonymous(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [1 + number / 100 for number in range(10)]
    runs = [
        {"command": name, "mean": 1, "stddev": 0.1, "median": 1, "user": 1, "system": 0, "min": 1, "max": 2}
        | {"times": times, "exit_codes": [0] * 10}
        for name in ("run -h192.168.1.17", "b")
    ]
    (tmp_path / "an.json").write_text(json.dumps({"results": runs}))
    result = str(tmp_path / "an")
    assert execute(["import", "hyperfine", str(tmp_path / "an.json"), "--out", result]) == 0
    assert execute(["analyse", result]) == 0
    assert execute(["report", result]) == 0
    capsys.readouterr()
    words = ["pack", result, "-o", str(tmp_path / "r.zip"), "--anonymous", "--unchecked"]
    assert execute(words) == 5
    assert "`192.168.1.17` in " in capsys.readouterr().err
    assert not (tmp_path / "r.zip").exists()


def test_names_are_found_in_tables_and_ledgers(tmp_path: Path) -> None:
    words = ["x" * 900 + " ada lovelace"] * 500
    pq.write_table(pa.table({"n": range(500), "w": words}), tmp_path / "t.parquet", compression="zstd")
    with closing(sqlite3.connect(tmp_path / "l.sqlite", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE run (outcome TEXT)")
        connection.execute("INSERT INTO run VALUES (?)", ("y" * 4090 + " Ada " + "y" * 9000,))
    parts = [part_of_file(name, tmp_path / name) for name in ("t.parquet", "l.sqlite")]
    found = private_names(parts, ["ada", "bob"])
    assert {file for files in found.values() for file in files} == {"t.parquet", "l.sqlite"}
    assert {name.casefold() for name in found} == {"ada"}


def test_a_package_and_a_result_are_compared_cell_by_cell(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = str(shutil.copytree(unpacked(package, tmp_path / "p") / "result", tmp_path / "r"))
    assert execute(["compare-results", str(package), result]) == 0
    assert "are the same result, which agrees with itself" in capsys.readouterr().err
    assert execute(["analyse", result, "--margin", "3"]) == 0
    capsys.readouterr()
    words = ["compare-results", str(package), result]
    assert execute([*words, "--margin", "50%", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["margin"] == 0.5
    assert {each["metric"] for each in found["cells"]} == {"outside-wall"}
    assert all(each["ratio"]["value"] == 1 for each in found["cells"])
    assert execute(words) == 0
    assert "Cells within 2 %" in capsys.readouterr().out, "the margin of the comparison itself"


def test_a_changed_package_is_not_compared(
    package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unpacked(package, tmp_path / "p")
    (folder / "README.md").unlink()
    assert execute(["compare-results", str(package), str(folder)]) == 5
    assert "`README.md` is missing" in capsys.readouterr().err


def test_changed_bytes_of_a_package_are_never_confirmed_nor_a_bug(package: Path, tmp_path: Path) -> None:
    content, generator = package.read_bytes(), np.random.default_rng(3)
    whole = unpacked(package, tmp_path / "whole")
    for at in generator.integers(0, len(content), 60):
        altered = bytearray(content)
        altered[at] ^= 1 << int(generator.integers(0, 8))
        place = tmp_path / "altered.zip"
        place.write_bytes(altered)
        code = execute(["verify", str(place)])
        assert code in {0, 1, 5}
        if code == 0:  # a date or a right in the archive's directory, which nobody reads
            with zipfile.ZipFile(place) as archive:
                assert all(archive.read(name) == (whole / name).read_bytes() for name in archive.namelist())


def test_what_shrinks_like_a_bomb_is_stored_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "zeros.bin").write_bytes(bytes(4 << 20))
    parts = [part_of_file("result/zeros.bin", tmp_path / "zeros.bin"), part_of_text("a", "text")]
    write_archive(tmp_path / "p.zip", parts)
    (tmp_path / "into").mkdir()
    unpack(tmp_path / "p.zip", tmp_path / "into")
    assert (tmp_path / "into" / "result" / "zeros.bin").stat().st_size == 4 << 20


def test_a_file_that_changes_while_it_is_packed_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"before")
    part = part_of_file("a", tmp_path / "a")
    (tmp_path / "a").write_bytes(b"after.")
    with pytest.raises(DataError, match="changed while it was packed"):
        write_archive(tmp_path / "p.zip", [part])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DataError) as error:
        write_archive(tmp_path / "p.zip", [part_of_text("a", "text")])
    assert error.value.code == "data.disk-full"
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_another_process_writes_is_not_packed(
    result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with claimed(result):
        assert execute(["pack", str(result), "-o", str(tmp_path / "r.zip")]) == 5
    assert "another process is running a study" in capsys.readouterr().err


@pytest.mark.long("validators of others")
@pytest.mark.needs_validators
def test_others_find_a_package_valid_and_a_damaged_one_not(result: Path, tmp_path: Path) -> None:
    validators = Path(__file__).parents[3] / ".tools" / "validators" / "bin" / "python"
    if not validators.exists():
        pytest.skip("needs the validators of RO-Crate and CITATION.cff, `make deps-packages`")
    about = tmp_path / "about.toml"
    about.write_text(ABOUT)
    words = ["pack", str(result), "--unchecked", "-o"]
    assert execute([*words, str(tmp_path / "plain.zip")]) == 0
    assert execute([*words, str(tmp_path / "told.zip"), "--about", str(about)]) == 0
    plain = unpacked(tmp_path / "plain.zip", tmp_path / "plain")
    told = unpacked(tmp_path / "told.zip", tmp_path / "told")
    damaged = unpacked(tmp_path / "told.zip", tmp_path / "damaged")
    (damaged / "CITATION.cff").write_text("cff-version: 1.2.0\n")
    crate = json.loads((damaged / CRATE_NAME).read_text())
    del next(each for each in crate["@graph"] if each["@id"] == "./")["datePublished"]
    (damaged / CRATE_NAME).write_text(json.dumps(crate))
    script = Path(__file__).parents[3] / "scripts" / "validate_package.py"
    found = subprocess.run(
        [validators, script, plain, told, damaged], capture_output=True, text=True, check=False
    )
    answers = [line.rpartition(": ")[2] for line in found.stdout.splitlines() if not line.startswith(" ")]
    assert answers[:6] == ["valid"] * 6, found.stdout + found.stderr
    assert answers[6:] == ["NOT VALID", "NOT VALID", "valid"]


def test_a_comparison_of_results_shows_signs_that_turn_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = [1 + number / 100 for number in range(10)]
    runs = [{"command": name, "times": times, "exit_codes": [0] * 10} for name in ("old", "new\u202e")]
    (tmp_path / "an.json").write_text(json.dumps({"results": runs}))
    result = str(tmp_path / "an")
    assert execute(["import", "hyperfine", str(tmp_path / "an.json"), "--out", result]) == 0
    assert execute(["analyse", result]) == 0
    other = str(shutil.copytree(result, tmp_path / "other"))
    assert execute(["analyse", other, "--margin", "3"]) == 0
    capsys.readouterr()
    assert execute(["compare-results", result, other]) == 0
    said = capsys.readouterr().out
    assert "new<U+202E>" in said
    assert "\u202e" not in said


def test_a_comparison_shows_signs_of_commands_that_turn_the_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "--runs-min", "5", "--runs-max", "5", "--budget", "1s"]
    assert execute([*words, "true \u202e", "true"]) in {0, 1}
    said = capsys.readouterr().out
    assert "<U+202E>" in said
    assert "\u202e" not in said
