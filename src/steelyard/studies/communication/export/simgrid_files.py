"""The files of an export: a platform, options, hosts, and how to use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import quoteattr

from steelyard.errors import UsageError, unwritable
from steelyard.studies.communication.export.simgrid_model import TIMING_PRECISION_S, UNLIMITED_WINDOW_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from steelyard.studies.communication.export.simgrid_model import (
        ExportNote,
        Factor,
        Overhead,
        SimGridModel,
    )

Version = tuple[int, int]

EVERY_VERSION: Final[Version] = (3, 32)
"""Names of 3.32, which later versions (looked up in the sources up to 4.1) keep as aliases."""
RENAMED: Final[Version] = (3, 34)
"""SOURCE: SimGrid 3.34 names the factors and the precision anew and keeps the names before as aliases."""

PLATFORM: Final = "platform.xml"
OPTIONS: Final = "options.txt"
HOSTS: Final = "hosts"
README: Final = "README.txt"
HOST_NAMES: Final = ("rank0", "rank1")


def options(simgrid: SimGridModel, version: Version = EVERY_VERSION) -> dict[str, str]:
    """Give SimGrid's options by name; those of 3.34 and later have other names than those from 3.32 on.

    Raises
    ------
    UsageError
        If the version is older.
    """
    if version < EVERY_VERSION:
        msg = f"SimGrid {version[0]}.{version[1]} is too old; expected 3.32 or newer"
        raise UsageError(msg, hint="leave out the version")
    is_renamed = version >= RENAMED
    latency, bandwidth = (
        ("network/latency-factor", "network/bandwidth-factor")
        if is_renamed
        else ("smpi/lat-factor", "smpi/bw-factor")
    )
    return {
        "network/model": "SMPI",
        latency: _factor_text(simgrid.latency_factors),
        bandwidth: _factor_text(simgrid.bandwidth_factors),
        "smpi/os": _overhead_text(simgrid.send),
        "smpi/ois": _overhead_text(simgrid.isend),
        "smpi/or": "0:0:0",
        "smpi/async-small-thresh": str(simgrid.asynchronous_below),
        "smpi/send-is-detached-thresh": str(simgrid.detached_below),
        "smpi/wtime": "0",
        "network/crosstraffic": "no",
        "network/TCP-gamma": f"{UNLIMITED_WINDOW_BYTES:.0f}",
        "network/weight-S": "0",
        "precision/timing" if is_renamed else "surf/precision": repr(TIMING_PRECISION_S),
    }


def option_words(simgrid: SimGridModel, version: Version = EVERY_VERSION) -> list[str]:
    """Give the options as arguments of ``smpirun``."""
    return [f"--cfg={name}:{value}" for name, value in options(simgrid, version).items()]


def write_simgrid(folder: Path, simgrid: SimGridModel, version: Version = EVERY_VERSION) -> list[Path]:
    """Write platform, options, hosts and README into a folder; give the files.

    Raises
    ------
    DataError
        If a file cannot be written.
    """
    contents = {
        PLATFORM: platform_text(simgrid, version),
        OPTIONS: "\n".join(option_words(simgrid, version)) + "\n",
        HOSTS: "\n".join(HOST_NAMES) + "\n",
        README: readme_text(simgrid, version),
    }
    return write_files(folder, contents)


def write_files(folder: Path, contents: dict[str, str]) -> list[Path]:
    """Write texts by name into a folder, which is made where it does not exist.

    Raises
    ------
    DataError
        If one cannot be written.
    """
    written = []
    for name, text in contents.items():
        path = folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise unwritable(path, error, "give a folder you may write to with --out") from error
        written.append(path)
    return written


def platform_text(simgrid: SimGridModel, version: Version = EVERY_VERSION) -> str:
    """Give a platform of two hosts and one link, with the options in it."""
    # `smpirun` names the network model and the precision itself, and SimGrid then ignores ours.
    given_by_smpirun = {"network/model", "surf/precision", "precision/timing"}
    props = "\n".join(
        f"    <prop id={quoteattr(name)} value={quoteattr(value)}/>"
        for name, value in options(simgrid, version).items()
        if name not in given_by_smpirun
    )
    first, second = HOST_NAMES
    return f"""<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <config>
{props}
  </config>
  <zone id="hosts" routing="Full">
    <host id="{first}" speed="1Gf"/>
    <host id="{second}" speed="1Gf"/>
    <link id="link" bandwidth="{simgrid.bandwidth_bytes_per_s!r}Bps" latency="{simgrid.latency_s!r}s" \
sharing_policy="SPLITDUPLEX"/>
    <route src="{first}" dst="{second}"><link_ctn id="link" direction="UP"/></route>
  </zone>
</platform>
"""


def readme_text(simgrid: SimGridModel, version: Version = EVERY_VERSION) -> str:
    """Say how the files are used, and where they are not simply the model's coefficients."""
    precision = next(word for word in option_words(simgrid, version) if "precision" in word)
    notes = "".join(f"- {note_text(note)}\n" for note in simgrid.notes)
    exact = (
        "\nWhere the export is not simply the model's coefficients, or rests on no measurement:\n\n" + notes
        if notes
        else ""
    )
    return f"""SimGrid platform of the cost model {simgrid.name}, profile {simgrid.profile}.

Simulate an MPI program on it (SimGrid 3.32 or newer):

    smpicc -O2 program.c -o program
    smpirun -np 2 -platform {PLATFORM} -hostfile {HOSTS} {precision} ./program

On a platform of your own, the same options as arguments, in a shell that splits words (sh, bash):

    smpirun -np 2 -platform mine.xml -hostfile mine $(cat {OPTIONS}) ./program

The factors are relative to a link of {simgrid.bandwidth_bytes_per_s!r} B/s and \
{simgrid.latency_s!r} s; give your link these, or the times scale with it.
Factors are looked up by message size + 16 bytes, and hold above their boundary, not from it on.
From SimGrid 3.34 on a message of 0 bytes pays no `smpi/os`.
{exact}"""


def note_text(note: ExportNote) -> str:
    """Say what one note of an export means."""
    where = f"{note.low} to {note.high} bytes"
    texts = {
        "re-anchored": f"{where}: lower at 0 bytes than the slope allows SimGrid to say; sections "
        f"through the origin instead ({note.sections})",
        "falling": f"{where}: the time falls with size; constants instead ({note.sections})",
        "chords": f"{where}: a power law; chords instead",
        "send-above-delay": f"{where}: the send alone takes longer than half a round trip; the transfer "
        "takes 1 ns, and half a round trip is the send",
        "threshold-unknown": f"{where}: sends are taken to wait for their receive, which was not measured",
        "threshold-lowered": f"{where}: sends return once the receiver makes progress, but outlast half a "
        "round trip; they are taken to wait for their receive",
        "no-round-trips": f"{where}: the model has no round trips; SimGrid takes what was timed for the time "
        "until a message arrives",
        "extrapolated": f"{where}: outside the measured sizes; extrapolated",
        "measured-unknown": f"{where}: the model does not say which sizes were measured; beyond them it is "
        "extrapolated",
        "above-largest": f"{where}: above what SimGrid tells apart",
    }
    return texts[note.reason]


def _factor_text(factors: Sequence[Factor]) -> str:
    return ";".join(f"{factor.above}:{factor.value!r}" for factor in factors)


def _overhead_text(overheads: Sequence[Overhead]) -> str:
    return ";".join(f"{each.above}:{each.base_s!r}:{each.slope_s_per_byte!r}" for each in overheads)
