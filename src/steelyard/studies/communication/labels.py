"""How transports, links and states are named in tables, menus and sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.studies.communication.options import NO_LINK
from steelyard.studies.communication.pairs import is_pair, nodes_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from steelyard.model import Finding

STEADY: Final = "steady"


def label_of(subject: Mapping[str, str]) -> str:
    """Name the transport, link and state that a finding is about.

    Examples
    --------
    >>> label_of({"transport": "tcp", "link": "none", "state": "steady"})
    'tcp'
    >>> label_of({"transport": "tcp", "link": "rate=1gbit", "state": "slow"})
    'tcp over rate=1gbit (slow host)'
    >>> label_of({"transport": "shm", "link": "none", "state": "near, slow"})
    'shm (CPUs near, slow host)'
    >>> label_of({"transport": "mpich", "link": "n1:n2"}), label_of({"transport": "mpich", "link": "n1:n1"})
    ('mpich between n1 and n2', 'mpich within n1')
    """
    link = subject.get("link", NO_LINK)
    state = subject.get("state", STEADY)
    over = "" if link == NO_LINK else f" {_between(link)}"
    told = ", ".join(_told(part) for part in state.split(", ") if part != STEADY)
    return f"{subject['transport']}{over}{f' ({told})' if told else ''}"


def _between(link: str) -> str:
    if not is_pair(link):
        return f"over {link}"
    first, *second = nodes_of(link)
    return f"between {first} and {second[0]}" if second else f"within {first}"


def _told(state: str) -> str:
    """Say a part of a state: how far the CPUs are apart, or how costs are."""
    return f"CPUs {state}" if state in {"near", "far"} else f"{state} host"


def labelled(finding: Finding) -> str:
    """Name what a finding is about."""
    return label_of(finding.subject)
