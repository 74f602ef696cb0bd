"""What lies between the two endpoints of a cell: nothing, a link made for the study, or a real network."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError
from steelyard.run.hosts.hostfile import first_pair, read_hostfile
from steelyard.studies.communication.options import NO_LINK
from steelyard.studies.communication.pairs import nodes_of, pairs_of, place_of
from steelyard.studies.communication.transport.hosts import Hosts
from steelyard.studies.communication.transport.interface import HERE
from steelyard.studies.communication.transport.link import Link
from steelyard.studies.communication.transport.link_options import (
    NominalLink,
    is_nominal,
    parse_link,
    parse_nominal,
)
from steelyard.studies.host_facts import host_facts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from steelyard.studies.communication.options import CommunicationOptions
    from steelyard.studies.communication.transport.interface import Place

HOSTS: Final = "hosts"
"""Level of two real hosts with a network between them."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where the endpoints of a cell are.

    Parameters
    ----------
    place : Place
        As a transport takes it.
    facts : mapping
        What is known of it, kept beside each trace.
    is_here : bool
        Whether both endpoints see this host's files and CPUs; else what the other one wrote is fetched.
    """

    place: Place
    facts: Mapping[str, object]
    is_here: bool = True


def links_of(options: CommunicationOptions) -> tuple[str, ...]:
    """Give the levels of the factor ``link``, each written in one way.

    Raises
    ------
    UsageError
        If a link, or the file of hosts, cannot be read.
    """
    nominal_of(options)
    if options.pairs:
        return pairs_of(options, host_facts().names)
    if options.hostfile is not None:
        first_pair(read_hostfile(Path(options.hostfile)), options.hostfile)
        return (HOSTS,)
    made = [text for text in options.link if not is_nominal(text)]
    written = (text if text == NO_LINK else str(parse_link(text)) for text in made)
    return tuple(dict.fromkeys(written)) or (NO_LINK,)


def nominal_of(options: CommunicationOptions) -> NominalLink | None:
    """Give what the network between the endpoints is said to be; ``None`` where nothing was said.

    Raises
    ------
    UsageError
        If it cannot be read, or two different networks are stated.
    """
    stated = [text for text in options.link if is_nominal(text)]
    if len(stated) > 1:
        message = f"`--link` states two existing networks: `{stated[0]}` and `{stated[1]}`"
        raise UsageError(message, hint="state only the one between the endpoints", code="usage.link")
    return parse_nominal(stated[0]) if stated else None


@contextmanager
def sites_of(options: CommunicationOptions) -> Iterator[dict[str, Site]]:
    """Make every link and reach every host; links are removed at the end. Pairs of nodes are not among them.

    Raises
    ------
    UsageError
        If a link, or the file of hosts, cannot be read.
    CapabilityError
        If this host cannot make a link, or a host cannot be reached.
    """
    with ExitStack() as stack:
        sites = {}
        for level in () if options.pairs else links_of(options):
            if level == NO_LINK:
                sites[level] = Site(HERE, {})
                continue
            if level == HOSTS:
                hosts = stack.enter_context(Hosts(Path(str(options.hostfile))))
                sites[level] = Site(hosts.place(), hosts.facts(), is_here=False)
                continue
            link = stack.enter_context(Link(parse_link(level)))
            sites[level] = Site(link.place(), link.facts())
        yield sites


def site_of_pair(level: str, options: CommunicationOptions) -> Site:
    """Give where the endpoints of a pair of nodes are, in the job that has them.

    Raises
    ------
    CapabilityError
        As `pairs.place_of`.
    """
    place = place_of(level, options.starter)
    facts = {"nodes": list(place.nodes.names if place.nodes else nodes_of(level) * 2)}
    return Site(place, facts, is_here=place.nodes is None)
