"""Packages of each release stay confirmed, whatever later templates look like, and forged ones do not."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures.kept_package import PACKAGES
from steelyard import __version__
from steelyard.cli import execute
from steelyard.model import finding as findings_of
from steelyard.report import html
from steelyard.share import page_content, verify
from steelyard.share.package.check import verify_place
from steelyard.share.page_content import released_templates, template_id
from steelyard.studies.stability import analysis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEPT = sorted(PACKAGES.glob("*.zip"))
STUDY = PACKAGES / f"steelyard-{__version__}-stability.zip"
AGAIN = "`.venv/bin/python scripts/keep_package.py` records them for a version not yet released"
CACHES = (html._asset, html._environment, html.template_sources, html.generator)


@contextmanager
def template_changed(changes: dict[str, Callable[[str], str]]) -> Iterator[None]:
    """Let this version have another template."""
    sources = html.template_sources()
    changed = {name: changes.get(name, str)(text) for name, text in sources.items()}
    assert changed != sources
    for cached in CACHES:
        cached.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(html, "_asset", changed.__getitem__)
        patch.setattr(html, "PackageLoader", lambda _: html_loader(changed))
        yield
    for cached in CACHES:
        cached.cache_clear()


def html_loader(sources: dict[str, str]) -> object:
    from jinja2 import DictLoader  # noqa: PLC0415 - used here alone

    return DictLoader(sources)


OTHER_STYLE = {"style.css": lambda text: text + "\nbody { margin: 3rem }\n"}
OTHER_MARKUP = {
    "page.html.j2": lambda text: (
        text.replace('<main class="wrap">', '<main class="wide"><p>A new hint for readers.</p><div>')
        .replace("</main>", "</div></main>")
        .replace("Light / dark", "Day or night")
    ),
    "blocks.html.j2": lambda text: text.replace("<caption>", '<caption class="new">'),
    "page.js": lambda text: text + "\n// more\n",
}


@pytest.mark.parametrize("package", KEPT, ids=lambda path: path.stem)
def test_a_kept_package_is_confirmed(package: Path) -> None:
    found = verify_place(package)
    assert found.problems == [], AGAIN


def test_the_template_of_this_version_is_recorded() -> None:
    known = released_templates().get(__version__)
    assert known is not None, AGAIN
    assert known.template == template_id(), AGAIN
    assert set(page_content.frame_texts()) <= set(known.frame)


@pytest.mark.parametrize("package", KEPT, ids=lambda path: path.stem)
@pytest.mark.parametrize("changes", [OTHER_STYLE, OTHER_MARKUP], ids=["style", "markup"])
def test_a_package_stays_confirmed_under_the_next_template(
    changes: dict[str, Callable[[str], str]], package: Path
) -> None:
    with template_changed(changes):
        found = verify_place(package)
    assert found.problems == []
    assert [each for each in found.not_compared if "the layout of `report.html`" in each]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("kept")
    shutil.unpack_archive(STUDY, folder)
    return (folder / "result" / "report.html").read_text()


def compared(shown: str, given: str, version: str = __version__) -> verify.Verification:
    found = verify.Verification()
    known = replace(released_templates()[__version__], version=version)
    page_content.compare_content(known, (shown, given), frozenset({"slower", "faster"}), found)
    return found


FORGERIES = {
    "script": lambda text: text.replace("</h1>", "</h1><script>alert(1)</script>"),
    "changed script": lambda text: text.replace("<script>", "<script>alert(1);", 1),
    "handler": lambda text: text.replace("<h1", "<h1 onclick='alert(1)'"),
    "picture": lambda text: text.replace("</h1>", "</h1><img src=https://evil.example>"),
    "frame": lambda text: text.replace("</h1>", "</h1><iframe srcdoc='x'></iframe>"),
    "link": lambda text: text.replace('href="#answer"', 'href="https://evil.example"'),
    "refresh": lambda text: text.replace("<title>", '<meta http-equiv="refresh" content="0;url=x"><title>'),
    "style": lambda text: text.replace("</style>", ".card{display:none}</style>"),
    "hidden": lambda text: text.replace("<h1", "<h1 hidden"),
    "style of an element": lambda text: text.replace("<h1", '<h1 style="display:none"'),
    "policy": lambda text: re.sub(r"connect-src [^;]+;", "connect-src *;", text, count=1),
    "comment": lambda text: text.replace("</h1>", "</h1><!--[if IE]>x<![endif]-->"),
    "sentence": lambda text: text.replace("</h1>", "</h1><p>It is 90 % faster.</p>"),
    "number": lambda text: re.sub(r">\+33(\s%)", r">+3\1", text, count=1),
    "verdict": lambda text: text.replace("slower", "faster"),
    "data": lambda text: text.replace('"datasets":', '"datasets":{"x":1},"more":', 1),
    "evidence": lambda text: re.sub(r'(id="evidence-data">.*?)slower', r"\1faster", text, count=1),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_page_of_another_template_is_not_confirmed_when_it_was_forged(forgery: str, stored: str) -> None:
    assert compared(stored, stored).problems == []
    forged = FORGERIES[forgery](stored)
    assert forged != stored
    assert compared(forged, stored).problems


@pytest.mark.parametrize("forgery", sorted(FORGERIES.keys() - {"sentence"}))
def test_words_of_an_earlier_version_may_differ_and_numbers_may_not(forgery: str, stored: str) -> None:
    worded = stored.replace("It is", "One may say that it is").replace("What ", "Whatever ")
    assert worded != stored
    found = compared(stored, worded, "0.0.1")
    assert found.problems == []
    assert "the words of" in found.not_compared[0]
    assert compared(FORGERIES[forgery](stored), worded, "0.0.1").problems


def test_findings_of_an_older_schema_are_compared_as_far_as_it_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.unpack_archive(STUDY, tmp_path)
    result = tmp_path / "result"
    monkeypatch.setattr(findings_of, "FINDINGS_SCHEMA", "steelyard/findings/2")
    monkeypatch.setattr(findings_of, "LATER_FIELDS", {"guaranteed": 2})
    document = json.loads((result / "findings.json").read_text())
    for each in document["findings"]:
        for estimate in each["estimates"].values():
            del estimate["guaranteed"]
    (result / "findings.json").write_text(json.dumps(document))
    stored, fresh = findings_of.read_findings(result / "findings.json"), analysis.analyse(result)
    found = verify.Verification()
    verify._compare_findings(stored, fresh, found)
    assert found.problems == []
    verify._compare_findings(replace(stored, method_version=0), fresh, found)
    assert found.problems == []
    assert "the version of the analysis" in found.not_compared[0]
    verify._compare_findings(replace(stored, findings=stored.findings[1:]), fresh, found)
    assert found.problems


def test_a_deleted_record_is_named_where_the_user_has_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is computed in a private copy is said of the folder that was given, with a step that helps."""
    with zipfile.ZipFile(PACKAGES / f"steelyard-{__version__}-compare.zip") as package:
        package.extractall(tmp_path)
    result = tmp_path / "result"
    (result / "looks.json").unlink()
    assert execute(["verify", str(result)]) == 5
    said = capsys.readouterr().err
    assert f"error: `{result}/looks.json` does not exist" in said
    assert "steelyard-verify-" not in said
    assert "hint: restore the file from a copy" in said
