"""What a reader of a foreign format may be told about the files."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Choices that formats without structure of their own need.

    Parameters
    ----------
    columns : dict
        Column (name, or number from 1) of each role: ``value``, ``run``, ``iteration``, ``workload``,
        ``phase``, ``metric``, ``block``; any other role is a factor.
    unit : str
        Unit of the values; empty where the format tells.
    stated : dict
        What the files do not say and their reader does; options of the plan.
    levels : dict
        The same of columns that a table lacks: the value of each in every row.
    """

    columns: dict[str, str] = field(default_factory=dict)
    unit: str = ""
    stated: dict[str, float] = field(default_factory=dict)
    levels: dict[str, str] = field(default_factory=dict)
