"""One run of a command, and the shell lines around it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, RunError
from steelyard.model.run_outcome import RunStatus
from steelyard.model.run_spec import Limits, OutputStream, Placement, RunSpec
from steelyard.run.environment import environment_hint, environment_record
from steelyard.run.executor.resident import located, program_environment, require_started
from steelyard.run.redact import last_lines, without_secrets
from steelyard.run.shell_syntax import shell_syntax
from steelyard.studies.comparison.contender import SHELL
from steelyard.studies.comparison.terms import BARE, Output
from steelyard.units import NS_PER_S

if TYPE_CHECKING:
    from pydantic import JsonValue

    from steelyard.model.run_outcome import CapturedStream, RunOutcome
    from steelyard.run.executor.worker import Worker
    from steelyard.studies.comparison.contender import Contender
    from steelyard.studies.comparison.terms import Terms

SHOWN_OUTPUT_BYTES: Final = 1 << 16
KEPT_ERROR_BYTES: Final = 1 << 12
"""What is captured stands in the record of every run."""
LONGEST_SILENCE_S: Final = 30 * 24 * 3600.0
"""Nobody limits a run here; a launcher that dies is noticed without waiting."""


class Launches:
    """Launches the commands on one worker.

    Parameters
    ----------
    worker : Worker
        A started one.
    terms : Terms
        How it is measured.
    """

    def __init__(self, worker: Worker, terms: Terms) -> None:
        self._worker = worker
        self._terms = terms
        self._frame = self._shared_part()

    def _shared_part(self) -> RunSpec:
        terms = self._terms
        return RunSpec(
            id="",
            command=(),
            environment=program_environment(terms.environment, inherits=terms.inherits),
            standard_input=None if terms.input is None else str(terms.input.resolve()),
            standard_output=_output_stream(terms.output),
            standard_error=OutputStream.captured(KEPT_ERROR_BYTES),
            placement=Placement(cpus=tuple(terms.cpus) if terms.cpus else None, maximal_weight=True),
            own_metrics=True,
            limits=Limits(
                wall_time_ns=None if terms.longest_run_s is None else round(terms.longest_run_s * NS_PER_S)
            ),
        )

    @property
    def environment(self) -> dict[str, JsonValue]:
        """What is recorded of the environment that every command gets."""
        return environment_record(self._frame.environment, is_inherited=self._terms.inherits)

    def execute(self, contender: Contender, batch: int) -> RunOutcome:
        """Run a command once and give its outcome, whatever it is; what it said holds no secret."""
        folder = Path.cwd() if contender.folder is None else contender.folder
        words = (located(contender.words[0], folder), *contender.words[1:])
        spec = replace(self._frame, id=f"b{batch}", command=words, working_directory=str(folder))
        (outcome,) = self._worker.execute(spec, timeout_s=LONGEST_SILENCE_S)
        if self._terms.output is Output.SHOW and outcome.standard_output is not None:
            sys.stderr.write(outcome.standard_output.text)
        return replace(
            outcome,
            standard_output=_public(outcome.standard_output),
            standard_error=_public(outcome.standard_error),
        )

    def judge(self, contender: Contender, outcome: RunOutcome) -> None:
        """Refuse an outcome that says nothing about the command's speed.

        Raises
        ------
        RunError
            If the program was not started, or failed and failures are not ignored.
        CapabilityError
            If this host cannot measure what is compared.
        """
        status = outcome.status
        if status is RunStatus.LAUNCHER_FAILED and (hint := _shell_hint(contender)) is not None:
            message = f"cannot run `{contender.words[0]}`: {outcome.message}"
            raise RunError(message, hint=hint, code="run.not-executed")
        require_started([outcome], contender.words[0], self._terms.isolation)
        if status.is_failure and not (status.is_own_failure and self._terms.ignores_failure):
            raise self._failed(contender, outcome)
        metric = self._terms.metric
        if outcome.value(metric.quantity) is None:
            message = f"cannot measure {metric.words} here: {outcome.missing(metric.quantity)}"
            raise CapabilityError(message, hint="steelyard doctor", code="capability.metric")

    def _failed(self, contender: Contender, outcome: RunOutcome) -> RunError:
        if outcome.exit_code is not None:
            how = f"exit code {outcome.exit_code}"
        elif outcome.signal is not None:
            how = f"signal {outcome.signal}"
        else:
            how = f"{outcome.status}: {outcome.message}"
        text = "" if outcome.standard_error is None else outcome.standard_error.text
        said = last_lines(text)
        message = f"`{contender.text}` failed with {how}" + (f": {said}" if said else "")
        can_inherit = self._terms.isolation == BARE
        likely = (
            _shell_hint(contender),
            environment_hint(text, self._frame.environment, can_inherit=can_inherit),
        )
        hints = [hint for hint in likely if hint is not None]
        return RunError(
            message, hint="; ".join([*hints, "--ignore-failure counts such runs"]), code="run.failed"
        )


def _shell_hint(contender: Contender) -> str | None:
    """Say that a command seems to be written for a shell."""
    found = None if contender.words[:2] == SHELL else shell_syntax(contender.text)
    if found is None:
        return None
    if not found.endswith("="):
        return f"only a shell understands `{found}`: `--shell` runs the command in one"
    given = f"{found}{contender.text.strip().removeprefix(found).split(' ')[0]}"
    return (
        f"`{found}` sets a variable in a shell: `--shell` runs the command in one, "
        f"`--environment {given}` sets it for all commands"
    )


def _public(stream: CapturedStream | None) -> CapturedStream | None:
    return None if stream is None else replace(stream, text=without_secrets(stream.text))


def _output_stream(output: Output | Path) -> OutputStream:
    if output is Output.NULL:
        return OutputStream.appended("/dev/null")
    if output is Output.PIPE:
        return OutputStream()
    if output is Output.SHOW:
        return OutputStream.captured(SHOWN_OUTPUT_BYTES)
    return OutputStream.appended(str(Path(output).absolute()))


def execute_line(line: str | None, option: str, folder: Path | None = None) -> None:
    """Run a line of ``--setup``, ``--prepare``, ``--conclude`` or ``--cleanup`` by a shell.

    Parameters
    ----------
    line : str or None
        The line, if there is one.
    option : str
        Its option, for errors.
    folder : Path or None
        Where it runs; the current folder unless given.

    Raises
    ------
    RunError
        If it fails; the message has the last lines it wrote.
    """
    if line is None:
        return
    words = [*SHELL, line]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        said = last_lines((done.stderr or done.stdout).decode(errors="replace"))
        message = f"`{option} {shlex.quote(line)}` failed with {how}" + (f": {said}" if said else "")
        raise RunError(message, hint="repair the line; it is run by `sh -c`", code="run.prepare")
