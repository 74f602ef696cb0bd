"""``steelyard --install-completion``: what lets a shell complete verbs, studies and options."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal, get_args

from cyclopts import App
from cyclopts.completion import ShellDetectionError

from steelyard.cli.verb_app import study_app, verb_app
from steelyard.cli.verbs import VERBS
from steelyard.errors import CapabilityError, UsageError, unwritable
from steelyard.study import studies

if TYPE_CHECKING:
    from collections.abc import Sequence

Shell = Literal["bash", "zsh", "fish"]
SHELLS: Final[tuple[Shell, ...]] = get_args(Shell)
_OPTION: Final = "--install-completion"


def install_completion(words: Sequence[str]) -> None:
    """Write the script for a shell, have the shell load it, and say where it is.

    The script is made once and holds every name, so that completing starts no Python.

    Parameters
    ----------
    words : sequence of str
        ``--install-completion``, and the shell where it is not the one in use.

    Raises
    ------
    UsageError
        If the shell is none of those that are known, or nobody can tell which one is in use.
    """
    named = _named(words)
    try:
        path = whole_app().install_completion(shell=named)
    except ShellDetectionError as error:
        message = "cannot tell which shell is in use"
        raise UsageError(message, hint=f"steelyard {_OPTION} bash") from error
    except OSError as error:
        raise unwritable(error.filename, error, "give a `HOME` you may write to") from error
    needed = "; `.zshrc` must call `autoload -Uz compinit && compinit`" if path.name.startswith("_") else ""
    sys.stdout.write(f"completion: {path}\nnext: open a new shell{needed}\n")


def whole_app() -> App:
    """Give the command line of all verbs, for completion alone: studies stand as verbs below theirs."""
    root = App(name="steelyard", version_flags=[], help_format="markdown")
    for name, verb in VERBS.items():
        above, _, last = name.rpartition(" ")
        parent = root
        if above:
            if above not in root:
                root.command(App(name=above, version_flags=[]))
            parent = root[above]
        app = study_app(name, None, last) if verb.takes_study else verb_app(name, last)
        for study in studies().values() if verb.takes_study else ():
            with suppress(CapabilityError):  # a study whose options do not load has none to complete
                below = study_app(name, study, study.name)
                below.help = study.question
                app.command(below)
        parent.command(app)
    return root


def _named(words: Sequence[str]) -> Shell | None:
    option, _, value = words[0].partition("=")
    given = [value, *words[1:]] if value else list(words[1:])
    if not given:
        return None
    for shell in SHELLS:
        if given == [shell]:
            return shell
    message = f"`{option} {' '.join(given)}`: allowed: {', '.join(SHELLS)}"
    raise UsageError(message, hint=f"steelyard {_OPTION} bash")
