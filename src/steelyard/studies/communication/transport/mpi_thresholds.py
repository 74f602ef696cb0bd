"""Up to which size an MPI library's `MPI_Send` returns before the receiver does anything."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import RunError
from steelyard.studies.communication.transport.interface import HERE, Place

if TYPE_CHECKING:
    from steelyard.studies.communication.transport.mpi import Mpi

LIMIT_S: Final = 120.0
FORMAT: Final = "steelyard/mpi-thresholds/1"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The largest sizes that are sent without the receiver's help, as they were found.

    Parameters
    ----------
    detached_bytes : int or None
        Largest message whose send returns although the receiver makes no call of the library;
        ``None`` where even the empty one waits.
    asynchronous_bytes : int or None
        The same where the receiver only looks for other messages: the library makes progress there,
        and nothing is received.
    detached_is_lower_bound, asynchronous_is_lower_bound : bool
        Whether the largest size that was tried did not wait either.
    looks, doubted, undecided : int
        Messages that were sent; those whose answer may be a rank's waiting for a CPU; sizes about which
        only such answers could be had.
    duration_ns : int
        Of the search [ns].
    """

    detached_bytes: int | None
    asynchronous_bytes: int | None
    detached_is_lower_bound: bool
    asynchronous_is_lower_bound: bool
    looks: int
    doubted: int
    undecided: int
    duration_ns: int


def find_thresholds(
    transport: Mpi, place: Place = HERE, *, cpus: tuple[int, int] | None = None, delay_us: int = 2000
) -> Thresholds:
    """Find the semantic thresholds of a library in one launch.

    Parameters
    ----------
    transport : Mpi
        Which library, and how it moves messages.
    place : Place
        Where the ranks run.
    cpus : tuple of int or None
        CPU of each rank.
    delay_us : int
        Time for which the receiver does nothing [us], 10 to 1000000: long against the time of a
        message at the threshold.

    Raises
    ------
    CapabilityError
        If the library is not on this host.
    RunError
        If the ranks fail; the message is theirs.
    """
    words = ["--delay-us", str(delay_us)]
    if cpus is not None:
        words += ["--cpus", f"{cpus[0]},{cpus[1]}"]
    invocation = transport.start("thresholds", words, place)
    hint = f"try `steelyard run communication --transport {transport.name}`"
    process = subprocess.Popen(
        invocation.command,
        env={**os.environ, **invocation.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    try:
        output, said = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        msg = f"the thresholds of `{transport.name}` were not found within {LIMIT_S:g} s"
        raise RunError(msg, hint="try again on a quieter machine", code="run.thresholds") from error
    finally:
        # Asked, not killed: it then ends the ranks and removes what they made.
        if process.poll() is None:
            process.terminate()
            process.communicate()
    if process.returncode != 0:
        what = said.strip().removeprefix("error: ") or f"status {process.returncode}"
        msg = f"the thresholds of `{transport.name}`: {what.splitlines()[0]}"
        raise RunError(msg, hint=hint, code="run.thresholds")
    found = json.loads(output)
    if found.pop("format") != FORMAT:
        msg = f"the thresholds of `{transport.name}` are not in the format `{FORMAT}`"
        raise RunError(msg, hint=hint, code="run.thresholds")
    return Thresholds(**{name: found[name] for name in Thresholds.__slots__})
