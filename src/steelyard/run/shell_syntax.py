"""What only a shell understands, found in commands that are run without one."""

from __future__ import annotations

import re
from typing import Final

_ASSIGNMENT: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)=")
_VARIABLE: Final = re.compile(r"\$[A-Za-z_{(0-9@*#?$!-]")
_OPERATORS: Final = frozenset("|&;<>")


def shell_syntax(text: str, *, at_words_only: bool = False) -> str | None:
    """Give the first piece of a command that a shell would not pass on as it stands.

    Parameters
    ----------
    text : str
        A command, as a user types it.
    at_words_only : bool
        Whether operators count only where a word begins: ``a|b`` and ``x;y`` may be meant as they stand.

    Returns
    -------
    str or None
        ``NAME=`` before the program, ``~``, ``*``, ``$``, a backtick or an operator, outside of quotes that
        keep it from the shell; ``None`` where there is none.

    Examples
    --------
    >>> shell_syntax("FOO=1 make"), shell_syntax("ls ~/x"), shell_syntax("a | b"), shell_syntax("echo $HOME")
    ('FOO=', '~', '|', '$')
    >>> shell_syntax("grep 'a|b' x"), shell_syntax("get 'http://h/?a=1&b=2'"), shell_syntax("x --y=~")
    (None, None, None)
    """
    if (matched := _ASSIGNMENT.match(text)) is not None:
        return f"{matched[1]}="
    quote, is_start, at = "", True, 0
    while at < len(text):
        sign = text[at]
        if sign == "\\" and quote != "'":
            at += 2
            is_start = False
            continue
        if sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
        elif (quote != "'" and (sign == "`" or _VARIABLE.match(text, at))) or (
            not quote and _is_of_shell(text, at, is_start=is_start, at_words_only=at_words_only)
        ):
            return sign
        is_start = not quote and sign.isspace()
        at += 1
    return None


def _is_of_shell(text: str, at: int, *, is_start: bool, at_words_only: bool) -> bool:
    sign = text[at]
    if sign == "~":
        return is_start
    if sign == "*":
        return True
    if sign not in _OPERATORS:
        return False
    # A descriptor may stand before a redirection: `2>errors`.
    begins = is_start or (text[at - 1].isdecimal() and (at == 1 or text[at - 2].isspace()))
    return begins or not at_words_only


def shell_hint(program: str) -> str | None:
    """Say what to do about a program that was not found because it is written for a shell.

    Parameters
    ----------
    program : str
        First word of a command, perhaps with blanks.

    Examples
    --------
    >>> shell_hint("FOO=1")
    '`FOO=` sets a variable in a shell; here `--environment FOO=1` does it'
    >>> shell_hint("sort") is None
    True
    """
    found = shell_syntax(program) or ("/~" if "/~/" in program else None)
    if found is None:
        return f"`{program}` is one word: separate program and arguments" if " " in program.strip() else None
    if found.endswith("="):
        name = found[:-1]
        value = program.partition("=")[2].split(" ")[0]
        return f"`{found}` sets a variable in a shell; here `--environment {name}={value}` does it"
    if found in {"~", "/~"}:
        return "only a shell understands `~`: write the folder, or run the command by `sh -c '...'`"
    return f"only a shell understands `{found}`: run the command by `sh -c '...'`"
