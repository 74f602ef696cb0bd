"""The transports there are, by name. What each needs is imported when it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.run.transport.native import NATIVE

if TYPE_CHECKING:
    from steelyard.run.transport.interface import Transport


def transports() -> dict[str, Transport]:
    """Give the transports by name, in the order of reports.

    Examples
    --------
    >>> list(transports())[:2]
    ['pipe', 'unix']
    """
    return dict(NATIVE)
