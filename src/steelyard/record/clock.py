"""The one place where a date is read."""

from __future__ import annotations

from datetime import UTC, datetime


def now_utc() -> str:
    """Give the time in UTC as ISO 8601 text with milliseconds.

    Examples
    --------
    >>> now_utc().endswith("+00:00")
    True
    """
    return datetime.now(UTC).isoformat(timespec="milliseconds")
