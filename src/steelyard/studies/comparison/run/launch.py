"""One run of a command, and the shell lines around it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DataError, RunError
from steelyard.model.plan import RANDOM_LAYOUT
from steelyard.model.run_outcome import PADDING, RANDOMISED, OwnMeasurement, Quantity, RunStatus
from steelyard.model.run_spec import Limits, OutputStream, Placement, RunSpec
from steelyard.run.environment import environment_hint, environment_record
from steelyard.run.executor.batch import Share, execute_batch
from steelyard.run.executor.resident import located, program_environment, require_started
from steelyard.run.executor.run_specs import barrier_file, with_barrier
from steelyard.run.redact import last_lines, without_secrets
from steelyard.run.shell_syntax import shell_syntax
from steelyard.studies.comparison.contender import SHELL
from steelyard.studies.comparison.modes.duet import flagged
from steelyard.studies.comparison.modes.layout import PADDING_VARIABLE, STEP_BYTES, kernel_randomises
from steelyard.studies.comparison.sample import REPORTED
from steelyard.studies.comparison.terms import BARE, Metric, Output
from steelyard.units import NS_PER_S, format_seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic import JsonValue

    from steelyard.model.run_outcome import CapturedStream, RunOutcome
    from steelyard.run.executor.worker import Worker
    from steelyard.studies.comparison.contender import Contender
    from steelyard.studies.comparison.harness.driver import Reading
    from steelyard.studies.comparison.modes.layout import Layout
    from steelyard.studies.comparison.terms import Terms

SHOWN_OUTPUT_BYTES: Final = 1 << 16
KEPT_ERROR_BYTES: Final = 1 << 12
"""What is captured stands in the record of every run."""
LONGEST_SILENCE_S: Final = 30 * 24 * 3600.0
"""Nobody limits a run here; a launcher that dies is noticed without waiting."""


class Launches:
    """Launches the commands on one worker, or the two of a duet on two.

    Parameters
    ----------
    worker : Worker
        A started one.
    terms : Terms
        How it is measured.
    beside : Worker or None
        The one on which the other side of a duet runs.
    """

    def __init__(self, worker: Worker, terms: Terms, beside: Worker | None = None) -> None:
        self._worker = worker
        self._beside = beside
        self._terms = terms
        self._kernel_randomises = kernel_randomises()
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
        found = environment_record(self._frame.environment, is_inherited=self._terms.inherits)
        if self._terms.layout == RANDOM_LAYOUT:
            found["kernel_randomises_addresses"] = self._kernel_randomises
        return found

    def execute(self, contender: Contender, batch: int, layout: Layout | None = None) -> RunOutcome:
        """Run a command once and give its outcome, whatever it is; what it said holds no secret.

        Parameters
        ----------
        contender : Contender
            The command.
        batch : int
            Number of the run.
        layout : Layout or None
            Where it lies in memory; as the host has it unless given.
        """
        (outcome,) = self._worker.execute(self._spec(contender, batch, layout), timeout_s=LONGEST_SILENCE_S)
        return self._public(outcome, contender, layout)

    def execute_together(self, entries: Sequence[tuple[Contender, int, Layout | None]]) -> list[RunOutcome]:
        """Run two commands at the same time and give their outcomes; those that hardly overlap are labelled.

        Parameters
        ----------
        entries : sequence
            As for `execute`, first that on the first worker.

        Raises
        ------
        RunError
            If a worker fails.
        """
        assert self._beside is not None  # noqa: S101 - a duet has two workers
        workers = (self._worker, self._beside)
        found: dict[int, RunOutcome] = {}
        with barrier_file(self._worker.site.session.shared, f"duet-{entries[0][1]}") as barrier:
            shares = []
            for worker, entry in zip(workers, entries, strict=True):
                place = worker.technology.shared(worker.site)
                spec = with_barrier(self._spec(*entry), place, barrier.name, len(entries))
                shares.append(Share(worker, worker.technology.inside(spec, worker.site)))
            failure = execute_batch(shares, LONGEST_SILENCE_S, found.__setitem__)
        if failure is not None:
            raise RunError(failure, hint="`--mode turns` runs one command at a time", code="run.worker")
        outcomes = [
            self._public(found[side], contender, layout)
            for side, (contender, _, layout) in enumerate(entries)
        ]
        return flagged(outcomes)

    def _spec(self, contender: Contender, batch: int, layout: Layout | None) -> RunSpec:
        folder = Path.cwd() if contender.folder is None else contender.folder
        frame, reading = self._frame, contender.reading
        program, *arguments = contender.words if reading is None else reading.filled(contender.words)
        words = (located(program, folder), *arguments)
        if reading is not None:
            reading.scratch.clear()
            frame = replace(
                frame,
                environment={**frame.environment, **reading.environment},
                standard_output=OutputStream.appended(str(reading.scratch.output)),
            )
        if layout is not None:
            frame = replace(
                frame,
                environment={**frame.environment, PADDING_VARIABLE: "x" * layout.padding_bytes},
                placement=replace(frame.placement, randomise_addresses=layout.is_randomised),
            )
        return replace(frame, id=f"b{batch}", command=words, working_directory=str(folder))

    def _public(self, outcome: RunOutcome, contender: Contender, layout: Layout | None) -> RunOutcome:
        """Give what may be recorded of an outcome, with what is known of the run beside it."""
        reading = contender.reading
        if self._terms.output is Output.SHOW and outcome.standard_output is not None:
            sys.stderr.write(outcome.standard_output.text)
        outcome = replace(
            outcome,
            standard_output=_public(outcome.standard_output),
            standard_error=_public(outcome.standard_error),
        )
        if layout is not None:
            is_randomised = layout.is_randomised and self._kernel_randomises
            drawn = {
                PADDING: Quantity(layout.padding_bytes, PADDING_VARIABLE, STEP_BYTES),
                RANDOMISED: Quantity(int(is_randomised), "personality", 1),
            }
            outcome = replace(outcome, quantities={**outcome.quantities, **drawn})
        is_reported = reading is not None or self._terms.metric is Metric.REPORTED
        return _with_report(outcome, reading) if is_reported else outcome

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
        if status is RunStatus.LAUNCHER_FAILED and outcome.exit_code == 0:
            raise self._failed(contender, outcome)
        if status is RunStatus.LAUNCHER_FAILED and (hint := _shell_hint(contender)) is not None:
            message = f"cannot run `{contender.words[0]}`: {outcome.message}"
            raise RunError(message, hint=hint, code="run.not-executed")
        require_started([outcome], contender.words[0], self._terms.isolation)
        if status.is_failure and not (status.is_own_failure and self._terms.ignores_failure):
            raise self._failed(contender, outcome)
        metric = self._terms.metric
        if metric is not Metric.REPORTED and outcome.value(metric.quantity) is None:
            message = f"cannot measure {metric.words} here: {outcome.missing(metric.quantity)}"
            raise CapabilityError(message, hint="steelyard doctor", code="capability.metric")

    def _failed(self, contender: Contender, outcome: RunOutcome) -> RunError:
        limit_s = self._terms.longest_run_s
        if outcome.status is RunStatus.WALL_TIMEOUT and limit_s is not None:
            how = f"no end after {format_seconds(limit_s)}"
        elif outcome.exit_code is not None:
            how = f"exit code {outcome.exit_code}"
        elif outcome.signal is not None:
            how = f"signal {outcome.signal}"
        else:
            how = f"{outcome.status}: {outcome.message}"
        text = "" if outcome.standard_error is None else outcome.standard_error.text
        if contender.reading is not None:
            has_ended = outcome.status is RunStatus.LAUNCHER_FAILED
            did = f"reported no time: {outcome.message}" if has_ended else f"failed with {how}"
            said = last_lines(text) or last_lines(contender.reading.scratch.said())
            message = f"`{contender.benchmark}` in {contender.side} {did}" + (f": {said}" if said else "")
            return RunError(message, hint=f"it was run by `{contender.text}`", code="run.failed")
        said = last_lines(text)
        message = f"`{contender.text}` failed with {how}" + (f": {said}" if said else "")
        can_inherit = self._terms.isolation == BARE
        likely = (
            _shell_hint(contender),
            environment_hint(text, self._frame.environment, can_inherit=can_inherit),
        )
        hints = [hint for hint in likely if hint is not None]
        if outcome.status.is_own_failure:
            hints.append("--ignore-failure counts such runs")
        return RunError(message, hint="; ".join(hints) or None, code="run.failed")


def _with_report(outcome: RunOutcome, reading: Reading | None) -> RunOutcome:
    """Add the time that a run reports; a command without a harness reports none, and its wall time counts."""
    own = tuple(each for each in outcome.own if each.metric != REPORTED)
    value_ns: float | None = outcome.value("wall_ns")
    if reading is not None and outcome.status.is_failure:
        return replace(outcome, own=own)
    if reading is not None:
        try:
            value_ns = reading.value_ns()
        except DataError as error:
            return replace(outcome, own=own, status=RunStatus.LAUNCHER_FAILED, message=error.message)
    if value_ns is None:
        return replace(outcome, own=own)
    return replace(outcome, own=(*own, OwnMeasurement(REPORTED, float(value_ns), "ns")))


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


def execute_line(
    line: str | None, option: str, folder: Path | None = None, timeout_s: float | None = None
) -> None:
    """Run a line of ``--setup``, ``--prepare``, ``--conclude`` or ``--cleanup`` by a shell.

    Parameters
    ----------
    line : str or None
        The line, if there is one.
    option : str
        Its option, for errors.
    folder : Path or None
        Where it runs; the current folder unless given.
    timeout_s : float or None
        How long it may take [s]; then it is killed with what it started, and has failed.

    Raises
    ------
    RunError
        If it fails; the message has the last lines it wrote.
    """
    if line is None:
        return
    # Files: what a line leaves running, such as a server, would hold the other end of a pipe.
    with TemporaryFile() as output, TemporaryFile() as errors:
        process = subprocess.Popen(
            [*SHELL, line],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            process_group=None if timeout_s is None else 0,
        )
        try:
            status = process.wait(timeout_s)
            how = f" with exit code {status}" if status > 0 else f" with signal {-status}"
        except subprocess.TimeoutExpired as error:
            _end(process, has_group=True)
            status, how = process.returncode, f": it had not ended after {error.timeout:g} s"
        except BaseException:
            _end(process, has_group=timeout_s is not None)
            raise
        if status == 0:
            return
        said = last_lines((_end_of(errors) or _end_of(output)).decode(errors="replace"))
    message = f"`{option} {shlex.quote(line)}` failed{how}" + (f": {said}" if said else "")
    raise RunError(message, hint="repair the line; it is run by `sh -c`", code="run.prepare")


def _end(process: subprocess.Popen[bytes], *, has_group: bool) -> None:
    with suppress(ProcessLookupError):
        if has_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _end_of(file: IO[bytes]) -> bytes:
    file.seek(-min(KEPT_ERROR_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
    return file.read()
