"""Blocks of a section that any study's report has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding
    from steelyard.report.page import Block
    from steelyard.report.sentence import Phrasing, Statement


def present(*blocks: Block | None) -> tuple[Block, ...]:
    """Give those blocks that have something to show."""
    return tuple(block for block in blocks if block is not None)


def listed(phrasing: Phrasing, chosen: Sequence[Finding], summary: str = "") -> Block | None:
    """Give one sentence per finding as a list; nothing where there is none.

    It is folded behind its summary. Without one, a single sentence is not.
    """
    return said(phrasing.say_all(chosen), summary or ("In words" if len(chosen) > 1 else ""))


def said(statements: Sequence[Statement], summary: str) -> Block | None:
    """Give statements as a list, folded behind a summary if there is one; nothing where there is none."""
    return Prose(tuple(statements), is_list=True, summary=summary) if statements else None
