"""The command line: one file per verb; only this package decides exit codes."""

from __future__ import annotations

import errno
import os
import re
import shlex
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, get_args

import steelyard
from steelyard.cli.streams import OutputError, name_output_in_errors, require_said, require_streams
from steelyard.cli.verb_lookup import HELP_FLAGS, family, find_verb, unknown_verb
from steelyard.cli.verbs import VERBS
from steelyard.errors import InternalError, SteelyardError, UsageError
from steelyard.interruption import INTERRUPTED, SIGNALS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cyclopts import App

    from steelyard.study import Study

_SUCCESS = 0
_START_FIELD = 19
"""Of `/proc/PID/stat` behind the name: when the process was started, in ticks since boot (proc(5), 22)."""
_READ_A_FILE = frozenset({"fit", "import"})
_OF_REVISIONS = "compare"
_STANDARD_INPUT = "/dev/stdin"
_OPTION = re.compile(r"--[a-z][a-z-]*")
_NEGATIVE_AMOUNT = re.compile(r"-\d[\d.]*[A-Za-z%]+")


class _Process:
    """When this process was started, where it runs one command line and nothing else."""

    began_s: float | None = None


def began_s() -> float | None:
    """Give when the user began to wait, on the monotonic clock [s]; ``None`` inside another program."""
    return _Process.began_s


def _age_s() -> float:
    """Give the time since this process was started [s]; 0 where the system does not say it."""
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - start-up time
            started_s = int(file.read().rpartition(")")[2].split()[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started_s, 0.0)


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    _Process.began_s = time.monotonic() - _age_s()
    try:
        name_output_in_errors()
        code = execute(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    with suppress(KeyboardInterrupt):
        # The answer is given; what is left is Python's own end.
        _watch_signals(signal.SIG_IGN)
    raise SystemExit(code)


def _watch_signals(handler: Callable[[int, object], None] | signal.Handlers) -> None:
    """Handle Ctrl-C and SIGTERM from now on, unless they were ignored from the start (``nohup``)."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def execute(words: Sequence[str]) -> int:
    """Answer one command line.

    Parameters
    ----------
    words : sequence of str
        Everything behind the program's name.

    Returns
    -------
    int
        Exit code, as `docs/reference/errors.md` lists them.
    """
    try:
        require_streams()
        code = _answer(words)
        # What is written at exit only fails when nobody can say so any more.
        sys.stdout.flush()
        if code == _SUCCESS:
            require_said()
    except SteelyardError as error:
        return _fail(error, words)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except OutputError as error:
        return _fail_output(error, words)
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        # The one place where nothing may escape; a panic of a native library is no `Exception`.
        return _fail(_of_system(error) or _of_package(error) or _internal(error), words)
    return code


def _answer(words: Sequence[str]) -> int:
    while words and words[0] == "help":
        # The flag stands first, so that nothing behind it can be taken for a program to run.
        split = find_verb(words[1:])
        words = (
            [*words[1:], HELP_FLAGS[0]] if split is None else [*split[0].split(" "), HELP_FLAGS[0], *split[1]]
        )
    if not words or words[0] in HELP_FLAGS:
        sys.stdout.write(overview())
        return _SUCCESS
    if words[0] in {"--version", "-V"}:
        sys.stdout.write(f"steelyard {steelyard.__version__}\n")
        return _SUCCESS
    if words[0].partition("=")[0] == "--install-completion":
        from steelyard.cli.completion import install_completion  # noqa: PLC0415 - start-up time

        install_completion(words)
        return _SUCCESS
    split = find_verb(words)
    if split is not None:
        return _execute_verb(*split)
    kin = family(words[0])
    if kin and len(words) > 1 and words[1] in HELP_FLAGS:
        sys.stdout.write(f"Usage: steelyard {words[0]} VERB [options]\n\nVerbs:\n{_listed(kin)}\n")
        return _SUCCESS
    raise unknown_verb(words)


def _with_help_flag(words: Sequence[str]) -> list[str]:
    """Ask for the help of a verb; before all else, so that nothing is taken for a program to run."""
    split = find_verb(words)
    if split is None:
        return [*words, HELP_FLAGS[0]]
    return [*split[0].split(" "), HELP_FLAGS[0], *split[1]]


def overview() -> str:
    """Give the text of ``steelyard --help``."""
    verbs = _listed({name: verb.summary for name, verb in VERBS.items()})
    return (
        "Steelyard: a laboratory for performance experiments.\n\n"
        f"Usage: steelyard VERB [options]\n\nVerbs:\n{verbs}\n\n"
        "Start here:\n"
        "  steelyard doctor                    is this machine fit to measure on?\n"
        "  steelyard measure -- sleep 0.1      what does one command use?\n"
        "  steelyard compare ./old ./new       which is faster, and how certain is that?\n"
        "  steelyard run stability --quick     how many workers before timings become unreliable?\n\n"
        "`steelyard help VERB` explains a verb with examples, `steelyard help run STUDY` a study's options.\n"
        "`steelyard --install-completion` lets bash, zsh or fish complete verbs and options.\n"
    )


def _listed(verbs: Mapping[str, str]) -> str:
    width = max(map(len, verbs)) + 2
    return "\n".join(f"  {name:<{width}}{summary}" for name, summary in verbs.items())


def _execute_verb(name: str, words: Sequence[str]) -> int:
    from cyclopts import CycloptsError  # noqa: PLC0415 - start-up time

    from steelyard.cli.verb_app import study_app, verb_app  # noqa: PLC0415 - start-up time

    study = _named_study(words) if VERBS[name].takes_study else None
    app = study_app(name, study) if VERBS[name].takes_study else verb_app(name)
    words = with_values(words, takes_command=VERBS[name].takes_command)
    if name == _OF_REVISIONS:
        words = with_one_command(words)
    if name in _READ_A_FILE and "-" in words:
        words = _with_standard_input(app, words)
    if _Process.began_s is not None:
        _watch_signals(_interrupt)
    try:
        if VERBS[name].takes_command:
            _require_separator(app, name, words)
        answer = app(
            list(words),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        from steelyard.cli.usage_error import complaint  # noqa: PLC0415 - start-up time

        named = "" if study is None else f" {study.name}"
        raise UsageError(complaint(app, error, study), hint=f"steelyard {name}{named} --help") from error
    return answer if isinstance(answer, int) else _SUCCESS


def with_values(words: Sequence[str], *, takes_command: bool) -> list[str]:
    """Join an option and a negative amount, as in `--margin -1%`, which looks like an option.

    Examples
    --------
    >>> with_values(["--margin", "-1%", "a", "b"], takes_command=False)
    ['--margin=-1%', 'a', 'b']
    >>> with_values(["--wall-time", "-1s", "--", "a"], takes_command=True)
    ['--wall-time=-1s', '--', 'a']
    """
    end = _separator(words) if "--" in words or not takes_command else 0
    joined: list[str] = []
    for number, word in enumerate(words):
        if number < end and joined and _OPTION.fullmatch(joined[-1]) and _NEGATIVE_AMOUNT.fullmatch(word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def with_one_command(words: Sequence[str]) -> list[str]:
    """Join what stands behind the hyphens to one command, where it is the revisions that are compared.

    Examples
    --------
    >>> with_one_command(["--rev", "main", "--rev", "HEAD", "--", "./sort", "a b"])
    ['--rev', 'main', '--rev', 'HEAD', '--', "./sort 'a b'"]
    >>> with_one_command(["--", "./old", "./new"])
    ['--', './old', './new']
    """
    end = _separator(words)
    command = words[end + 1 :]
    has_revisions = any(word.partition("=")[0] == "--rev" for word in words[:end])
    return [*words[: end + 1], shlex.join(command)] if has_revisions and len(command) > 1 else list(words)


def _with_standard_input(app: App, words: Sequence[str]) -> list[str]:
    """Name the file that a hyphen stands for; as the value of an option that is no path it stays a hyphen."""
    from pathlib import Path  # noqa: PLC0415 - start-up time

    texts = {
        name
        for each in app.assemble_argument_collection()
        if each.token_count()[0] and Path not in (each.hint, *get_args(each.hint))
        for name in each.names
    }
    named: list[str] = []
    for word in words:
        if word == "-" and named and named[-1] in texts:
            named[-1] += "=-"
        else:
            named.append(_STANDARD_INPUT if word == "-" else word)
    return named


def _named_study(words: Sequence[str]) -> Study | None:
    """Give the study that a command line names."""
    from steelyard.study import studies, study  # noqa: PLC0415 - start-up time

    known = studies()
    named = next((known[word] for word in words if word in known), None)
    return study(words[0]) if named is None and words and not words[0].startswith("-") else named


def _require_separator(app: App, name: str, words: Sequence[str]) -> None:
    """Refuse a command line in which nobody can tell whose an option is, or a misspelt one is the program."""
    if not set(HELP_FLAGS).isdisjoint(words[: _separator(words)]):
        return
    from cyclopts import MissingArgumentError  # noqa: PLC0415 - start-up time

    usage = f"steelyard {name} [options] -- program [arguments]"
    if "--" in words:
        _, bound, _ = app.parse_args(words[: _separator(words)], exit_on_error=False, print_error=False)
        if bound.args:
            message = (
                f"`{bound.args[0]}` is before `--`, where only options of `steelyard {name}` are allowed"
            )
            raise UsageError(message, hint=usage)
        return
    options = [word for word in words if word.startswith("-")]
    if not options:
        return
    with suppress(MissingArgumentError):
        # A first word that is no option of the verb is misspelt, whatever follows.
        app.parse_args(words[:1], exit_on_error=False, print_error=False)
    message = f"`{options[0]}` may be meant for `steelyard {name}` or for the program; put `--` before it"
    raise UsageError(message, hint=usage)


def _separator(words: Sequence[str]) -> int:
    return words.index("--") if "--" in words else len(words)


def _fail(error: SteelyardError, words: Sequence[str]) -> int:
    """Say an error, and give its exit code; with a full standard error nothing can be said."""
    with suppress(OSError, ValueError):
        _show(error, words)
    return error.exit_code


def _show(error: SteelyardError, words: Sequence[str]) -> None:
    from steelyard.report.shown_text import inert  # noqa: PLC0415 - start-up time
    from steelyard.share.package.entry_names import visible  # noqa: PLC0415 - start-up time

    # What a foreign file holds may stand in a message, and must not command the terminal.
    lines = [
        visible(line.expandtabs()) for line in _in_line(error.message, words).splitlines() if line.strip()
    ]
    split = find_verb(words)
    hint = error.hint or f"steelyard {'' if split is None else f'{split[0]} '}--help"
    step = _in_line(_next_step(hint, words), words)
    shown = "\n".join(visible(line.expandtabs()) for line in step.splitlines())
    sys.stderr.write(inert("error: " + "\n".join(lines) + f"\n\nhint: {shown}\n"))
    sys.stderr.flush()


def _in_line(text: str, words: Sequence[str]) -> str:
    """Keep names that the user gave in one line: a line of its own would look like another message."""
    for word in words:
        if len(word.splitlines()) > 1:
            for name in (word, os.path.normpath(word)):
                text = text.replace(name, "\\n".join(name.splitlines()))
    return text


def _next_step(hint: str, words: Sequence[str]) -> str:
    """Give a hint that does not name the call that has just failed as what to do."""
    call = shlex.join(("steelyard", *words))
    if hint == call:
        return "repeat the command when this is repaired"
    return hint.replace(f"`{call}`", "the same command, when this is repaired,")


def _fail_output(error: OutputError, words: Sequence[str]) -> int:
    """Say that standard output takes nothing any more; nothing where its reader left, as in `| head`."""
    from steelyard.errors import DataError  # noqa: PLC0415 - start-up time

    # Python would try again at exit, and complain.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if error.errno == errno.EPIPE:
        return DataError.exit_code
    message = f"cannot write to standard output: {error.strerror}"
    return _fail(DataError(message, hint="free space, or redirect it elsewhere", code="data.output"), words)


def _of_system(error: BaseException) -> SteelyardError | None:
    """Give the error of a file, or of memory, that the system does not let us use; else ``None``."""
    from steelyard.errors import DataError, unwritable  # noqa: PLC0415 - start-up time

    if isinstance(error, MemoryError):
        message = "cannot hold the data: they need more memory than this machine has free"
        return DataError(message, hint="give fewer or smaller files", code="data.too-large")
    if not isinstance(error, OSError):
        return None
    if error.filename is None:
        return _of_folder(error)
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
        return unwritable(error.filename, error, "give a folder you may write to")
    if error.errno in {
        errno.EACCES,
        errno.EPERM,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.EIO,
        errno.ELOOP,
        errno.ENAMETOOLONG,
    }:
        message = f"`{error.filename}` cannot be used: {error.strerror}"
        return DataError(message, hint="check the file, its folder and their rights", code="data.unusable")
    return None


def _of_folder(error: OSError) -> SteelyardError | None:
    """Give the error of a current folder that was deleted; ``None`` where it is there."""
    import os  # noqa: PLC0415 - start-up time

    if isinstance(error, FileNotFoundError):
        try:
            os.getcwd()  # noqa: PTH109 - what `Path.cwd` calls, and the cheaper one
        except FileNotFoundError:
            return UsageError("the current folder was deleted", hint="cd to a folder that exists")
    return None


def _of_package(error: BaseException) -> SteelyardError | None:
    """Give the error of a Python package that is absent or unusable; ``None`` for anything else."""
    if not isinstance(error, ImportError):
        return None
    from steelyard.cli.missing_package import missing_package  # noqa: PLC0415 - start-up time

    return missing_package(error)


def _internal(error: BaseException) -> InternalError:
    import tempfile  # noqa: PLC0415 - start-up time
    import traceback  # noqa: PLC0415 - start-up time

    with tempfile.NamedTemporaryFile(
        "w", prefix="steelyard-crash-", suffix=".txt", delete=False, encoding="utf-8"
    ) as file:
        file.write(f"steelyard {steelyard.__version__}\n{sys.version}\n{sys.argv}\n\n")
        file.writelines(traceback.format_exception(error))
    message = f"a bug in steelyard: {type(error).__name__}: {error}"
    return InternalError(message, hint=f"please report it with the file {file.name}")
