"""What each release says of itself stands in several files, which have to agree."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import steelyard
from steelyard.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
TEXTS = sorted(
    subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
)
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)#?([^)\s]*)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
TREES = "benches|crates|docs|examples|fuzz|packaging|scripts|src|tests|workloads"
PATH = re.compile(rf"`((?:{TREES})/[\w./*-]+)`")
CALL = re.compile(r"(?:^ {4,}|`)(make|steelyard) ([a-z][\w-]*(?:(?<!-) [a-z][\w-]+)*)", re.MULTILINE)
"""What a reader is told to type: a target or a verb, in a line of code or between ticks."""
MODULE = re.compile(r"`steelyard(?!\.toml`)((?:\.\w+)+)`")
"""Modules that a page names; `steelyard.toml` is a file of its reader."""
WRITTEN = {"fuzz/corpus", "fuzz/artifacts/TARGET", "src/steelyard/_bin/steelyard-scheduler"}
"""What programs make."""
ENTRY_POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
CFFCONVERT = ROOT / ".tools" / "validators" / "bin" / "cffconvert"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_version_is_that_of_the_workspace() -> None:
    assert steelyard.__version__ == VERSION
    assert f"\nversion: {VERSION}\n" in read("CITATION.cff")


def test_the_newest_section_of_the_changelog_is_that_of_the_version() -> None:
    assert re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[0] == VERSION


def test_each_release_says_what_changes_results() -> None:
    for section in read("CHANGELOG.md").split("\n## ")[1:]:
        changes = section.partition("\n### Changes results\n")[2].partition("\n### ")[0]
        assert changes.strip(), section.splitlines()[0]


def test_the_citation_names_the_repository_of_the_project() -> None:
    urls = tomllib.loads(read("pyproject.toml"))["project"]["urls"]
    assert f"\nrepository-code: {urls['Repository']}\n" in read("CITATION.cff")
    assert all(address.startswith(urls["Repository"]) for address in urls.values())


def anchors(path: Path) -> set[str]:
    """Give the names of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


def is_there(name: str) -> bool:
    """Tell whether a name below ``steelyard`` is a module, a name in one, or a group of entry points."""
    if f"steelyard{name}" in ENTRY_POINTS:
        return True
    parts = name.split(".")[1:]
    for length in range(len(parts), -1, -1):
        place = (ROOT / "src" / "steelyard").joinpath(*parts[:length])
        for file in (place / "__init__.py", place.with_suffix(".py"), place.with_suffix(".pyi")):
            if file.is_file():
                rest = parts[length:]
                return not rest or re.search(rf"\b{rest[0]}\b", file.read_text(encoding="utf-8")) is not None
    return False


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files(name: str) -> None:
    page = ROOT / name
    for place, anchor in LINK.findall(read(name)):
        target = page.parent / place if place else page
        assert target.exists(), place
        assert not anchor or anchor in anchors(target), f"{place}#{anchor}"


@pytest.mark.parametrize("name", TEXTS)
def test_paths_and_modules_that_a_page_names_exist(name: str) -> None:
    text = read(name)
    assert [each for each in PATH.findall(text) if each not in WRITTEN and not any(ROOT.glob(each))] == []
    assert [each for each in MODULE.findall(text) if not is_there(each)] == []


@pytest.mark.parametrize("name", TEXTS)
def test_targets_and_verbs_that_a_page_names_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", read("Makefile"), re.MULTILINE))
    for program, words in CALL.findall(read(name)):
        if program == "make":
            assert [each for each in words.split() if each not in targets] == [], words
        else:
            first, *more = words.split()
            assert {first, " ".join([first, *more[:1]])} & {*VERBS, "help"}, words


def test_make_help_lists_every_target() -> None:
    listed = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    targets = re.findall(r"^\.PHONY: ([\w-]+)$", read("Makefile"), re.MULTILINE)
    assert re.findall(r"^  make ([\w-]+) ", listed, re.MULTILINE) == targets


def test_a_path_that_is_gone_is_found() -> None:
    assert [each for each in PATH.findall("`src/steelyard/gone.py`") if not any(ROOT.glob(each))]
    assert MODULE.findall("`steelyard.run.gone`") == [".run.gone"]
    assert not is_there(".run.gone")
    assert is_there(".run.machine.gate")
    assert is_there(".model.run_spec.RunSpec")
    assert is_there(".importers")
    assert CALL.findall("`make gone now`, or:\n\n    steelyard gone") == [
        ("make", "gone now"),
        ("steelyard", "gone"),
    ]


@pytest.mark.needs_validators
def test_the_citation_is_valid_and_a_damaged_one_not(tmp_path: Path) -> None:
    if not CFFCONVERT.exists():
        pytest.skip("needs the validators of RO-Crate and CITATION.cff, `make deps-packages`")
    damaged = tmp_path / "damaged.cff"
    damaged.write_text(read("CITATION.cff").replace("authors:", "writers:"), encoding="utf-8")
    for file, is_valid in ((ROOT / "CITATION.cff", True), (damaged, False)):
        ended = subprocess.run([CFFCONVERT, "--validate", "-i", file], capture_output=True, check=False)
        assert (ended.returncode == 0) is is_valid, ended.stderr
