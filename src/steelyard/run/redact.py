"""Texts from elsewhere made fit to be recorded: what other programs say may quote a secret."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

HIDDEN: Final = "***"
_SECRET_NAME: Final = re.compile(
    r"token|secret|passw|passphrase|credential|cookie|auth|_key$|_key_|apikey|^key$|_pat$|_pwd$",
    re.IGNORECASE,
)
_SHOWN_LINES: Final = 5
_SHORTEST: Final = 4
"""Characters from which on a value is looked for; shorter ones would hide parts of ordinary words."""
_URL_CREDENTIALS: Final = re.compile(r"(?<=://)[^\s/@]+(?=@)")


def has_secret_name(name: str) -> bool:
    """Tell whether a variable's name says that its value is a secret.

    Examples
    --------
    >>> has_secret_name("GH_TOKEN"), has_secret_name("PATH")
    (True, False)
    """
    return _SECRET_NAME.search(name) is not None


def without_secrets(text: str, environment: Mapping[str, str] | None = None) -> str:
    """Hide the values of secret environment variables, and credentials in addresses.

    Parameters
    ----------
    text : str
        What a program said.
    environment : mapping or None
        Variables that may hold secrets, recognised by their names; this process's by default.

    Examples
    --------
    >>> without_secrets("denied: hunter2 at tcp://me:pw@host:1", {"DB_PASSWORD": "hunter2"})
    'denied: *** at tcp://***@host:1'
    """
    known = os.environ if environment is None else environment
    values = {value for name, value in known.items() if has_secret_name(name) and len(value) >= _SHORTEST}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return _URL_CREDENTIALS.sub(HIDDEN, text)


def last_lines(text: str) -> str:
    r"""Give the last lines of what a program said, for a message of one line.

    Examples
    --------
    >>> last_lines("compiling\n\n  no such header\n")
    'compiling; no such header'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-_SHOWN_LINES:])
