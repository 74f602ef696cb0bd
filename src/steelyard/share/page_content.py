"""What a report says, however it is laid out: a page of an earlier template is compared by its content.

A page of the template of this version must be what its findings render to, byte by byte. The page of a
package from an archive was rendered by an earlier template: its texts, values, data of charts and evidence
must be those of a fresh rendering, its style and scripts those of a release; nothing else may be in it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from steelyard import __version__
from steelyard.report.drawing.engine import made_engine_script
from steelyard.report.html import generator, inline, policy, template_sources
from steelyard.share.package.entry_names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.share.verification import Verification

_REPORT: Final = "report.html"
_TEMPLATE: Final = re.compile(
    r'<meta name="generator" content="Steelyard ([\w.+-]+), template ([0-9a-f]{16})">'
)
_BLOCKS: Final = frozenset(
    (
        "h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "tr", "th", "dt", "dd", "caption", "summary",
        "figcaption", "strong", "button", "a", "label", "footer", "title", "div",
    )
)  # fmt: skip
"""Elements whose text stands for itself: words before and after are no part of it."""

_INERT: Final = _BLOCKS | frozenset(
    (
        "html", "head", "meta", "link", "style", "body", "header", "main", "section", "nav", "ol", "ul",
        "dl", "span", "b", "code", "aside", "table", "thead", "tbody", "td", "input", "details", "figure",
        "noscript", "script", "br", "bdi",
    )
)  # fmt: skip
_ATTRIBUTES: Final = frozenset(
    (
        "class", "id", "lang", "charset", "content", "name", "rel", "href", "title", "role", "scope",
        "type", "tabindex", "download", "placeholder", "colspan", "open", "http-equiv", "style", "hidden",
    )
)  # fmt: skip
_COLOUR: Final = re.compile(r"--subject: ?#[0-9a-fA-F]{3,8};?")
_PLACE: Final = re.compile(r"#[^\s]*|data:,|(?:tables|figures)/[\w.-]+")
_JINJA: Final = re.compile(r"\{[{%#].*?[}%#]\}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Released:
    """What is known of a template that was released.

    Parameters
    ----------
    version, template : str
        Of Steelyard, and the id of its template.
    style, script : str
        SHA-256 of its style sheet and of its script, as they stand in a page.
    engine : str
        SHA-256 of the chart engine that it was released with.
    frame : tuple of str
        What its pages say whatever is in them.
    """

    version: str
    template: str
    style: str
    script: str
    engine: str
    frame: tuple[str, ...]


@cache
def released_templates() -> Mapping[str, Released]:
    """Give the templates of all releases, by the version of Steelyard."""
    text = (files("steelyard.share") / "released_templates.json").read_text(encoding="utf-8")
    return {
        version: Released(version, **{**each, "frame": tuple(each["frame"])})
        for version, each in json.loads(text).items()
    }


def released_template_of(shown: str) -> Released | None:
    """Give the template of which a page says that it was rendered by it, where it is a released one.

    Parameters
    ----------
    shown : str
        The page.

    Returns
    -------
    Released or None
        ``None`` for the template of this version, and for one that was never released.
    """
    match = _TEMPLATE.search(shown)
    if match is None or match.groups() == (__version__, template_id()):
        return None
    known = released_templates().get(match[1])
    return known if known is not None and known.template == match[2] else None


def template_id() -> str:
    """Give the id of the template of this version: of all its files."""
    return generator().rpartition(" ")[2]


def compare_content(
    known: Released, pages: tuple[str, str], verdicts: frozenset[str], found: Verification
) -> None:
    """Compare a page of an earlier template with a fresh rendering, by what they say.

    Sentences of an earlier version may have been worded otherwise: then each number and verdict in them must
    be in the fresh rendering at least as often, and they are named as not compared.

    Parameters
    ----------
    known : Released
        Its template.
    pages : tuple of str
        The page, and the same findings rendered by the template of this version.
    verdicts : frozenset of str
        Of the findings behind the page.
    found : Verification
        Problems, and what was not compared, are added to it.
    """
    stored, fresh = map(_Content, pages)
    problems = [*stored.faults, *_foreign(stored, fresh, known)]
    said, wanted = _texts(stored, known, frozenset()), _texts(fresh, known, frame_texts())
    if said != wanted and known.version == __version__:
        problems += _differing_texts(said, wanted)
    elif said != wanted:
        invented = _values(said, verdicts) - _values(wanted, verdicts)
        problems += [f"says {quoted(one)}, which the findings do not give" for one in sorted(invented)]
        other = list((Counter(said) - Counter(wanted)).elements())
        shown_first = ", ".join(map(quoted, other[:3]))
        found.not_compared.append(
            f"the words of {len(other)} texts in `{_REPORT}`, which version {known.version} of Steelyard "
            f"wrote: {shown_first}; no number and no verdict in them is another one"
        )
    for name in sorted({*stored.data, *fresh.data} - {"chart-config"}):
        problems += _differing_data(name, stored.data.get(name), fresh.data.get(name))
    found.problems.extend(f"`{_REPORT}` {problem}" for problem in dict.fromkeys(problems))
    if not problems:
        found.not_compared.append(
            f"the layout of `{_REPORT}`, which an earlier version of Steelyard wrote: its texts, values, "
            "data of charts and evidence are those of the findings"
        )


@dataclass(slots=True)
class _Block:
    tag: str
    words: list[str] = field(default_factory=list)


class _Content(HTMLParser):
    """The texts of a page by element, its data, and what could be executed or lead elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.data: dict[str, Any] = {}
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self.policies: list[str] = []
        self.faults: list[str] = []
        self._blocks = [_Block("")]
        self._raw: tuple[str, str] | None = None
        self.feed(text)
        self.close()
        while self._blocks:
            self._end()

    def _end(self) -> None:
        text = " ".join("".join(self._blocks.pop().words).split())
        if text:
            self.texts.append(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of an element, and of what it has that no page has."""
        if tag not in _INERT:
            self.faults.append(f"contains the element {quoted(tag)}, which no report has")
        given = {name: value or "" for name, value in attrs}
        self.faults += [f"has {quoted(name)} in it, which no report has" for name in _strange(tag, given)]
        if given.get("http-equiv") and not self.scripts:
            self.policies.append(given.get("content", ""))
        if tag in {"script", "style"}:
            kind = given.get("type", "")
            is_data = tag == "script" and kind == "application/json"
            self._raw = (given.get("id", "") if is_data else tag, "")
        if tag in _BLOCKS:
            self._blocks.append(_Block(tag))
        if given.get("title"):
            self.texts.append(given["title"])

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag in {"script", "style"} and self._raw is not None:
            name, text = self._raw
            self._raw = None
            if tag == "style":
                self.styles.append(text)
            elif name == "script":
                self.scripts.append(text)
            else:
                self._read(name, text)
        if any(block.tag == tag for block in self._blocks[1:]):
            while self._blocks[-1].tag != tag:
                self._end()
            self._end()

    def _read(self, name: str, text: str) -> None:
        if name in self.data:
            self.faults.append(f"contains the data {quoted(name)} twice")
        try:
            self.data[name] = json.loads(text)
        except (ValueError, RecursionError):
            self.faults.append(f"contains the data {quoted(name)}, which are not JSON")

    def handle_data(self, data: str) -> None:
        """Take note of words."""
        if self._raw is not None:
            self._raw = (self._raw[0], self._raw[1] + data)
        elif data.strip():
            self._blocks[-1].words.append(data)

    def handle_comment(self, data: str) -> None:
        """Refuse what some programs execute."""
        self.faults.append(f"contains the comment {quoted(data)}, which no report has")


def _strange(tag: str, given: Mapping[str, str]) -> Iterator[str]:
    """Name the attributes of an element that no page has: what is executed, hidden, or leads elsewhere."""
    for name, value in given.items():
        is_known = name in _ATTRIBUTES or name.startswith(("data-", "aria-"))
        is_wrong = {
            "style": _COLOUR.fullmatch(value) is None,
            "href": _PLACE.fullmatch(value) is None,
            "hidden": tag != "aside",
            "type": value not in {"button", "search", "application/json"},
            "http-equiv": tag != "meta" or value != "Content-Security-Policy",
        }
        if not is_known or is_wrong.get(name, False):
            yield f"{name}={value}"


def _foreign(stored: _Content, fresh: _Content, known: Released) -> Iterator[str]:
    """Name styles and scripts that no release had."""
    own = {_sha256(text) for text in (*fresh.scripts, *fresh.styles)}
    if any(_sha256(text) not in own | {known.style} for text in stored.styles):
        yield "has a style that Steelyard never had"
    if any(_sha256(text) not in own | {known.script, known.engine} for text in stored.scripts):
        yield "has a script that Steelyard never had"
    if stored.policies != [policy(*stored.scripts)]:
        yield "lets a browser do more than a report needs"


def _texts(content: _Content, known: Released, own: frozenset[str]) -> list[str]:
    """Give what a page says without what it says whatever is in it."""
    frame = {text for each in released_templates().values() for text in each.frame} | {*known.frame, *own}
    return [text for text in content.texts if _masked(text) not in frame]


def _differing_texts(said: list[str], wanted: list[str]) -> Iterator[str]:
    for one, other in zip_longest(said, wanted):
        if one != other:
            yield f"says {quoted(one or 'nothing')}, the findings give {quoted(other or 'nothing')}"
            return


def _values(texts: list[str], verdicts: frozenset[str]) -> Counter[str]:
    """Count the numbers and verdicts in some texts."""
    words = re.compile("|".join([r"\d[\d.,]*", *(rf"\b{re.escape(each)}\b" for each in sorted(verdicts))]))
    return Counter(word.rstrip(".,") for text in texts for word in words.findall(text))


def _differing_data(name: str, stored: Any, fresh: Any) -> Iterator[str]:
    if name == "chart-data":
        stored, fresh = (
            {figure: each.get("datasets") for figure, each in (data or {}).items()}
            for data in (stored, fresh)
        )
    if stored != fresh:
        yield f"contains other data {quoted(name)} than the findings give"


def _masked(text: str) -> str:
    """Give a text of the frame: numbers of rows stand in it."""
    return re.sub(r"\d+", "#", text)


def frame_texts() -> frozenset[str]:
    """Give what pages of this version say whatever is in them: the words of the template that stand alone."""
    found: set[str] = set()
    for name, source in template_sources().items():
        if name.endswith(".j2"):
            found.update(map(_masked, _Content(_JINJA.sub("0", source)).texts))
    return frozenset(text for text in found if any(each.isalpha() for each in text))


def released_entry() -> dict[str, Any]:
    """Give what is recorded of the template of this version, for ``released_templates.json``."""
    sources = template_sources()
    return {
        "template": template_id(),
        "style": _sha256(sources["style.css"]),
        "script": _sha256(inline(sources["page.js"])),
        "engine": _sha256(inline(made_engine_script())),
        "frame": sorted(frame_texts()),
    }


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
