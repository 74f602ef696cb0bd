"""The table behind a figure: its numbers with their intervals, as CSV or for LaTeX."""

from __future__ import annotations

import csv
import io
import math
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.report.drawing.figures import menus_of
from steelyard.report.shown_text import shown
from steelyard.report.tables import latex_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.report.dataset import Json, Scalar
    from steelyard.report.page import Figure

MOST_LATEX_ROWS: Final = 500
"""Rows of a table for a paper; a CSV file has any number."""

DIGITS: Final = 5
"""Significant digits in LaTeX; a CSV file has all."""

_HIDDEN: Final = frozenset({"label", "order", "rank", "at", "is_apart", "is_ideal", "is_moment"})
"""Fields that only place marks."""


class TableForm(StrEnum):
    """Formats of the table behind a figure."""

    LATEX = "latex"
    CSV = "csv"

    @property
    def suffix(self) -> str:
        """End of the name of its file."""
        return "tex" if self is TableForm.LATEX else "csv"


def figure_table(figure: Figure, spec: dict[str, Json], form: TableForm) -> str:
    """Give the rows that a figure shows: of what is chosen in its menus, whole names, no row left out.

    Parameters
    ----------
    figure : Figure
        Whose data; those of its first dataset that has an interval, else of the first.
    spec : mapping
        Its specification, with what is chosen.
    form : TableForm
        CSV has names of fields as its heads and all digits; LaTeX has those of the axes, and columns of the
        package siunitx.

    Raises
    ------
    UsageError
        If there are too many rows for LaTeX.
    """
    rows = _chosen_rows(figure, spec)
    names = _columns(rows)
    if form is TableForm.CSV:
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([_plain(row.get(name)) for name in names] for row in rows)
        return stream.getvalue()
    if len(rows) > MOST_LATEX_ROWS:
        message = (
            f"cannot write the table of `{figure.id}` for LaTeX: it has {len(rows)} rows, and "
            f"{MOST_LATEX_ROWS} are allowed"
        )
        raise UsageError(message, hint="--table csv", code="usage.figure")
    return _latex(figure, rows, names, _titles(spec))


def _chosen_rows(figure: Figure, spec: dict[str, Json]) -> list[Mapping[str, Scalar]]:
    """Give the rows of what is chosen; a menu keeps the rows of its option by a filter on a field."""
    chosen = next((each for each in figure.datasets.values() if "low" in each.columns), None)
    data = (chosen or next(iter(figure.datasets.values()))).columns
    rows: list[Mapping[str, Scalar]] = [
        dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)
    ]
    kept = {str(menu["name"]): menu["value"] for menu in menus_of(spec).values()}
    for field, parameter in _filters(spec):
        if parameter in kept and rows and field in rows[0]:
            rows = [row for row in rows if row[field] == kept[parameter]]
    return rows


def _filters(spec: Json) -> Iterator[tuple[str, str]]:
    """Give each filter that compares a field with a parameter (`charts.parts.only_chosen`), once."""
    found: dict[tuple[str, str], None] = {}
    for part in _parts(spec):
        test = part.get("filter")
        if isinstance(test, str) and " === " in test:
            left, _, right = test.partition(" === ")
            found[left.removeprefix("datum."), right] = None
    yield from found


def _parts(spec: Json) -> Iterator[Mapping[str, Json]]:
    if isinstance(spec, dict):
        yield spec
        for key, each in spec.items():
            if key not in {"datasets", "data"}:
                yield from _parts(each)
    elif isinstance(spec, list):
        for each in spec:
            yield from _parts(each)


def _titles(spec: Json) -> dict[str, str]:
    """Give the names of fields that people read, as axes and tips have them."""
    return {
        str(part["field"]): str(part["title"])
        for part in _parts(spec)
        if isinstance(part.get("title"), str) and isinstance(part.get("field"), str) and part["title"]
    }


def _columns(rows: Sequence[Mapping[str, Scalar]]) -> list[str]:
    """Give the fields that say something: those that place marks or are empty in every row do not."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [
        name
        for name in names
        if (name not in _HIDDEN or (name == "label" and "name" not in names))
        and any(row.get(name) is not None for row in rows)
    ]


def _plain(value: Scalar) -> str | int | float:
    return "" if value is None else shown(value) if isinstance(value, str) else value


def _latex(
    figure: Figure, rows: Sequence[Mapping[str, Scalar]], names: Sequence[str], titles: Mapping[str, str]
) -> str:
    columns = [[row.get(name) for row in rows] for name in names]
    places = [_place(column) for column in columns]
    heads = [latex_text(titles.get(name, name.replace("_", " "))) for name in names]
    # Braces keep a heading from being read as a number.
    line = " & ".join(f"{{{head}}}" for head in heads)
    body = "\n".join(
        " & ".join(
            _cell(value, is_number=place != "l")
            for value, place in zip((row.get(name) for name in names), places, strict=True)
        )
        + r" \\"
        for row in rows
    )
    return (
        "% needs \\usepackage{booktabs,siunitx}\n"
        "\\begin{table}\n"
        f"\\caption{{{latex_text(figure.title)}}}\n\\label{{tab:{figure.id.replace('_', '-')}}}\n"
        f"\\begin{{tabular}}{{{''.join(places)}}}\n\\toprule\n{line} \\\\\n\\midrule\n{body}\n"
        "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
    )


def _place(column: Sequence[Scalar]) -> str:
    """Give the column of siunitx that holds some numbers; `l` for text."""
    values = [value for value in column if value is not None]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "l"
    parts = [_number(float(value)).lstrip("-").partition(".") for value in values]
    before = max((len(whole) for whole, _, _ in parts), default=1)
    after = max((len(rest) for _, _, rest in parts), default=0)
    sign = "-" if any(float(value) < 0 for value in values) else ""
    return f"S[table-format={sign}{before}.{after}]"


def _cell(value: Scalar, *, is_number: bool) -> str:
    if value is None:
        return "{--}" if is_number else "--"
    return _number(float(value)) if is_number else latex_text(str(value))


def _number(value: float) -> str:
    """Write a number without a power of ten: `siunitx` aligns it, and other packages read it."""
    if not math.isfinite(value):
        return "{--}"
    if value == 0:
        return "0"
    decimals = max(DIGITS - 1 - math.floor(math.log10(abs(value))), 0)
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
