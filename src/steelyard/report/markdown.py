"""The whole report as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.report.page import Commands, Figure, Notice, Pairs, Prose, Table
from steelyard.report.tables import markdown_text, to_markdown

if TYPE_CHECKING:
    from steelyard.report.page import Block, Page
    from steelyard.report.sentence import Statement


def render_markdown(page: Page) -> str:
    """Give the page as Markdown; figures are linked to their files in ``figures/``."""
    head = [
        f"# {markdown_text(page.question)}",
        "; ".join(f"{name}: {markdown_text(value)}" for name, value in page.about),
    ]
    answer = [_sentence(statement) for statement in page.answer]
    if page.figure is not None:
        answer.insert(1, _block(page.figure))
    notices = [_block(notice) for notice in page.notices]
    return "\n\n".join([*head, *answer, *notices, *(_section(page))]) + "\n"


def _section(page: Page) -> list[str]:
    parts: list[str] = []
    for section in page.sections:
        parts.append(f"## {markdown_text(section.title)}")
        if section.lead:
            parts.append(section.lead)
        parts.extend(_block(block) for block in section.blocks)
    return parts


def _sentence(statement: Statement) -> str:
    warnings = "".join(f" *({markdown_text(warning)})*" for warning in statement.warnings)
    return markdown_text(statement.text) + warnings


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return to_markdown(block).rstrip()
    if isinstance(block, Figure):
        return (
            f"![{markdown_text(block.alternative)}](figures/{block.id}.svg)\n\n{markdown_text(block.caption)}"
        )
    if isinstance(block, Prose):
        sign = "- " if block.is_list else ""
        return ("\n" if block.is_list else "\n\n").join(f"{sign}{_sentence(one)}" for one in block.statements)
    if isinstance(block, Notice):
        return "\n".join(
            [f"> **{markdown_text(block.title)}**", *(f"> - {markdown_text(item)}" for item in block.items)]
        )
    if isinstance(block, Commands):
        return "\n\n".join(f"{markdown_text(purpose)}:\n\n    {command}" for command, purpose in block.items)
    return _pairs(block)


def _pairs(block: Pairs) -> str:
    title = f"**{markdown_text(block.title)}**\n\n" if block.title else ""
    return title + "\n".join(
        f"- {markdown_text(name)}: {markdown_text(value)}" for name, value in block.items
    )
