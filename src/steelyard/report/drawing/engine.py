"""What draws figures: the package `vl-convert-python`, an extra that an installation may lack."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError
from steelyard.report.drawing.pdf import in_canonical_order
from steelyard.run.state import cache_folder, write_durably

if TYPE_CHECKING:
    from types import ModuleType

INSTALL: Final = "pip install 'steelyard[figures]'"
"""Command that installs what draws figures."""

NO_ENGINE: Final = "the Python package `vl-convert-python`, which draws figures, is not installed"

VEGA_LITE_VERSION: Final = "6.4"

_ENTRY: Final = "window.vegaEmbed=vegaEmbed;"
"""What of the engine the page's script calls."""

_PNG_SCALE: Final = 2.0
_NUMBERED_ID: Final = re.compile(r"(?<=id=\")(clip|gradient_)\d+(?=\")|(?<=url\(#)(clip|gradient_)\d+(?=\))")


def has_engine() -> bool:
    """Tell whether this installation can draw figures."""
    return _library() is not None


@cache
def engine_script() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script (0.9 MB), as it was kept when it was made.

    Raises
    ------
    CapabilityError
        If this installation cannot draw figures.
    """
    version = _required().__version__
    try:
        kept = cache_folder() / f"engine-{version}-{VEGA_LITE_VERSION}.js"
        if kept.exists():
            return kept.read_text(encoding="utf-8")
    except (CapabilityError, OSError, UnicodeError):
        return made_engine_script()
    script = made_engine_script()
    # Where it cannot be kept, it is made each time.
    with suppress(OSError):
        write_durably(kept, script)
    return script


@cache
def made_engine_script() -> str:
    """Make the script, which takes a second or two.

    Raises
    ------
    CapabilityError
        If this installation cannot draw figures.
    """
    script: str = _required().javascript_bundle(_ENTRY, vl_version=VEGA_LITE_VERSION)
    return script


def drawn_chart(spec: str) -> tuple[str, bytes]:
    """Draw a chart without a browser.

    Parameters
    ----------
    spec : str
        Vega-Lite specification with its data, as JSON.

    Returns
    -------
    tuple of (str, bytes)
        The chart as SVG and as PNG.

    Raises
    ------
    CapabilityError
        If this installation cannot draw figures.
    """
    svg = _svg(spec)
    return _renumbered(svg), drawn_png(svg, _PNG_SCALE)


def drawn_svg(spec: str) -> str:
    """Draw a chart as SVG; the specification is JSON with its data. Raises as `drawn_chart` does."""
    return _renumbered(_svg(spec))


def drawn_png(svg: str, scale: float, per_inch: float = 72.0) -> bytes:
    """Make a picture of a drawing; it states its resolution.

    Parameters
    ----------
    svg : str
        The drawing.
    scale : float
        Its size, in units of 1/72 inch for each of its pixels.
    per_inch : float
        Pixels of the picture for each inch.
    """
    picture: bytes = _required().svg_to_png(svg, scale=scale, ppi=per_inch)
    return picture


def drawn_pdf(svg: str) -> bytes:
    """Make a PDF of a drawing, a point for each of its pixels; its fonts are inside as TrueType."""
    return in_canonical_order(_required().svg_to_pdf(svg))


def _svg(spec: str) -> str:
    library = _required()
    svg: str = library.vega_to_svg(library.vegalite_to_vega(spec, vl_version=VEGA_LITE_VERSION))
    return svg


def _renumbered(svg: str) -> str:
    """Give a drawing whose ids are counted from 1: the engine goes on counting from chart to chart."""
    numbers: dict[str, int] = {}

    def renumber(match: re.Match[str]) -> str:
        kind = match[1] or match[2]
        return f"{kind}{numbers.setdefault(match[0], len(numbers) + 1)}"

    return _NUMBERED_ID.sub(renumber, svg)


def _required() -> ModuleType:
    library = _library()
    if library is None:
        raise CapabilityError(NO_ENGINE, hint=INSTALL, code="capability.package")
    return library


@cache
def _library() -> ModuleType | None:
    """Import the library; one that is built for another system is as good as none."""
    try:
        import vl_convert  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    library: ModuleType = vl_convert
    return library
