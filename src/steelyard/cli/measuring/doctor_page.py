"""The page of ``steelyard doctor``: readable in 80 columns and without colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from steelyard.run.machine.host import Verdict
from steelyard.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from steelyard.plug_in import PlugIn
    from steelyard.run.isolation.interface import Availability
    from steelyard.run.machine.calibration import Calibration, OutsideError, Spread
    from steelyard.run.machine.host import Capability, Clock, Host, NoiseFact


@dataclass(frozen=True, slots=True)
class Technology:
    """An isolation technology and whether it works here."""

    name: str
    description: str
    availability: Availability


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything the doctor found."""

    host: Host
    technologies: tuple[Technology, ...]
    calibration: Calibration | None
    plug_ins: tuple[PlugIn, ...] = ()


_WIDEST: Final = 100
_INDENT: Final = 2
_DEEP: Final = " " * 8
_STYLES: Final = {
    Verdict.FAIL: "bold red",
    Verdict.CAUTION: "yellow",
    Verdict.UNKNOWN: "cyan",
    Verdict.PASS: "green",
}
_ORDER: Final = (Verdict.FAIL, Verdict.CAUTION, Verdict.UNKNOWN)


def show(found: Examination, console: Console | None = None) -> None:
    """Print what the doctor found.

    Parameters
    ----------
    found : Examination
        What to print.
    console : Console or None
        Where to; standard output by default.
    """
    page = _Page(console or Console(highlight=False))
    page.machine(found.host)
    page.calibration(found.calibration)
    page.able(found)
    page.unable(found)
    page.noise(found.host.noise)
    page.summary(found)


class _Page:
    def __init__(self, console: Console) -> None:
        self._console = console
        self._width = min(console.width, _WIDEST)

    def machine(self, host: Host) -> None:
        self._heading("This machine")
        self._pairs(_machine_rows(host))

    def calibration(self, calibration: Calibration | None) -> None:
        self._heading("Steelyard's own error here")
        if calibration is None:
            self._line("not measured yet")
            self._repair("steelyard doctor --calibrate", "measure")
            return
        quiet = "" if calibration.gate.get("quiet") else "; the machine was not quiet"
        runs = calibration.errors[0].wall.count
        self._line(
            f"Outside minus the program's own time, {runs} runs of {calibration.work_ms} ms each, "
            f"{calibration.measured_utc[:16].replace('T', ' ')} UTC{quiet}"
        )
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for name in ("", "mean", "sd", "median", "p95", "flagged"):
            table.add_column(name, justify="left" if not name else "right")
        for error in calibration.errors:
            for cells in _error_rows(error):
                table.add_row(*cells)
        self._console.print(Padding(table, (0, 0, 0, _INDENT), expand=False))
        for isolation, reason in calibration.missing.items():
            self._line(f"{isolation}: not measured: {reason}")

    def able(self, found: Examination) -> None:
        self._heading("Can do")
        works = [one.name for one in found.technologies if one.availability.available]
        rows = [("isolation", ", ".join(works) or "none")]
        usable = [one for one in found.plug_ins if one.reason is None]
        rows += [
            ("plug-ins", ", ".join(f"{one.kind} {one.name} ({one.package} {one.version})" for one in usable))
        ]
        self._pairs(rows + _grouped(one for one in found.host.capabilities if one.available))

    def unable(self, found: Examination) -> None:
        self._heading("Cannot do")
        for capability in (one for one in found.host.capabilities if not one.available):
            self._block(
                "", Text(f"{capability.name}: ", style="bold").append(capability.purpose, style="not bold")
            )
            self._block(_DEEP, Text(capability.reason))
            self._repair(capability.repair)
        for one in found.technologies:
            if not one.availability.available:
                head = Text(f"isolation {one.name}: ", style="bold")
                self._block("", head.append(one.description, style="not bold"))
                self._block(_DEEP, Text(one.availability.reason or "it does not work"))
                self._repair(one.availability.repair)
        for plug_in in (one for one in found.plug_ins if one.reason is not None):
            self._block("", Text(f"plug-in {plug_in.package} {plug_in.version}", style="bold"))
            self._block(_DEEP, Text(plug_in.reason or ""))
            self._repair(plug_in.repair)

    def noise(self, facts: Sequence[NoiseFact]) -> None:
        self._heading("Noise")
        for verdict in _ORDER:
            for fact in (one for one in facts if one.verdict is verdict):
                head = Text(f"{fact.title}: ", style="bold").append(fact.seen, style="not bold")
                self._block(f"{verdict:<8}", head, _STYLES[verdict])
                if verdict is not Verdict.UNKNOWN:
                    self._block(_DEEP, Text(fact.why))
                self._repair(fact.repair)
        quiet = [one.title for one in facts if one.verdict is Verdict.PASS]
        if quiet:
            self._block(f"{Verdict.PASS:<8}", Text(", ".join(quiet)), _STYLES[Verdict.PASS])

    def summary(self, found: Examination) -> None:
        facts = found.host.noise
        counts = {verdict: sum(one.verdict is verdict for one in facts) for verdict in Verdict}
        works = sum(one.availability.available for one in found.technologies)
        self._console.print()
        self._console.print(f"{works} of {len(found.technologies)} isolation technologies work")
        order = (Verdict.FAIL, Verdict.CAUTION, Verdict.UNKNOWN, Verdict.PASS)
        self._console.print("noise: " + ", ".join(f"{counts[one]} {one}" for one in order))

    def _heading(self, title: str) -> None:
        self._console.print()
        self._console.print(Text(title, style="bold underline"))

    def _pairs(self, rows: Sequence[tuple[str, str]]) -> None:
        widest = max(len(name) for name, _ in rows) + 2
        for name, text in rows:
            if text:
                self._block(f"{name:<{widest}}", Text(text), "dim")

    def _line(self, text: str) -> None:
        self._block("", Text(text))

    def _block(self, head: str, text: Text, style: str = "") -> None:
        """Print text wrapped behind a head, whose width all its lines are indented by."""
        indent = _INDENT + len(head)
        for number, line in enumerate(text.wrap(self._console, max(self._width - indent, 20))):
            line.rstrip()
            start = Text(" " * _INDENT).append(head, style=style) if number == 0 else Text(" " * indent)
            self._console.print(start.append_text(line), soft_wrap=True)

    def _repair(self, command: str | None, word: str = "repair") -> None:
        """Print a command unbroken, so that it can be copied; the terminal may wrap it."""
        if command is not None:
            self._console.print(Text(f"{' ' * _INDENT}{_DEEP}{word}: {command}"), soft_wrap=True)


def _machine_rows(host: Host) -> list[tuple[str, str]]:
    print_, topology = host.fingerprint, host.topology
    around = print_.virtualisation
    surroundings = [
        f"virtual machine ({around.hypervisor})" if around.hypervisor else "",
        f"container ({around.container})" if around.container else "",
    ]
    return [
        ("host id", print_.host_id),
        ("processor", f"{print_.cpu_model or 'unknown'}, {print_.architecture}"),
        ("cores", _cores(host)),
        ("memory", _memory(host)),
        ("caches", _caches(host)),
        ("surroundings", ", ".join(filter(None, surroundings)) or "bare metal"),
        ("system", ", ".join(filter(None, (print_.distribution, print_.libc)))),
        ("kernel", print_.kernel_release),
        ("boot parameters", " ".join(print_.boot_parameters)),
        ("clocks", _clocks(host)),
        ("CPU accounting", _accounting(host)),
        ("assumed", "; ".join(topology.assumptions)),
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _cores(host: Host) -> str:
    topology = host.topology
    parts = [
        _count(topology.core_count, "core"),
        _count(len(topology.online), "CPU"),
        _count(topology.socket_count, "socket"),
    ]
    kinds = len({cpu.efficiency_class for cpu in topology.cpus})
    if kinds > 1:
        parts.append(f"{kinds} kinds of cores")
    if len(topology.allowed) < len(topology.online):
        parts.append(f"{len(topology.allowed)} CPUs usable by this process")
    return ", ".join(parts)


def _memory(host: Host) -> str:
    total = host.fingerprint.memory_bytes
    size = "unknown" if total is None else format_bytes(total)
    return f"{size} in {_count(len(host.topology.memory_nodes), 'node')}"


def _caches(host: Host) -> str:
    groups = host.topology.last_level_caches
    first = groups[0]
    size = "" if first.size_bytes is None else f" of {format_bytes(first.size_bytes)}"
    return f"{_count(len(groups), 'last-level cache')} (level {first.level}){size}"


def _clocks(host: Host) -> str:
    clocks = host.clocks
    known: list[tuple[str, Clock | None]] = [
        ("monotonic", clocks.monotonic),
        ("process CPU", clocks.process_cpu),
        ("rusage", clocks.rusage),
    ]
    parts = [f"{name} {_ns(clock.granularity_ns)} step" for name, clock in known if clock is not None]
    return f"{clocks.source or 'unknown source'}; {', '.join(parts)}"


def _accounting(host: Host) -> str:
    clocks = host.clocks
    tick = "unknown tick" if clocks.tick_ns is None else f"tick {_ns(clocks.tick_ns)}"
    split = {"tick": "user/system split sampled", "exact": "user/system split exact"}
    return f"{split.get(clocks.accounting, 'user/system split unknown')}, {tick}"


def _ns(nanoseconds: float) -> str:
    return format_seconds(nanoseconds / 1e9, 3)


def _error_rows(error: OutsideError) -> list[tuple[str, ...]]:
    def row(name: str, spread: Spread, last: str = "") -> tuple[str, ...]:
        values = (spread.mean_ns, spread.sd_ns, spread.median_ns, spread.p95_ns)
        return (f"{error.isolation} {name}", *map(_ns, values), last)

    return [
        row("wall", error.wall, str(error.flagged_count)),
        row("CPU", error.cpu, str(error.flagged_count)),
        row("launch, empty program", error.launch),
    ]


def _grouped(capabilities: Iterable[Capability]) -> list[tuple[str, str]]:
    """Give one row per family: the part before the dot, rights of root together."""
    families: dict[str, list[str]] = {}
    heads: dict[str, str] = {}
    for capability in capabilities:
        family, _, member = capability.name.partition(".")
        if capability.name.startswith("CAP_"):
            family, member = "privileges", capability.name.removeprefix("CAP_").lower()
        members = families.setdefault(family, [])
        if member:
            members.append(member)
        else:
            heads[family] = capability.reason
    return [
        (family, "; ".join(filter(None, (heads.get(family, ""), ", ".join(members)))))
        for family, members in families.items()
    ]
