"""The machine settings that tuning knows: where each lives and what suits measuring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from steelyard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_CPU: Final = "sys/devices/system/cpu"
_KERNEL: Final = "proc/sys/kernel"


@dataclass(frozen=True, slots=True)
class Setting:
    """One reversible machine setting.

    Parameters
    ----------
    name : str
        As in ``steelyard doctor``.
    purpose : str
        What the wanted value does.
    patterns : tuple of str
        Where it lives, relative to the root of the host, as glob patterns: one file or one per CPU,
        interrupt or policy.
    wanted : str
        Value for measuring.
    absent_values : frozenset of str
        Values by which the host says that it has no such thing.
    """

    name: str
    purpose: str
    patterns: tuple[str, ...]
    wanted: str
    absent_values: frozenset[str] = frozenset()

    def files(self, root: Path) -> list[Path]:
        """Give the files of this setting that exist under a root, sorted."""
        found = (path for pattern in self.patterns for path in root.glob(pattern))
        return sorted(path for path in found if read_value(path) not in self.absent_values)


SETTINGS: Final[dict[str, Setting]] = {
    setting.name: setting
    for setting in (
        Setting("governor", "full clock rate", (f"{_CPU}/cpufreq/policy*/scaling_governor",), "performance"),
        Setting("turbo", "no turbo (Intel)", (f"{_CPU}/intel_pstate/no_turbo",), "1"),
        Setting("boost", "no boost", (f"{_CPU}/cpufreq/boost",), "0"),
        Setting(
            "smt",
            "one thread per core",
            (f"{_CPU}/smt/control",),
            "off",
            frozenset({"notsupported", "notimplemented", "forceoff"}),
        ),
        Setting("aslr", "the same addresses in each run", (f"{_KERNEL}/randomize_va_space",), "0"),
        Setting(
            "transparent-huge-pages",
            "huge pages on request only",
            ("sys/kernel/mm/transparent_hugepage/enabled",),
            "madvise",
        ),
        Setting("numa-balancing", "memory stays where it is", (f"{_KERNEL}/numa_balancing",), "0"),
        Setting("same-page-merging", "no merging of pages", ("sys/kernel/mm/ksm/run",), "0"),
        Setting(
            "watchdogs", "no lock-up watchdogs", (f"{_KERNEL}/nmi_watchdog", f"{_KERNEL}/soft_watchdog"), "0"
        ),
        Setting("timer-migration", "timers stay on their CPU", (f"{_KERNEL}/timer_migration",), "0"),
        Setting("autogroup", "nice works between sessions", (f"{_KERNEL}/sched_autogroup_enabled",), "0"),
        Setting("swappiness", "swap only as a last resort", ("proc/sys/vm/swappiness",), "1"),
        Setting("compaction", "no compaction ahead of need", ("proc/sys/vm/compaction_proactiveness",), "0"),
        Setting("statistics-interval", "rare memory statistics", ("proc/sys/vm/stat_interval",), "120"),
        Setting("perf-sampling", "no fast profiling", (f"{_KERNEL}/perf_event_max_sample_rate",), "1"),
        Setting("access-monitor", "no DAMON", ("sys/kernel/mm/damon/admin/kdamonds/*/state",), "off"),
    )
}
"""Every setting with one value for all hosts, by name."""


def setting(name: str) -> Setting:
    """Give a setting by name.

    Raises
    ------
    UsageError
        If there is none; the message lists the known names.
    """
    try:
        return SETTINGS[name]
    except KeyError as error:
        message = f"`{name}` is not a machine setting; allowed: {', '.join(SETTINGS)}"
        raise UsageError(message, code="usage.setting") from error


def interrupts_away_from(measured: Iterable[int], online: Iterable[int]) -> Setting:
    """Make the setting that keeps device interrupts off the measured CPUs.

    Parameters
    ----------
    measured, online : iterable of int
        CPUs with measured runs; CPUs of the host.

    Raises
    ------
    UsageError
        If no CPU would be left for interrupts.
    """
    left = sorted(set(online) - set(measured))
    if not left:
        message = "every CPU is used for measuring, so none is left for interrupts"
        raise UsageError(message, hint="use fewer CPUs for measuring", code="usage.setting")
    listed = ",".join(map(str, left))
    return Setting(
        "interrupts", f"interrupts on CPUs {listed}", ("proc/irq/[0-9]*/smp_affinity_list",), listed
    )


def read_value(path: Path) -> str | None:
    """Read a setting's value; of ``always [madvise] never`` the chosen word, and ``None`` if unreadable."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    chosen = [word[1:-1] for word in text.split() if word.startswith("[") and word.endswith("]")]
    return chosen[0] if chosen else text


def same_value(first: str, second: str) -> bool:
    """Whether two values of a setting mean the same; CPU lists may be written in two ways.

    Examples
    --------
    >>> same_value("0-2,5", "0,1,2,5")
    True
    >>> same_value("on", "off")
    False
    """
    return first == second or _members(first) == _members(second) is not None


def _members(text: str) -> frozenset[int] | None:
    members: set[int] = set()
    for part in text.split(","):
        low, _, high = part.partition("-")
        if not low.isdigit() or (high and not high.isdigit()):
            return None
        members.update(range(int(low), int(high or low) + 1))
    return frozenset(members)
