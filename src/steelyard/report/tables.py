"""Tables as Markdown and LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from steelyard.report.shown_text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from steelyard.report.page import Column, Table, Value

_LATEX_SIGNS: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
_MARKDOWN_SIGNS: Final = re.compile(r"([\\`*_{}\[\]<>|#])")


def to_markdown(table: Table) -> str:
    """Write a table in GitHub's Markdown, numbers aligned to the right.

    Parameters
    ----------
    table : Table
        All its rows are written.

    Returns
    -------
    str
        Caption, what it says, table and note.
    """
    heads = [markdown_text(_heading(column)) for column in table.columns]
    rules = ["---:" if column.is_number else ":---" for column in table.columns]
    lines = [_row(heads), _row(rules)]
    lines += [_row([_markdown_value(value) for value in row]) for row in table.rows]
    note = f"\n\n{markdown_text(table.note)}" if table.note else ""
    said = f"{markdown_text(table.summary)}.\n\n" if table.summary else ""
    return f"**{markdown_text(table.title)}**\n\n{said}" + "\n".join(lines) + note + "\n"


def to_latex(table: Table) -> str:
    """Write a table for LaTeX with the package booktabs.

    Parameters
    ----------
    table : Table
        All its rows are written.

    Returns
    -------
    str
        A ``table`` environment.
    """
    places = "".join("r" if column.is_number else "l" for column in table.columns)
    heads = latex_row(latex_text(_heading(column)) for column in table.columns)
    rows = [latex_row(latex_text(value.text) for value in row) for row in table.rows]
    body = "\n".join([heads, r"\midrule", *rows])
    return (
        "\\begin{table}\n"
        f"\\caption{{{latex_text(table.title)}}}\n\\label{{{table.id.replace('_', '-')}}}\n"
        f"\\begin{{tabular}}{{{places}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}\n\\end{{table}}\n"
    )


def markdown_text(text: str) -> str:
    r"""Escape the signs Markdown reads as markup, and write out those that are invisible.

    Examples
    --------
    >>> markdown_text("exp_float | <b>")
    'exp\\_float \\| \\<b\\>'
    """
    return _MARKDOWN_SIGNS.sub(r"\\\1", shown(text).replace("\n", " "))


def latex_text(text: str) -> str:
    r"""Escape the signs LaTeX reads as commands, and write out those that are invisible.

    Examples
    --------
    >>> latex_text("50 % of exp_float")
    '50 \\% of exp\\_float'
    """
    return "".join(_LATEX_SIGNS.get(sign, sign) for sign in shown(text).replace("\n", " "))


def latex_row(cells: Iterable[str]) -> str:
    r"""Give a row of a table: its end may be followed by ``*`` or ``[``, which would belong to ``\\``.

    Examples
    --------
    >>> latex_row(["[a]", "1"])
    '{}[a] & 1 \\\\'
    """
    row = " & ".join(cells)
    return ("{}" if row.startswith(("*", "[")) else "") + row + r" \\"


def _heading(column: Column) -> str:
    return f"{column.key} [{column.unit}]" if column.unit else column.key


def _markdown_value(value: Value) -> str:
    note = f" ({markdown_text(value.note)})" if value.note else ""
    return markdown_text(value.text) + note


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
