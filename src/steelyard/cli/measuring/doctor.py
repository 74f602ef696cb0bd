"""``steelyard doctor``."""

from __future__ import annotations

import json as json_text
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

if TYPE_CHECKING:
    from steelyard.cli.measuring.doctor_page import Examination, Technology
    from steelyard.plug_in import PlugIn
    from steelyard.run.machine.calibration import Calibration


def doctor(
    *,
    calibrate: Annotated[bool, Parameter(negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Show what this machine can do and what makes it noisy.

    Every isolation technology is tried, which takes some seconds. Nothing is changed: each repair is
    a command for you to run.

    Parameters
    ----------
    calibrate
        Measure Steelyard's own error on this machine and store it: 60 runs of a program that
        knows its times, bare and in the sandbox. Every study stores it with its results.
    as_json
        Print everything as one JSON document.

    Examples
    --------
    steelyard doctor
    steelyard doctor --calibrate
    steelyard doctor --json | jq '.host.noise[] | select(.verdict != "PASS")'
    """
    from steelyard.cli.measuring.doctor_page import show  # noqa: PLC0415 - start-up time

    found = examine(measure=calibrate)
    if as_json:
        sys.stdout.write(json_text.dumps(_document(found), indent=1) + "\n")
    else:
        show(found)


def examine(*, measure: bool = False) -> Examination:
    """Examine this machine.

    Parameters
    ----------
    measure : bool
        Measure Steelyard's own error instead of looking for a stored one.
    """
    from steelyard.run.machine.calibration import calibrate, latest_calibration  # noqa: PLC0415 - start-up time
    from steelyard.run.machine.host import read_host  # noqa: PLC0415 - start-up time

    # The host is read before anything is started here, which would be load of our own.
    host = read_host()
    technologies = _try_technologies()
    if measure:
        calibration: Calibration | None = calibrate(progress=_show_progress)
    else:
        calibration = latest_calibration(host.fingerprint.host_id)
    from steelyard.cli.measuring.doctor_page import Examination  # noqa: PLC0415 - start-up time

    return Examination(host, technologies, calibration, _plug_ins())


def _plug_ins() -> tuple[PlugIn, ...]:
    from steelyard.record.importers.interface import IMPORTERS  # noqa: PLC0415 - start-up time
    from steelyard.run.isolation.registry import TECHNOLOGIES  # noqa: PLC0415 - start-up time
    from steelyard.study import STUDIES  # noqa: PLC0415 - start-up time

    return tuple(each for registry in (STUDIES, TECHNOLOGIES, IMPORTERS) for each in registry.plug_ins())


def _try_technologies() -> tuple[Technology, ...]:
    from steelyard.cli.measuring.doctor_page import Technology  # noqa: PLC0415 - start-up time
    from steelyard.run.isolation.registry import technologies  # noqa: PLC0415 - start-up time

    known = technologies()
    found = []
    for name, technology in known.items():
        _note(f"trying {name}")
        found.append(Technology(name, technology.describe(), technology.probe()))
    _note("")
    return tuple(found)


def _show_progress(done: int, total: int) -> None:
    _note(f"calibrating: {done} of {total} runs" if done < total else "")


def _note(text: str) -> None:
    """Show what is being done, on a terminal only; the next note replaces it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def _document(found: Examination) -> dict[str, object]:
    return {
        "schema": "steelyard/doctor/1",
        "host": asdict(found.host),
        "isolation": [
            {"name": one.name, "description": one.description, **asdict(one.availability)}
            for one in found.technologies
        ],
        "plug_ins": [asdict(one) for one in found.plug_ins],
        "calibration": None if found.calibration is None else found.calibration.as_dict(),
    }
