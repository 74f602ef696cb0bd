"""The table behind a figure: its numbers with their intervals, as CSV or for LaTeX."""

from __future__ import annotations

import csv
import io
import math
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.report.drawing.figures import menus_of
from steelyard.report.shown_text import shown
from steelyard.report.tables import latex_row, latex_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from steelyard.report.dataset import Json, Scalar
    from steelyard.report.page import Figure

MOST_LATEX_ROWS: Final = 500
"""Rows of a table for a paper; a CSV file has any number."""

DIGITS: Final = 5
"""Significant digits in LaTeX; a CSV file has all."""

_HIDDEN: Final = frozenset({"label", "order", "rank", "at", "is_apart", "is_ideal", "is_moment"})
"""Fields that only place marks, unless an axis names them."""

_UNIT: Final = re.compile(r" \[[^]]*\]$")


class TableForm(StrEnum):
    """Formats of the table behind a figure."""

    LATEX = "latex"
    CSV = "csv"


def figure_tables(figure: Figure, spec: dict[str, Json], form: TableForm) -> dict[str, str]:
    """Give the rows that a figure shows: of what is chosen in its menus, whole names, no row left out.

    Parameters
    ----------
    figure : Figure
        Whose data; LaTeX has those of its first dataset, the marks that the others explain.
    spec : mapping
        Its specification, with what is chosen.
    form : TableForm
        CSV has names of fields as its heads and all digits; LaTeX has those of the axes, and columns of the
        package siunitx.

    Returns
    -------
    dict
        Text by the name of its file, which for further datasets ends with theirs.

    Raises
    ------
    UsageError
        If there are too many rows for LaTeX.
    """
    (_, data), *others = figure.datasets.items()
    rows = _chosen_rows(data.columns, spec)
    if form is TableForm.CSV:
        made = {figure.id: rows} | {
            f"{figure.id}-{name}": further
            for name, each in others
            if (further := _chosen_rows(each.columns, spec))
        }
        return {f"{name}.csv": _csv(each, _columns(each, spec)) for name, each in made.items()}
    if len(rows) > MOST_LATEX_ROWS:
        message = (
            f"cannot write the table of `{figure.id}` for LaTeX: it has {len(rows)} rows, and "
            f"{MOST_LATEX_ROWS} are allowed"
        )
        raise UsageError(
            message,
            hint="--table csv has any number of rows; --cell MENU=OPTION leaves fewer",
            code="usage.figure",
        )
    names = _columns(rows, spec)
    return {f"{figure.id}.tex": _latex(figure, rows, names, _heads(spec, names))}


def _csv(rows: Sequence[Mapping[str, Scalar]], names: Sequence[str]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(row.get(name)) for name in names] for row in rows)
    return stream.getvalue()


def _chosen_rows(data: Mapping[str, Sequence[Scalar]], spec: dict[str, Json]) -> list[Mapping[str, Scalar]]:
    """Give the rows of what is chosen; a menu keeps the rows of its option by a filter on a field."""
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


def _heads(spec: Json, names: Sequence[str]) -> list[str]:
    """Give what people read as the name of each column: as tips have it, else the axis that is its alone.

    An axis from one field to another names neither; both have its unit.
    """
    tips, axes, units = dict[str, str](), dict[str, str](), dict[str, str]()
    for part in _parts(spec):
        for tip in lines if isinstance(lines := part.get("tooltip"), list) else ():
            tips |= _titled(tip)
        for channel in ("x", "y"):
            place, end = part.get(channel), part.get(f"{channel}2")
            for field, title in _titled(place).items():
                axes[field] = title
                ends = [str(end["field"])] if isinstance(end, dict) and "field" in end else []
                if isinstance(place, dict) and place.get("type") == "quantitative":
                    units |= dict.fromkeys([field, *ends], "".join(_UNIT.findall(title)))
    titles = [*axes.values()]
    alone = {field: title for field, title in axes.items() if titles.count(title) == 1}
    free = {field: title for field, title in alone.items() if title not in tips.values()}
    heads = [(free | tips).get(name, name.replace("_", " ")) for name in names]
    return [
        head if _UNIT.search(head) else f"{head}{units.get(name, '')}"
        for name, head in zip(names, heads, strict=True)
    ]


def _titled(channel: Json) -> dict[str, str]:
    """Give the title of a channel by its field; none where it has none."""
    if not isinstance(channel, dict) or not channel.get("title") or "field" not in channel:
        return {}
    return {str(channel["field"]): str(channel["title"])}


def _columns(rows: Sequence[Mapping[str, Scalar]], spec: Json) -> list[str]:
    """Give the fields that say something: those that only place marks or are empty in every row do not."""
    names = dict.fromkeys(name for row in rows for name in row)
    named = {field for part in _parts(spec) for channel in ("x", "y") for field in _titled(part.get(channel))}
    return [
        name
        for name in names
        if (name not in _HIDDEN or name in named or (name == "label" and "name" not in names))
        and any(row.get(name) is not None for row in rows)
    ]


def _plain(value: Scalar) -> str | int | float:
    return "" if value is None else shown(value) if isinstance(value, str) else value


def _latex(
    figure: Figure, rows: Sequence[Mapping[str, Scalar]], names: Sequence[str], heads: Sequence[str]
) -> str:
    columns = [[row.get(name) for row in rows] for name in names]
    places = [_place(column) for column in columns]
    # Braces keep a heading from being read as a number.
    line = " & ".join(f"{{{latex_text(head)}}}" for head in heads)
    body = "\n".join(
        latex_row(
            _cell(value, is_number=place != "l")
            for value, place in zip((row.get(name) for name in names), places, strict=True)
        )
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
