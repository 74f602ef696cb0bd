"""Every way a user can go wrong: one paragraph on standard error, a hint, the right exit code."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from steelyard.cli import execute
from steelyard.record.ledger import Ledger
from steelyard.run.isolation.registry import technologies
from steelyard.run.machine.host import read_topology

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Damage = Callable[[Path], object]

USAGE, CAPABILITY, RUNS, DATA = 2, 3, 4, 5
QUICK = 'study = "stability"\nquick = true\n'
ROW = "bare,single,1,0,exp/exp_float,65536,{iteration},cpu,0.1{iteration}\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    rows = "".join(ROW.format(iteration=number) for number in range(12))
    (folder / "t.csv").write_text(rows, encoding="utf-8")
    assert execute(["import", "recodex", str(folder / "t.csv"), "--out", str(folder / "r")]) == 0
    assert execute(["analyse", str(folder / "r")]) == 0
    return folder / "r"


@pytest.fixture
def here(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a folder to be in: `r` is a whole result, `empty` is none, `s.toml` a good study file."""
    shutil.copytree(finished, tmp_path / "r")
    shutil.copytree(finished, tmp_path / "whole")
    (tmp_path / "empty").mkdir()
    (tmp_path / "s.toml").write_text(QUICK, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not list(tmp_path.rglob("*.tmp"))


def written(name: str, content: str | bytes) -> Damage:
    data = content.encode() if isinstance(content, str) else content
    return lambda folder: (folder / name).write_bytes(data)


def cut(name: str) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-30])


def flipped(name: str) -> Damage:
    """Change one byte in the middle."""

    def damage(folder: Path) -> None:
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 0xFF
        (folder / name).write_bytes(data)

    return damage


def newer(name: str) -> Damage:
    """Give a JSON file the next schema version, and a shape this version does not know."""

    def damage(folder: Path) -> None:
        document = json.loads((folder / name).read_text(encoding="utf-8"))
        kind, _, number = document["schema"].rpartition("/")
        document = {"schema": f"{kind}/{int(number) + 1}", "content": list(document)}
        (folder / name).write_text(json.dumps(document), encoding="utf-8")

    return damage


def newer_parquet(folder: Path) -> None:
    path = folder / "r/runs.parquet"
    table = pq.read_table(path)
    metadata = {**table.schema.metadata, b"steelyard.schema": b"steelyard/runs/9"}
    pq.write_table(table.replace_schema_metadata(metadata), path)


def with_ledger(change: Damage | None) -> Damage:
    """Let the tables be written again from a ledger, which is then damaged."""

    def damage(folder: Path) -> None:
        plan = json.loads((folder / "r/plan.json").read_text(encoding="utf-8"))
        Ledger(folder / "r/ledger.sqlite", plan["id"]).close()
        (folder / "r/runs.parquet").unlink()
        if change is not None:
            change(folder)

    return damage


def newer_ledger(folder: Path) -> None:
    with sqlite3.connect(folder / "r/ledger.sqlite") as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()


def nothing(_: Path) -> None:
    pass


def study_file(text: str | bytes) -> Damage:
    return written("bad.toml", text)


PLAN_BAD = ("plan", "stability", "--study-file", "bad.toml")
RUN_BAD = ("run", "stability", "--study-file", "bad.toml", "--out", "new")
IMPORT = ("import", "recodex", "t.csv", "--out", "new")
SEVERAL = QUICK + 'seed = -1\nisolation = ["bare", "vbox"]\nblcks = 3\n[limits]\nmemory_mib = "much"\n'

CASES: dict[str, tuple[Damage, tuple[str, ...], int, str]] = {
    "unknown isolation": (nothing, ("measure", "--isolation", "vbox", "--", "true"), USAGE, "`bare`"),
    "unknown study": (
        nothing,
        ("run", "stabilty"),
        USAGE,
        "allowed: `colocation`, `communication`, `replication`, `scaling`, `stability`",
    ),
    "wrong seed": (nothing, ("run", "stability", "--seed", "-1"), USAGE, "`--seed -1`: .*allowed: 0 or more"),
    "seed no number": (nothing, ("run", "stability", "--seed", "x"), USAGE, "--seed"),
    "no size": (nothing, ("measure", "--memory", "much", "--", "true"), USAGE, "`--memory much`"),
    "no duration": (nothing, ("measure", "--cpu-time", "0", "--", "true"), USAGE, "`--cpu-time 0`"),
    "no CPU": (nothing, ("measure", "--cpus", "4095", "--", "true"), USAGE, "may use the CPUs 0"),
    "no counter": (nothing, ("measure", "--counters", "cycels", "--", "true"), USAGE, "`cycles`"),
    "no command": (nothing, ("measure",), USAGE, "needs a command"),
    "no input": (nothing, ("measure", "--input", "x", "--", "true"), USAGE, "`--input x`"),
    "no variable": (nothing, ("measure", "--environment", "NO_SUCH", "--", "true"), USAGE, "`NAME=VALUE`"),
    "no program": (nothing, ("measure", "--", "./no/such"), RUNS, "cannot run `./no/such`.*ENOENT"),
    "not in PATH": (nothing, ("measure", "--", "no-such-program"), RUNS, "not found in `PATH`"),
    "not executable": (nothing, ("measure", "--", "./s.toml"), RUNS, "EACCES"),
    "a folder": (nothing, ("measure", "--", "./empty"), RUNS, "EACCES"),
    "study file absent": (nothing, PLAN_BAD, USAGE, "cannot read study file `bad.toml`: No such file"),
    "study file is a folder": (lambda f: (f / "bad.toml").mkdir(), RUN_BAD, USAGE, "Is a directory"),
    "study file not UTF-8": (
        study_file(b'study = "\xff"'),
        PLAN_BAD,
        USAGE,
        "line 1: byte 0xff is not UTF-8",
    ),
    "study file not TOML": (study_file("study = \n"), PLAN_BAD, USAGE, "line 1, column 9: not TOML"),
    "study file of nothing": (
        study_file(""),
        RUN_BAD,
        USAGE,
        "`study` is missing; allowed: `colocation`, `communication`, `replication`, `scaling`, `stability`",
    ),
    "several problems": (
        study_file(SEVERAL),
        RUN_BAD,
        USAGE,
        "has 4 problems:\n  line 3: `seed` .*  line 4: `isolation.1.` .*  line 5: `blcks` .* line 7: `limits",
    ),
    "unknown counters": (
        study_file(QUICK + 'counters = ["page-faults", "cycels"]\n'),
        RUN_BAD,
        USAGE,
        r"line 3: `counters\[1\]` is `\"cycels\"` \(did you mean `cycles`\?\)",
    ),
    "unknown tuning": (study_file(QUICK + 'tuning = ["warp"]\n'), RUN_BAD, USAGE, r"line 3: `tuning\[0\]`"),
    "impossible setups": (
        study_file(QUICK + 'setups = ["parallel-homogenous"]\nworkers = [1]\n'),
        PLAN_BAD,
        USAGE,
        "`workers` has no number above 1",
    ),
    "no file": (nothing, IMPORT, DATA, "cannot read `t.csv`: No such file"),
    "empty file": (written("t.csv", ""), IMPORT, DATA, "`t.csv` is empty"),
    "not UTF-8": (written("t.csv", b"bare,\xff\n"), IMPORT, DATA, "line 1: byte 0xff is not UTF-8"),
    "too few columns": (written("t.csv", "bare,1\n"), IMPORT, DATA, "line 1: 2 columns; expected 9"),
    "text for a number": (
        written("t.csv", ROW.format(iteration=1) + "bare,single,1,0,exp/exp_float,65536,2,cpu,fast\n"),
        IMPORT,
        DATA,
        "line 2: value `fast` is not a number",
    ),
    "unknown format": (written("t.csv", ""), ("import", "xml", "t.csv", "--out", "new"), USAGE, "`recodex`"),
    "import onto a result": (
        written("t.csv", ROW.format(iteration=1)),
        ("import", "recodex", "t.csv", "--out", "r"),
        DATA,
        "`r`",
    ),
    "import out not writable": (
        written("t.csv", ROW.format(iteration=1)),
        ("import", "recodex", "t.csv", "--out", "/proc/new"),
        DATA,
        "cannot write `/proc/new`",
    ),
    "run out not writable": (
        nothing,
        ("run", "stability", "--study-file", "s.toml", "--out", "/proc/new"),
        DATA,
        "cannot write `/proc/new`",
    ),
    "run out is a file": (
        nothing,
        ("run", "stability", "--study-file", "s.toml", "--out", "s.toml"),
        DATA,
        "cannot write `s.toml`: File exists",
    ),
    "export out not writable": (
        nothing,
        ("export", "r", "--out", "/proc/x.csv"),
        DATA,
        "cannot write `/proc/x",
    ),
    "export out is a folder": (nothing, ("export", "r", "--out", "empty"), DATA, "Is a directory"),
    "nothing to resume": (nothing, ("run", "stability", "--out", "empty", "--resume"), USAGE, "`plan.json`"),
    "folder in use": (nothing, ("run", "stability", "--out", "r"), USAGE, "`r` already contains a study"),
    **{
        f"{verb} of no result": (nothing, (verb, "empty"), DATA, "`empty/.*` does not exist")
        for verb in ("analyse", "report", "verify", "export")
    },
    "report into a file": (
        lambda f: (shutil.rmtree(f / "r/figures", ignore_errors=True), (f / "r/figures").touch()),
        ("report", "r"),
        DATA,
        "cannot write `r/figures`",
    ),
    "analyse into a file": (
        lambda f: (shutil.rmtree(f / "r/tables"), (f / "r/tables").touch()),
        ("analyse", "r"),
        DATA,
        "r/tables",
    ),
    **{
        f"{verb} with {what} findings": (damage, words, DATA, part)
        for verb, words in (
            ("report", ("report", "r")),
            ("verify", ("verify", "r")),
            ("compare-results", ("compare-results", "whole", "r")),
        )
        for what, damage, part in (
            (
                "cut",
                cut("r/findings.json"),
                "`r/findings.json` is not of schema `steelyard/findings/1`: not JSON",
            ),
            (
                "empty",
                written("r/findings.json", ""),
                "`r/findings.json` is not of schema `steelyard/findings/1`: not JSON",
            ),
            (
                "other",
                written("r/findings.json", "[]"),
                "`r/findings.json` is not of schema .*: it carries no schema",
            ),
            (
                "shapeless",
                written("r/findings.json", '{"schema": "steelyard/findings/1"}'),
                "`r/findings.json` is not of schema `steelyard/findings/1`: `study`: Field required",
            ),
            ("newer", newer("r/findings.json"), "has schema `steelyard/findings/2`; this version reads"),
        )
    },
    "compare with nothing": (nothing, ("compare-results", "r", "empty"), DATA, "`empty/findings.json`"),
    "compare with a file": (
        nothing,
        ("compare-results", "r", "s.toml"),
        DATA,
        "`s.toml` is refused: it is not a ZIP",
    ),
    **{
        f"{verb} with {what} plan": (damage, words, DATA, part)
        for verb, words in (
            ("analyse", ("analyse", "r")),
            ("verify", ("verify", "r")),
            ("resume", ("run", "stability", "--out", "r", "--resume")),
        )
        for what, damage, part in (
            ("cut", cut("r/plan.json"), "`r/plan.json` is not of schema `steelyard/plan/1`: not JSON"),
            (
                "changed",
                lambda f: _replace(f / "r/plan.json", '"seed": ', '"seed": 4'),
                "does not match its id",
            ),
            ("newer", newer("r/plan.json"), "has schema `steelyard/plan/2`; this version reads"),
        )
    },
    **{
        f"{verb} with {what} runs": (damage, (verb, "r"), DATA, part)
        for verb in ("analyse", "export", "verify")
        for what, damage, part in (
            ("cut", cut("r/runs.parquet"), "`r/runs.parquet` is damaged"),
            ("empty", written("r/runs.parquet", ""), "`r/runs.parquet` is damaged"),
            ("newer", newer_parquet, "`r/runs.parquet` has schema `steelyard/runs/9`; expected"),
        )
    },
    "analyse with damaged measurements": (
        flipped("r/measurements/values.parquet"),
        ("analyse", "r"),
        DATA,
        "`r/measurements/values.parquet`",
    ),
    "newer provenance": (newer("r/provenance.json"), ("verify", "r"), DATA, "`steelyard/provenance/2`"),
    "damaged ledger": (
        with_ledger(written("r/ledger.sqlite", "no database at all" * 100)),
        ("analyse", "r"),
        DATA,
        "`r/ledger.sqlite` is damaged: file is not a database",
    ),
    "empty ledger": (with_ledger(written("r/ledger.sqlite", "")), ("analyse", "r"), DATA, "it is empty"),
    "newer ledger": (with_ledger(newer_ledger), ("analyse", "r"), DATA, "has schema `steelyard/ledger/9`"),
    "background without a command": (nothing, ("background",), USAGE, "needs a command"),
    "level of background": (
        nothing,
        ("background", "--require", "strict", "--", "true"),
        USAGE,
        "`--require strict`: allowed: class, idle",
    ),
    "two forms of a status": (
        nothing,
        ("scheduler", "status", "--json", "--prometheus"),
        USAGE,
        "`--json` and `--prometheus` exclude each other",
    ),
}


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_what_goes_wrong_is_said_in_one_paragraph_with_a_hint(
    name: str, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    damage, words, code, part = CASES[name]
    damage(here)
    capfd.readouterr()
    assert execute(words) == code
    output, error = capfd.readouterr()
    check_text(error, part)
    assert output == ""


def check_text(error: str, part: str) -> None:
    """Check that a text is a paragraph that begins with `error:`, and one with a hint."""
    shown = re.sub(r"^isolation .* is not available: .*\n", "", error, flags=re.MULTILINE)
    paragraphs = shown.rstrip("\n").split("\n\n")
    assert len(paragraphs) == 2, error
    assert re.match(r"error: \S", paragraphs[0])
    assert re.match(r"hint: \S", paragraphs[1])
    assert re.search(part, paragraphs[0], re.DOTALL), error
    assert "Traceback" not in error
    assert "pydantic" not in error
    assert not re.search(r"0x[0-9a-f]{8}", error), "an address says nothing to a user"


@pytest.mark.long("tries every technology")
def test_a_technology_that_is_not_here_is_named_with_its_repair(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    absent = [name for name, each in technologies().items() if not each.probe().available]
    if not absent:
        pytest.skip("needs a host that lacks one of the technologies")
    capfd.readouterr()
    assert execute(["measure", "--isolation", absent[0], "--", "true"]) == CAPABILITY
    check_text(capfd.readouterr().err, f"isolation `{absent[0]}` does not work on this machine")
    (here / "bad.toml").write_text(f'{QUICK}isolation = ["{absent[0]}"]\n', encoding="utf-8")
    assert execute(RUN_BAD) == USAGE
    check_text(capfd.readouterr().err, f"no cell that can run here: {absent[0]} is not available")


def test_a_cell_this_host_cannot_have_is_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if len(read_topology().memory_nodes) > 1:
        pytest.skip("needs a host with one memory node")
    text = f'{QUICK}isolation = ["bare"]\naffinity = ["numa"]\n'
    (here / "bad.toml").write_text(text, encoding="utf-8")
    assert execute(PLAN_BAD) == USAGE
    check_text(capfd.readouterr().err, "this host has one memory node")
