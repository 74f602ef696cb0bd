"""``steelyard results tag`` and ``note``: the user's own words on a result."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from steelyard.catalogue.catalogue import Catalogue, require_here
from steelyard.cli.catalogue.registering import OWN_CATALOGUE, CatalogueOption
from steelyard.cli.streams import write_lines
from steelyard.record.labels import changed_labels, changed_note


def tag(
    result: str,
    *tags: str,
    remove: Annotated[
        tuple[str, ...], Parameter(negative="", consume_multiple=False, show_default=False)
    ] = (),
    listed: CatalogueOption = OWN_CATALOGUE,
) -> None:
    """Tag a result, so that it is found again.

    Tags are kept in `labels.json` of the result folder; `steelyard pack` leaves the file out.

    Parameters
    ----------
    result
        Its id, the first digits of it, or its folder.
    tags
        Tags to add, one word each; without any, those that it has are printed.
    remove
        Tag to remove; may be given several times.
    listed
        Catalogue of results.

    Examples
    --------
    Tag a result and list it by the tag::

        steelyard results tag 3fa2 paper-2026
        steelyard results list --tag paper-2026

    Remove a tag::

        steelyard results tag 3fa2 --remove paper-2026
    """
    with Catalogue.at(listed.catalogue) as catalogue:
        entry = require_here(catalogue.entry(result), "label")
        if tags or remove:
            changed_labels(entry.folder, add=tags, remove=remove)
            entry = catalogue.register(entry.folder)
    write_lines([f"{entry.id}: {', '.join(entry.tags) or 'no tags'}"])


def note(result: str, text: str | None = None, *, listed: CatalogueOption = OWN_CATALOGUE) -> None:
    """Write a note on a result, or print the one it has.

    The note is kept in `labels.json` of the result folder; `steelyard pack` leaves the file out.

    Parameters
    ----------
    result
        Its id, the first digits of it, or its folder.
    text
        The note, which replaces an earlier one; an empty text removes it. Without it, the note is printed.
    listed
        Catalogue of results.

    Examples
    --------
    steelyard results note 3fa2 'before the allocator was changed'

    steelyard results note 3fa2
    """
    with Catalogue.at(listed.catalogue) as catalogue:
        entry = require_here(catalogue.entry(result), "label")
        if text is not None:
            changed_note(entry.folder, text.strip())
            entry = catalogue.register(entry.folder)
    write_lines([f"{entry.id}: {line}" for line in entry.note.splitlines()] or [f"{entry.id}: no note"])
