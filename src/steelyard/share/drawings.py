"""Whether figures are what they were made from: what they show from the page, their files drawn again."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final

from steelyard.model.document import read_document
from steelyard.record.seal import hash_file
from steelyard.report.drawing.drawn import DRAWN_NAME, DRAWN_SCHEMA, Drawn, hash_of_figure
from steelyard.report.drawing.engine import drawn_chart, has_engine
from steelyard.report.drawing.figures import file_spec
from steelyard.share.package.entry_names import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from steelyard.report.page import Figure, Page
    from steelyard.share.verification import Verification

_LINK: Final = re.compile(r"(?:xlink:)?href|src")
_OTHER_PLACE: Final = re.compile(r"url\((?!['\"]?#)|@import|expression\(", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[-+\u2212]?[0-9.,eE+\u2212-]+ ?[%\u00b5a-zA-Z]{0,3}")
_DRAWN_TAGS: Final = frozenset(
    {
        "svg",
        "g",
        "path",
        "text",
        "tspan",
        "rect",
        "line",
        "circle",
        "defs",
        "clippath",
        "lineargradient",
        "stop",
    }
)
"""Elements that charts are drawn with; a script, a link, or foreign content is none of them."""


def compare_figures(result: Path, page: Page, found: Verification, *, is_older: bool) -> None:
    """Compare the figures of a result with those that its findings give.

    What a figure shows (its specification with all its data) is computed again, and it is drawn again. Other
    fonts draw other bytes: then the elements and words of the drawing must be those of the fresh one, and the
    picture made from it is named as not compared.

    Parameters
    ----------
    result : Path
        Result folder; one without ``figures/`` has nothing to compare.
    page : Page
        Built from the findings just now.
    found : Verification
        Problems, and what was not compared, are added to it.
    is_older : bool
        Whether the report beside it is of the template of an earlier version.

    Raises
    ------
    DataError
        If the list of what was drawn is damaged.
    """
    folder = result / "figures"
    if not folder.is_dir():
        return
    again = "`steelyard report` of the folder draws it again"  # which may be a private copy: no path
    drawn = read_document(folder / DRAWN_NAME, Drawn, DRAWN_SCHEMA, absent=again, damaged=again)
    found.problems.extend(_names(folder, page, drawn, again))
    listed = [figure for figure in page.figures() if figure.id in drawn.shows]
    otherwise = [figure.id for figure in listed if drawn.shows[figure.id] != hash_of_figure(figure)]
    if not is_older:
        found.problems.extend(
            f"`figures/{name}` does not show what the findings give; {again}" for name in otherwise
        )
    elif otherwise:
        found.not_compared.append(
            f"how {_listed(otherwise)} in `figures/` are drawn: an earlier version of Steelyard drew them"
        )
    drawings = {figure.id: _Drawing.of(folder / f"{figure.id}.svg") for figure in listed}
    faults = {name: each.fault for name, each in drawings.items() if each.fault is not None}
    altered = {figure.id for figure in listed if not _are_those_drawn(folder, figure.id, drawn)}
    checked = [figure for figure in listed if figure.id not in {*otherwise, *faults, *altered}]
    if has_engine():
        faults |= _redrawn(folder, checked, drawings, found)
    found.problems.extend(f"`figures/{name}` {fault}; {again}" for name, fault in faults.items())


def _redrawn(
    folder: Path, figures: Sequence[Figure], drawings: Mapping[str, _Drawing], found: Verification
) -> dict[str, str]:
    """Draw figures again, and say of each that is not what is drawn why not."""
    alike, unlike, faults = 0, {}, {}
    for figure in figures:
        svg, png = drawn_chart(json.dumps(file_spec(figure)))
        if (folder / f"{figure.id}.svg").read_bytes() != svg.encode():
            unlike[figure.id] = drawings[figure.id].unlike(_Drawing(svg))
            continue
        alike += 1
        if (folder / f"{figure.id}.png").read_bytes() != png:
            faults[figure.id] = "differs from its drawing"
    for name, fault in unlike.items():
        # Where one figure is drawn as it was, fonts and engine are the same for all.
        if fault is not None or alike:
            faults[name] = fault or "differs from what the findings give, while others agree here"
    if unlike and not faults:
        found.not_compared.append(
            f"the pictures of {_listed(unlike)} in `figures/`: fonts or the chart engine differ here, so "
            "only the words and colours of the drawings were compared"
        )
    return faults


def _are_those_drawn(folder: Path, name: str, drawn: Drawn) -> bool:
    """Whether the files of a figure have the hashes that were kept; which have not is named elsewhere."""
    files = [folder / f"{name}.{suffix}" for suffix in ("svg", "png")]
    return all(path.is_file() and hash_file(path) == drawn.files.get(path.name) for path in files)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _names(folder: Path, page: Page, drawn: Drawn, again: str) -> Iterator[str]:
    """Compare the list of what was drawn, the files, and the figures of the page."""
    wanted = {figure.id for figure in page.figures()}
    yield from (f"`figures/{name}` is absent; {again}" for name in sorted(wanted - drawn.shows.keys()))
    for name in sorted(drawn.shows.keys() - wanted):
        yield f"`figures/{quoted(name)[1:-1]}` is not a figure of the report"
    files = {f"{name}.{suffix}" for name in drawn.shows for suffix in ("svg", "png")}
    found = {each.name for each in folder.iterdir()} - {DRAWN_NAME}
    for name in sorted({*found, *drawn.files, *files}):
        shown = f"`figures/{quoted(name)[1:-1]}`"
        if name not in found:
            yield f"{shown} is absent; {again}"
        elif name not in drawn.files or name not in files:
            yield f"{shown} was not drawn by the report"
        elif hash_file(folder / name) != drawn.files[name]:
            yield f"{shown} was changed after it was drawn; {again}"


class _Drawing(HTMLParser):
    """The words and colours of an SVG, without where they stand; why it is no drawing of a chart, if so."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: Counter[str] = Counter()
        self.colours: set[str] = set()
        self.fault: str | None = None
        self.feed(text)
        self.close()

    @classmethod
    def of(cls, path: Path) -> _Drawing:
        """Read a file that ought to be a drawing; an absent one is named elsewhere."""
        return cls(path.read_text(encoding="utf-8", errors="backslashreplace") if path.is_file() else "")

    def unlike(self, fresh: _Drawing) -> str | None:
        """Say what differs from a fresh drawing that fonts do not explain: they hide or shorten labels."""
        extra, lost = self.words - fresh.words, fresh.words - self.words
        for word in (*extra, *lost):
            if not (_NUMBER.fullmatch(word) or "\u2026" in f"{word}{''.join(extra)}{''.join(lost)}"):
                return (
                    f"says {quoted(word)} where the findings say otherwise"
                    if word in extra
                    else (f"does not say {quoted(word)}, which the findings do")
                )
        if extra and lost:
            return f"says {quoted(next(iter(extra)))}, the findings {quoted(next(iter(lost)))}"
        return None if self.colours == fresh.colours else "has other colours than the findings give"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take note of an element."""
        if tag not in _DRAWN_TAGS:
            self.fault = f"contains the element {quoted(tag)}, which no chart has"
        for name, value in attrs:
            leads_out = _LINK.fullmatch(name) and not (value or "").startswith("#")
            if name.startswith("on") or leads_out or _OTHER_PLACE.search(value or ""):
                self.fault = f"contains the attribute {quoted(name)}, which no chart has"
            if name in {"fill", "stroke", "opacity", "display", "visibility"}:
                self.colours.add(f"{name}={value}")

    def handle_data(self, data: str) -> None:
        """Take note of words."""
        if data.strip():
            self.words[" ".join(data.split())] += 1

    def handle_decl(self, decl: str) -> None:
        """Refuse a type of document: it may name entities."""
        self.fault = f"contains the declaration {quoted(decl)}, which no chart has"

    def handle_pi(self, data: str) -> None:
        """Refuse an instruction: it may name a style sheet."""
        self.fault = f"contains the instruction {quoted(data)}, which no chart has"

    def unknown_decl(self, data: str) -> None:
        """Refuse what is no markup."""
        self.fault = f"contains {quoted(data)}, which no chart has"
