"""What a reader of a foreign format may be told about the files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Choices that formats without structure of their own need.

    Parameters
    ----------
    columns : dict
        Column (name, or number from 1) of each role: ``value``, ``run``, ``iteration``, ``workload``,
        ``phase``, ``metric``, ``block``, ``exit_code``; any other role is a factor.
    unit : str
        Unit of the values; empty where the format tells.
    workload : str
        Name of the program where no column tells; ``{file}`` stands for the name of the file.
    wide : str
        Role that the headings of all other columns have, each of which holds values; empty for one column of
        values.
    rows : str
        What a row is where no column tells: ``iteration`` of one run, ``run`` or ``block``; empty for an
        iteration, or for a run where columns are the iterations.
    has_header : bool
        Whether the first row names the columns; where columns are given by number it is looked at.
    decimal : str
        Sign before the decimals.
    comment : str
        What lines that are no rows begin with; empty for none.
    missing : tuple of str
        Words that stand for a value that is not there.
    stated : dict
        What the files do not say and their reader does; options of the plan.
    levels : dict
        The same of columns that a table lacks: the value of each in every row.
    operation, transport : str
        Of recorded messages: what was done, and what moved them; empty where the file tells, or the usual.
    is_one_clock : bool
        Whether both ends of recorded messages read one clock.
    probes : dict
        File of the clock probes of a file of recorded messages; without, the one beside it.
    """

    columns: dict[str, str] = field(default_factory=dict)
    unit: str = ""
    workload: str = ""
    wide: str = ""
    rows: str = ""
    has_header: bool = True
    decimal: str = "."
    comment: str = ""
    missing: tuple[str, ...] = ()
    stated: dict[str, float | str] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
    operation: str = ""
    transport: str = ""
    is_one_clock: bool = False
    probes: dict[Path, Path] = field(default_factory=dict)
