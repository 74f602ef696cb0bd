"""What each release says of itself stands in several files, which have to agree."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import steelyard

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
TEXTS = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
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


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_to_files(name: str) -> None:
    links = re.findall(r"\]\((?!\w+:|#)([^)#]+)", read(name))
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.needs_validators
def test_the_citation_is_valid_and_a_damaged_one_not(tmp_path: Path) -> None:
    if not CFFCONVERT.exists():
        pytest.skip("needs the validators of RO-Crate and CITATION.cff, `make deps-packages`")
    damaged = tmp_path / "damaged.cff"
    damaged.write_text(read("CITATION.cff").replace("authors:", "writers:"), encoding="utf-8")
    for file, is_valid in ((ROOT / "CITATION.cff", True), (damaged, False)):
        ended = subprocess.run([CFFCONVERT, "--validate", "-i", file], capture_output=True, check=False)
        assert (ended.returncode == 0) is is_valid, ended.stderr
