"""The command line: one file per verb; only this package decides exit codes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import steelyard
from steelyard.cli.verbs import VERBS
from steelyard.errors import InternalError, SteelyardError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SUCCESS = 0
_INTERRUPTED = 130


def main() -> NoReturn:
    """Run the command line and leave with its exit code."""
    raise SystemExit(execute(sys.argv[1:]))


def execute(words: Sequence[str]) -> int:
    """Execute one command line.

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
        return _answer(words)
    except SteelyardError as error:
        _show(error, words)
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output left (`| head`); Python must not complain about it at exit.
        sys.stderr.close()
        return _SUCCESS
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        # The one place where nothing may escape; a panic of a native library is no `Exception`.
        wrapped = _of_system(error) or _internal(error)
        _show(wrapped, words)
        return wrapped.exit_code


def _answer(words: Sequence[str]) -> int:
    if not words or words[0] in {"--help", "-h", "help"}:
        sys.stdout.write(overview())
        return _SUCCESS
    if words[0] in {"--version", "-V"}:
        sys.stdout.write(f"steelyard {steelyard.__version__}\n")
        return _SUCCESS
    length = 2 if " ".join(words[:2]) in VERBS else 1
    return _execute_verb(" ".join(words[:length]), words[length:])


def overview() -> str:
    """Give the text of ``steelyard --help``."""
    width = max(map(len, VERBS)) + 2
    verbs = "\n".join(f"  {name:<{width}}{verb.summary}" for name, verb in VERBS.items())
    return (
        "Steelyard: a laboratory for performance experiments.\n\n"
        f"Usage: steelyard VERB [options]\n\nVerbs:\n{verbs}\n\n"
        "Start here:\n"
        "  steelyard doctor                    is this machine fit to measure on?\n"
        "  steelyard measure -- sleep 0.1      what does one command use?\n"
        "  steelyard compare ./old ./new       which is faster, and how surely?\n"
        "  steelyard run stability --quick     how many workers before timings go bad?\n\n"
        "`steelyard VERB --help` explains a verb with examples.\n"
    )


def _execute_verb(name: str, words: Sequence[str]) -> int:
    verb = VERBS.get(name)
    if verb is None:
        from difflib import get_close_matches  # noqa: PLC0415 - start-up time

        near = get_close_matches(name, VERBS, n=1)
        message = f"`{name}` is no verb of steelyard; known: {', '.join(VERBS)}"
        hint = f"did you mean `steelyard {near[0]}`?" if near else "steelyard --help"
        raise UsageError(message, hint=hint)

    if verb.takes_command:
        _require_separator(name, words)
    from cyclopts import App, CycloptsError, Parameter  # noqa: PLC0415 - start-up time

    function = _load(verb.target)
    app = App(
        name=f"steelyard {name}",
        version_flags=[],
        help_format="markdown",
        default_parameter=Parameter(negative=""),
        help_epilogue=_examples(function),
    )
    app.default(function)
    try:
        answer = app(
            list(words),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        from steelyard.cli.complaint import complaint  # noqa: PLC0415 - start-up time

        raise UsageError(complaint(app, error), hint=f"steelyard {name} --help") from error
    return answer if isinstance(answer, int) else _SUCCESS


def _require_separator(name: str, words: Sequence[str]) -> None:
    """Refuse a command line in which nobody can tell whose an option is."""
    options = [word for word in words if word.startswith("-")]
    if "--" in words or not options or {"--help", "-h"} & set(words):
        return
    message = (
        f"`{options[0]}` may be meant for `steelyard {name}` or for the program; `--` must stand before it"
    )
    raise UsageError(message, hint=f"steelyard {name} [options] -- program [arguments]")


def _examples(function: Callable[..., object]) -> str:
    """Give the Examples section of a verb's docstring, which cyclopts leaves out of its help."""
    from inspect import getdoc  # noqa: PLC0415 - start-up time

    _, heading, text = (getdoc(function) or "").partition("Examples\n--------\n")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return "\n\n".join(["Examples:", *(f"`{line}`" for line in lines)]) if heading else ""


def _load(target: str) -> Callable[..., object]:
    from importlib import import_module  # noqa: PLC0415 - start-up time

    module, _, function = target.partition(":")
    try:
        verb: Callable[..., object] = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("steelyard"):
            raise
        from steelyard.errors import CapabilityError  # noqa: PLC0415 - start-up time

        message = f"this installation lacks the Python package `{error.name}`"
        hint = "pip install 'steelyard[all]'"
        raise CapabilityError(message, hint=hint, code="capability.package") from error
    return verb


def _show(error: SteelyardError, words: Sequence[str]) -> None:
    paragraph = "\n".join(line for line in error.message.splitlines() if line.strip())
    verb = f" {words[0]}" if words and words[0] in VERBS else ""
    hint = error.hint or f"steelyard{verb} --help"
    sys.stderr.write(f"error: {paragraph}\n\nhint: {hint}\n")


def _of_system(error: BaseException) -> SteelyardError | None:
    """Give the error of a file that the system does not let us use; ``None`` for anything else."""
    import errno  # noqa: PLC0415 - start-up time

    from steelyard.errors import DataError, unwritable  # noqa: PLC0415 - start-up time

    if not isinstance(error, OSError) or error.filename is None:
        return None
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
        return unwritable(error.filename, error, "give a folder you may write to")
    if error.errno in {
        errno.EACCES,
        errno.EPERM,
        errno.EEXIST,
        errno.EISDIR,
        errno.ENOTDIR,
        errno.EIO,
        errno.ENAMETOOLONG,
    }:
        message = f"`{error.filename}` cannot be used: {error.strerror}"
        return DataError(message, hint="check the file, its folder and their rights", code="data.unusable")
    return None


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
