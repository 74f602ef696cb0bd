"""One self-contained page: styles, chart engine, data and evidence inside, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from steelyard import __version__
from steelyard.report import page as document
from steelyard.report.charts.theme import page_config
from steelyard.report.drawing.engine import INSTALL, NO_ENGINE, engine_script, has_engine
from steelyard.report.evidence import named_findings, packed_evidence
from steelyard.report.page import MOST_ROWS
from steelyard.report.shown_text import all_shown

if TYPE_CHECKING:
    from pathlib import Path

    from steelyard.model.finding import Finding
    from steelyard.report.dataset import Json
    from steelyard.report.page import Block, Figure, Page

ROWS_AT_FIRST: Final = 15
"""Rows of a long table shown before the reader asks for all."""

ROWS_UNFOLDED: Final = 12
"""A longer table is folded behind one line that says what is in it."""

CARDS_UNFOLDED: Final = 12
"""Cards of a group beyond these are folded."""

_SCRIPT_BEGIN, _SCRIPT_END = "<script>", "</script>"

_RTL: Final = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_RIGHT_TO_LEFT: Final = re.compile(f"({_RTL}+(?:[ \u200c\u200d]{_RTL}+)*)")
"""Words of Unicode's blocks for scripts from right to left."""

_UNIT: Final = r"(?:%|[KMGT]iB|[numµkMGT]?(?:s|B|Hz|ops?|bit|J|W)|min|h|\w+/\w+)(?!\w)"
_INSIDE_QUANTITY: Final = re.compile(rf"(?<=\d) (?=\d{{3}}(?!\d)|{_UNIT})")
"""Spaces between a number and its unit, and between the thousands of a number."""

_KINDS: Final[dict[type, str]] = {
    document.Prose: "prose",
    document.Table: "table",
    document.Figure: "figure",
    document.Notice: "notice",
    document.Pairs: "pairs",
    document.Commands: "commands",
}


def render_html(page: Page) -> str:
    """Give the page as one HTML document.

    Every text passes through automatic escaping; scripts are admitted by their hash alone, so that a
    hostile name in the data can neither become markup nor be executed, and the browser is forbidden to
    connect anywhere. An installation that cannot draw figures gives the page without them, which says so.

    Parameters
    ----------
    page : Page
        What to show.

    Returns
    -------
    str
        A whole document in UTF-8.
    """
    return _render(page, inline(engine_script()) if has_engine() else None)


def render_like(page: Page, written: str) -> str:
    """Give the page as an installation like the one that wrote a document would give it.

    A document without a chart engine is rendered without one. An installation without a chart engine takes
    the document's own, so that all but the engine can be compared.

    Parameters
    ----------
    page : Page
        What to show.
    written : str
        The document.
    """
    engine = engine_of(written)
    return _render(page, inline(engine_script()) if engine is not None and has_engine() else engine)


def engine_of(written: str) -> str | None:
    """Give the chart engine inside a document; ``None`` where it has none.

    Parameters
    ----------
    written : str
        A document that this module rendered: the engine stands before the page's own script.
    """
    engine, _, rest = written.partition(_SCRIPT_BEGIN)[2].partition(_SCRIPT_END)
    return engine if _SCRIPT_BEGIN in rest else None


def _render(page: Page, engine: str | None) -> str:
    page = _shortened(page)
    script = inline(_asset("page.js"))
    figures = () if engine is None else page.figures()
    template = _environment().get_template("page.html.j2")
    return template.render(
        page=page,
        policy=policy(*(each for each in (engine, script) if each is not None)),
        engine=None if engine is None else Markup(engine),  # noqa: S704 - admitted by its hash
        no_figures=_no_figures(page) if engine is None else None,
        generator=generator(),
        script=Markup(script),  # noqa: S704 - our own script, admitted by its hash
        style=Markup(_asset("style.css")),  # noqa: S704 - our own style
        charts=_data({figure.id: _chart(figure) for figure in figures}),
        config=_data(page_config()),
        inside_quantity=_INSIDE_QUANTITY.pattern,
        evidence=_data(all_shown(packed_evidence(_findings(page)))),
        rows_at_first=ROWS_AT_FIRST,
        rows_unfolded=ROWS_UNFOLDED,
        cards_unfolded=CARDS_UNFOLDED,
    )


def _shortened(page: Page) -> Page:
    """Give a page whose long tables say where the rows are that it leaves out."""
    sections = tuple(
        replace(section, blocks=tuple(_first_rows(block) for block in section.blocks))
        for section in page.sections
    )
    return replace(page, sections=sections)


def _first_rows(block: Block) -> Block:
    if not isinstance(block, document.Table) or block.file is None or len(block.rows) <= MOST_ROWS:
        return block
    shown = f"the first {MOST_ROWS} of {len(block.rows)} rows are shown, and the filter searches only these"
    rest = f"{shown}; all are in {block.file}, and the pages of steelyard serve search all"
    return replace(block, rows=block.rows[:MOST_ROWS], summary="; ".join(filter(None, (block.summary, rest))))


def _no_figures(page: Page) -> document.Notice | None:
    """Say why figures are missing; ``None`` where the page has none anyway."""
    if not page.figures():
        return None
    repair = f"`{INSTALL}` installs it; then `steelyard report` draws the figures"
    return document.Notice("The figures are missing", (f"where this page was written, {NO_ENGINE}", repair))


def write_html(page: Page, path: Path) -> None:
    """Write the page; the file is whole or absent."""
    temporary = path.with_suffix(".html.tmp")
    temporary.write_text(render_html(page), encoding="utf-8")
    temporary.replace(path)


def _findings(page: Page) -> list[Finding]:
    return [page.findings[name] for name in named_findings(page) if name in page.findings]


def _chart(figure: Figure) -> dict[str, Json]:
    return {
        "spec": {**figure.spec, "description": figure.alternative},
        "datasets": {name: data.packed() for name, data in figure.datasets.items()},
        "panelWidth": figure.panel_width,
    }


def _kind_of(block: Block) -> str:
    return _KINDS[type(block)]


def coded(text: str) -> Markup:
    """Set what stands between backticks as code; everything is escaped as usual."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return typeset(text)
    code = Markup("<code>{}</code>")
    return Markup("").join(
        code.format(_isolated(piece)) if at % 2 else typeset(piece) for at, piece in enumerate(pieces)
    )


def typeset(text: str) -> Markup:
    r"""Set a text for reading: no line ends between a number and its unit; everything is escaped as usual.

    Code is not set so: what is copied from it stays what it is.

    Examples
    --------
    >>> typeset("<1 000 ms in 3 ways>")
    Markup('&lt;1\xa0000\xa0ms in 3 ways&gt;')
    """
    return _isolated(_INSIDE_QUANTITY.sub("\u00a0", text))


def _isolated(text: str) -> Markup:
    """Set words of scripts that are written from right to left apart: no number beside them changes sides."""
    if text.isascii():
        return escape(text)
    isolated = Markup("<bdi>{}</bdi>")
    pieces = _RIGHT_TO_LEFT.split(text)
    return Markup("").join(
        isolated.format(piece) if at % 2 else escape(piece) for at, piece in enumerate(pieces)
    )


def _data(value: Json) -> Markup:
    """Write JSON that may stand inside a script element: no ``<`` can end it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, replacement in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(sign, replacement)
    return Markup(text)  # noqa: S704 - markup signs are escaped above


def inline(script: str) -> str:
    """Make a script fit for a script element: neither sequence may end it or change how it is parsed."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def policy(*scripts: str) -> str:
    """Give what a browser may do with a page: execute these scripts, and connect nowhere.

    Parameters
    ----------
    *scripts : str
        As they stand in the page.
    """
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "connect-src 'none'; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def template_sources() -> dict[str, str]:
    """Give the files of the page's template, by name."""
    return {name: _asset(name) for name in ("page.html.j2", "blocks.html.j2", "style.css", "page.js")}


@cache
def generator() -> str:
    """Say which program wrote a page, and by which template: a later version knows by it how it was made."""
    content = json.dumps(template_sources(), sort_keys=True)
    return f"Steelyard {__version__}, template {hashlib.sha256(content.encode()).hexdigest()[:16]}"


@cache
def _asset(name: str) -> str:
    return (files("steelyard.report") / "templates" / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("steelyard.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"coded": coded, "typeset": typeset}
    environment.tests["of_kind"] = lambda block, kind: _kind_of(block) == kind
    return environment
