"""Texts from elsewhere made fit to be recorded: what other programs say may quote a secret."""

from __future__ import annotations

import itertools
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
_NAMES: Final = (
    r"(?:[A-Za-z0-9]+[-_])*(?:token|secret|passw(?:or)?d|passphrase|credentials?|apikey"
    r"|(?:api|access|private|secret|auth)[-_]key)"
)
_VALUE: Final = r"""(?:"[^"]*"|'[^']*'|[^\s"'`,;()\[\]]+)"""
_NAMED: Final = re.compile(
    rf"(?<![A-Za-z0-9_])(?P<name>-{{0,2}}{_NAMES}=|--?{_NAMES}[ ](?!-)){_VALUE}", re.IGNORECASE
)
_OPTION: Final = re.compile(rf"--?{_NAMES}", re.IGNORECASE)
_HEADER: Final = re.compile(
    r"(?P<name>\b(?:proxy-)?authorization:\s*(?:basic|bearer|token)?\s+|\bx-[a-z-]*(?:token|key):\s*)[^\s\"'`]+",
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


def without_named_secrets(text: str) -> str:
    """Hide what a command calls a secret: the value of an option, a variable or a header of such a name.

    Examples
    --------
    >>> without_named_secrets("API_KEY=abc curl --token 'd e' -H 'Authorization: Bearer f' --author=g")
    "API_KEY=*** curl --token *** -H 'Authorization: Bearer ***' --author=g"
    >>> without_named_secrets("generate --max-tokens=100 --token-count 5 --token --verbose")
    'generate --max-tokens=100 --token-count 5 --token --verbose'
    """
    return _HEADER.sub(rf"\g<name>{HIDDEN}", _NAMED.sub(rf"\g<name>{HIDDEN}", text))


def published(content: object, environment: Mapping[str, str] | None = None) -> object:
    """Give a JSON value in which every text is fit to be published; names of fields stay.

    Examples
    --------
    >>> published({"words": ["curl", "--token", "abc", "--password=x"], "runs": 3}, {})
    {'words': ['curl', '--token', '***', '--password=***'], 'runs': 3}
    """
    if isinstance(content, str):
        return without_named_secrets(without_secrets(content, environment))
    if isinstance(content, dict):
        return {name: published(value, environment) for name, value in content.items()}
    if isinstance(content, list):
        found = [published(value, environment) for value in content]
        for at, (before, value) in enumerate(itertools.pairwise(content), start=1):
            # The words of a command: an option, and its value.
            texts = isinstance(before, str) and isinstance(value, str)
            if texts and _OPTION.fullmatch(before) and not value.startswith("-"):
                found[at] = HIDDEN
        return found
    return content


def last_lines(text: str) -> str:
    r"""Give the last lines of what a program said, for a message of one line.

    Examples
    --------
    >>> last_lines("compiling\n\n  no such header\n")
    'compiling; no such header'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "; ".join(lines[-_SHOWN_LINES:])
