"""Short commands with a time limit: how technologies are tried and tidied up."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.errors import RunError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a short command said.

    Parameters
    ----------
    exit_code : int or None
        ``None`` if it could not be started or did not end in time.
    output, error : str
        Standard output and standard error, stripped.
    """

    exit_code: int | None
    output: str
    error: str

    @property
    def succeeded(self) -> bool:
        """Whether it ended with exit code 0."""
        return self.exit_code == 0

    @property
    def last_words(self) -> str:
        """Give the last line it wrote to standard error, else to standard output, else its end."""
        for text in (self.error, self.output):
            if text:
                return text.splitlines()[-1]
        return "no answer in time" if self.exit_code is None else f"exit code {self.exit_code}"


def attempt(
    command: Sequence[str | Path], *, timeout_s: float = 10.0, text: str = "", goes_on: bool = False
) -> Attempt:
    """Run a short command; never raises for what the command does.

    Parameters
    ----------
    command : sequence
        Program and arguments.
    timeout_s : float
        It is killed after this time [s].
    text : str
        Its standard input.
    goes_on : bool
        Whether it goes on when Ctrl-C ends this process.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            start_new_session=goes_on,
        )
    except FileNotFoundError:
        return Attempt(None, "", f"`{words[0]}` is not installed")
    except OSError as error:
        return Attempt(None, "", f"cannot start `{words[0]}`: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Attempt(None, "", f"`{words[0]}` did not answer within {timeout_s:g} s")
    return Attempt(done.returncode, done.stdout.strip(), done.stderr.strip())


def demand(command: Sequence[str | Path], *, timeout_s: float = 30.0) -> str:
    """Run a command that must succeed, and give its standard output.

    Raises
    ------
    RunError
        If it does not succeed in time.
    """
    found = attempt(command, timeout_s=timeout_s)
    if not found.succeeded:
        words = " ".join(str(word) for word in command)
        message = f"`{words}` failed: {found.last_words}"
        raise RunError(message, code="run.isolation")
    return found.output


def installed(program: str) -> str | None:
    """Give the path of a program, also where it stands in a folder for administrators."""
    return shutil.which(program) or shutil.which(program, path="/usr/local/sbin:/usr/sbin:/sbin")


def first_line(command: Sequence[str]) -> str:
    """Give the first line of a program's version text."""
    found = attempt(command)
    return (found.output or found.error).split("\n", 1)[0]
