"""What lies between the two endpoints of a cell: nothing, or a link that is made for the study."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.run.transport.interface import HERE
from steelyard.run.transport.link import Link
from steelyard.run.transport.link_options import parse_link
from steelyard.studies.communication.options import NO_LINK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.run.transport.interface import Place
    from steelyard.studies.communication.options import CommunicationOptions


@dataclass(frozen=True, slots=True)
class Site:
    """Where the endpoints of a cell are.

    Parameters
    ----------
    place : Place
        As a transport takes it.
    facts : mapping
        What is known of it, kept beside each trace.
    """

    place: Place
    facts: Mapping[str, object]


def links_of(options: CommunicationOptions) -> tuple[str, ...]:
    """Give the levels of the factor ``link``, each written in one way.

    Raises
    ------
    UsageError
        If a link cannot be read.
    """
    written = (text if text == NO_LINK else str(parse_link(text)) for text in options.link)
    return tuple(dict.fromkeys(written)) or (NO_LINK,)


@contextmanager
def sites_of(levels: tuple[str, ...]) -> Iterator[dict[str, Site]]:
    """Make every link, and remove it at the end.

    Parameters
    ----------
    levels : tuple of str
        From `links_of`.

    Raises
    ------
    CapabilityError
        If this host cannot make a link.
    """
    with ExitStack() as stack:
        sites = {}
        for level in levels:
            if level == NO_LINK:
                sites[level] = Site(HERE, {})
                continue
            link = stack.enter_context(Link(parse_link(level)))
            sites[level] = Site(link.place(), link.facts())
        yield sites
