"""Which verb a command line means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from steelyard.cli.verbs import VERBS
from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

HELP_FLAGS: Final = ("--help", "-h")
OWN_OPTIONS: Final = (*HELP_FLAGS, "--version", "-V", "--install-completion")


def find_verb(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """Split a command line into its verb, of one word or two, and what stands behind.

    Examples
    --------
    >>> find_verb(["export", "simgrid", "results/night"])
    ('export simgrid', ['results/night'])
    >>> find_verb(["reprot"]) is None
    True
    """
    for length in (2, 1):
        name = " ".join(words[:length])
        if name in VERBS:
            return name, list(words[length:])
    return None


def family(word: str) -> dict[str, str]:
    """Give the verbs of two words that begin with a word, with their summaries.

    Examples
    --------
    >>> list(family("scheduler"))
    ['scheduler start', 'scheduler stop', 'scheduler status']
    """
    return {name: verb.summary for name, verb in VERBS.items() if name.startswith(f"{word} ")}


def unknown_verb(words: Sequence[str]) -> UsageError:
    """Give the error for a command line without a verb of ours, naming the nearest one first."""
    from difflib import get_close_matches  # noqa: PLC0415 - start-up time

    kin = family(words[0])
    if kin and len(words) == 1:
        seconds = ", ".join(f"`{name.partition(' ')[2]}`" for name in kin)
        return UsageError(
            f"`{words[0]}` needs a second word\nallowed: {seconds}", hint=f"steelyard {words[0]} --help"
        )
    firsts = {name.partition(" ")[0] for name in VERBS}
    both = " ".join(words[:2])
    near = (
        get_close_matches(words[0], OWN_OPTIONS, n=1)
        if words[0].startswith("-")
        else get_close_matches(both, kin or VERBS, n=1) or get_close_matches(words[0], [*VERBS, *firsts], n=1)
    )
    given = both if kin else words[0]
    if near:
        message = f"`{given}` is not a verb of steelyard; did you mean `steelyard {near[0]}`?"
        hint = f"steelyard {near[0]}" if near[0] in OWN_OPTIONS else f"steelyard {near[0]} --help"
    else:
        message = f"`{given}` is not a verb of steelyard"
        hint = "steelyard --help"
    return UsageError(f"{message}\nverbs: {', '.join(kin or VERBS)}", hint=hint)
