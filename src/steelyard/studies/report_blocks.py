"""Blocks of a section that any study's report has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.model import Finding
    from steelyard.report.page import Block
    from steelyard.report.sentence import Phrasing


def present(*blocks: Block | None) -> tuple[Block, ...]:
    """Give those blocks that have something to show."""
    return tuple(block for block in blocks if block is not None)


def listed(phrasing: Phrasing, chosen: Sequence[Finding], summary: str = "In words") -> Block | None:
    """Give one sentence per finding as a list, folded behind a summary; nothing where there is none."""
    return Prose(phrasing.say_all(chosen), is_list=True, summary=summary) if chosen else None
