"""The document a report is: sections of statements, tables and figures, before any format is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, TypeAlias, overload

from steelyard.report.sentence import Part, Statement
from steelyard.report.shown_text import all_shown, as_title, shown, with_short_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from steelyard.model.finding import Finding
    from steelyard.report.dataset import Dataset, Json


MOST_ROWS: Final = 500
"""Rows of a table that a page has where a file has all: of 100 000 cells no browser shows the page."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    key : str
        Heading as written in the CSV file of the same table.
    unit : str
        Shown below the heading; empty for text and pure numbers.
    is_number : bool
        Numbers are aligned to the right and sorted by value.
    is_prose : bool
        Sentences, which may be broken into lines.
    explanation : str
        One sentence for people who do not know the word; empty when there is none.
    in_terminal : bool
        Whether the summary in a terminal has room for it.
    """

    key: str
    unit: str = ""
    is_number: bool = False
    is_prose: bool = False
    explanation: str = ""
    in_terminal: bool = True


@dataclass(frozen=True, slots=True)
class Value:
    """The content of one table cell.

    Parameters
    ----------
    text : str
        What is shown; ``NA`` where nothing was measured.
    order : float or None
        Sort key of a number; ``None`` sorts last.
    tone : str
        Class of style, such as ``higher`` or ``slower``; empty for plain text.
    note : str
        A second, smaller line.
    note_tone : str
        Class of style of the second line.
    finding : str or None
        Id of the finding behind the value.
    """

    text: str
    order: float | None = None
    tone: str = ""
    note: str = ""
    note_tone: str = ""
    finding: str | None = None


class MadeRows(Sequence[tuple[Value, ...]]):
    """Rows of a long table, each made, as it is shown, whenever it is asked for: few of them are.

    Parameters
    ----------
    count : int
        Number of rows.
    make : callable
        Gives the row at a place.
    """

    def __init__(self, count: int, make: Callable[[int], tuple[Value, ...]]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> tuple[Value, ...]: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[tuple[Value, ...], ...]: ...

    def __getitem__(self, place: int | slice) -> tuple[Value, ...] | tuple[tuple[Value, ...], ...]:
        places = range(self._count)[place]
        if isinstance(places, range):
            return tuple(self[each] for each in places)
        return all_shown(self._make(places))


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption.

    Parameters
    ----------
    id : str
        Anchor and file stem of the CSV with all rows.
    title : str
        Numbered caption.
    columns : tuple of Column
        In order.
    rows : sequence of tuple of Value
        Each as long as `columns`.
    note : str
        How to read it.
    file : str or None
        Path of the CSV file relative to the result folder.
    is_key : bool
        Whether the terminal summary shows it.
    summary : str
        What it says, in one line; a long table is folded behind it.
    """

    id: str
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Value, ...]]
    note: str = ""
    file: str | None = None
    is_key: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart as a Vega-Lite specification.

    Parameters
    ----------
    id : str
        Anchor and file stem of the exported SVG and PNG.
    title, caption : str
        Heading, and how to read it.
    alternative : str
        What the figure shows, for people who do not see it.
    spec : dict
        Vega-Lite 6; its data are named datasets.
    datasets : dict
        By the name the specification uses.
    panel_width : int
        Smallest useful width of one facet [px]; 0 for a chart of one panel.
    """

    id: str
    title: str
    caption: str
    alternative: str
    spec: dict[str, Json]
    datasets: dict[str, Dataset]
    panel_width: int = 0


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph or list of statements; one that has a `summary` is folded behind it."""

    statements: tuple[Statement, ...]
    is_list: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the reader must not overlook: what is absent and why, or what is wrong."""

    title: str
    items: tuple[str, ...]
    tone: str = "absent"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names with their values or definitions."""

    title: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands to copy, each with what it does."""

    items: tuple[tuple[str, str], ...]


Block: TypeAlias = "Prose | Table | Figure | Notice | Pairs | Commands"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with a heading.

    Parameters
    ----------
    id, title : str
        Anchor and heading.
    lead : str
        One or two sentences that say what the section answers.
    blocks : tuple
        In order.
    """

    id: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A verdict at a glance.

    Parameters
    ----------
    title : str
        What it is about.
    value : str
        The answer, short.
    note : str
        Its condition.
    tone : str
        ``good``, ``warn``, ``bad`` or ``plain``.
    finding : str or None
        Id of the finding behind it.
    colour : str
        Colour that stands for the subject in every chart; empty for none.
    """

    title: str
    value: str
    note: str
    tone: str = "plain"
    finding: str | None = None
    colour: str = ""


@dataclass(frozen=True, slots=True)
class CardGroup:
    """Cards that answer one question."""

    title: str
    cards: tuple[Card, ...]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a report opens with, in this order.

    Parameters
    ----------
    answer : iterable of Statement
        The verdict in one line; then, below figure and cards, the few sentences that no table has.
    figure : Figure or None
        The picture of the answer; a section that has it too loses it. ``None`` where nothing can be drawn.
    cards : iterable of CardGroup
        Verdicts at a glance.
    """

    answer: Iterable[Statement]
    figure: Figure | None = None
    cards: Iterable[CardGroup] = ()


_FITTED: Final[Mapping[type, Mapping[str, Callable[[str], str]]]] = {
    Part: {"text": with_short_names},
    Statement: {"warnings": with_short_names},
    Notice: {"title": as_title, "items": with_short_names},
    Card: dict.fromkeys(("title", "value", "note"), as_title),
    CardGroup: {"title": as_title},
    Section: {"title": as_title},
    Table: {"title": as_title, "summary": with_short_names},
    Figure: {"title": as_title},
}
"""What is shortened where it stands: a name has its whole length in the cells of tables and in CSV files."""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole report, with all texts as they are shown.

    Every format is made of a page: so here, once, signs that are invisible or turn what stands beside them
    become visible (`shown_text`), whatever names a study was given.

    Parameters
    ----------
    study, question : str
        Name of the study and what it asks.
    about : tuple of (str, str)
        Short facts for the head of the page: host, date, plan, size.
    answer : tuple of Statement
        The verdict in one line, which stands above everything; then the few sentences that no table has.
    cards : tuple of CardGroup
        Verdicts at a glance.
    notices : tuple of Notice
        Shown directly below the answer.
    sections : tuple of Section
        In order.
    findings : dict
        By id as it is shown; all that any part of the page names.
    figure : Figure or None
        The picture of the answer, directly below the verdict; ``None`` where there is nothing to draw.
    has_files : bool
        Whether figures and tables lie in files beside the page.
    """

    study: str
    question: str
    about: tuple[tuple[str, str], ...]
    answer: tuple[Statement, ...]
    cards: tuple[CardGroup, ...]
    notices: tuple[Notice, ...]
    sections: tuple[Section, ...]
    findings: dict[str, Finding] = field(default_factory=dict)
    figure: Figure | None = None
    has_files: bool = True

    def __post_init__(self) -> None:
        """Make all texts those that are shown; the findings themselves stay what they are."""
        for each in fields(self):
            value = getattr(self, each.name)
            made = (
                {shown(name): finding for name, finding in value.items()}
                if each.name == "findings"
                else all_shown(value, _FITTED)
            )
            object.__setattr__(self, each.name, made)
        object.__setattr__(self, "question", as_title(self.question))

    def figures(self) -> tuple[Figure, ...]:
        """Give all figures in order, that of the answer first."""
        blocks = (self.figure, *(block for section in self.sections for block in section.blocks))
        return tuple(block for block in blocks if isinstance(block, Figure))

    def tables(self) -> tuple[Table, ...]:
        """Give all tables in order."""
        return tuple(
            block for section in self.sections for block in section.blocks if isinstance(block, Table)
        )
