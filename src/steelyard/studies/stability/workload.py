"""What a workload is: a program in some language, its scale, its command, its needs."""

from __future__ import annotations

import math
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from steelyard.errors import CapabilityError
from steelyard.run import programs

_LARGEST: Final = 2**32 - 1
"""Most numbers and operations the programs take."""


class Language(StrEnum):
    """What a workload is written in."""

    NATIVE = "native"
    """Rust with optimisation; part of the installation."""
    C = "c"
    """C without optimisation, as in the published study; compiled on the host."""
    PYTHON = "python"
    """The host's Python."""
    JAVA = "java"
    """Compiled and run by the host's Java."""


class Growth(StrEnum):
    """How the time of an iteration grows."""

    OPERATIONS = "operations"
    """With the operations; the input stays."""
    SQUARE = "square"
    """With the square of the size."""
    SIZE_LOG_SIZE = "size log size"
    """With size * log2(size)."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much one iteration does.

    Parameters
    ----------
    size : int
        Numbers in the input.
    operations : int or None
        Operations over the input; ``None`` where the size alone decides.
    """

    size: int
    operations: int | None = None

    @property
    def label(self) -> str:
        """Name of the input as the published study writes it: size, or size and operations.

        Examples
        --------
        >>> Scale(65536, 1048576).label, Scale(1048576, 1048576).label, Scale(16384).label
        ('65536_1048576', '1048576', '16384')
        """
        if self.operations is None or self.operations == self.size:
            return str(self.size)
        return f"{self.size}_{self.operations}"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a workload can be run on this host.

    Parameters
    ----------
    available : bool
        Whether it can.
    reason : str or None
        What is missing.
    repair : str or None
        Command that brings it.
    """

    available: bool
    reason: str | None = None
    repair: str | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """A program with a known answer.

    Parameters
    ----------
    name : str
        Level of the factor `workload`.
    kernel : str
        Kernel of the native program that computes the same result.
    language : Language
        What it is written in.
    published : Scale
        Scale of the published study.
    quick : Scale
        Scale of `--quick`: about 40 ms on a current processor.
    growth : Growth
        How the time of an iteration grows.
    """

    name: str
    kernel: str
    language: Language
    published: Scale
    quick: Scale
    growth: Growth

    def command(self, scale: Scale, seed: int) -> tuple[str, ...]:
        """Give the command, with ``{work}`` and ``{workloads}`` for what the isolation decides."""
        arguments = ["--size", str(scale.size), "--seed", str(seed)]
        if scale.operations is not None:
            arguments += ["--operations", str(scale.operations)]
        match self.language:
            case Language.NATIVE:
                return ("{work}", "kernel", self.kernel, *arguments)
            case Language.C:
                return ("{workloads}/c/kernels", "kernel", self.kernel, *arguments)
            case Language.PYTHON:
                return (str(_python()), "-I", "{workloads}/python/qsort.py", *arguments)
            case Language.JAVA:
                # Without the option the virtual machine maps a file below /tmp while it runs.
                java = shutil.which("java") or "java"
                return (java, "-XX:-UsePerfData", "-cp", "{workloads}/java", "Qsort", *arguments)

    def host_command(self, scale: Scale, seed: int) -> tuple[str, ...]:
        """Give the command with the places of this host filled in; builds what must be built."""
        self.prepare()
        places = {"{work}": str(programs.work_path()), "{workloads}": str(programs.workloads_path())}
        words = self.command(scale, seed)
        for placeholder, path in places.items():
            words = tuple(word.replace(placeholder, path) for word in words)
        return words

    @property
    def interpreter(self) -> Path | None:
        """The program the isolation must show beside ``{work}`` and ``{workloads}``, if any."""
        match self.language:
            case Language.PYTHON:
                return _python()
            case Language.JAVA:
                found = shutil.which("java")
                return None if found is None else Path(found)
            case _:
                return None

    def probe(self) -> Readiness:
        """Look whether this host has what the workload needs; builds nothing."""
        packages = {"cc": "gcc libc6-dev", "java": "default-jdk-headless", "javac": "default-jdk-headless"}
        needed = {Language.C: ("cc",), Language.JAVA: ("java", "javac")}.get(self.language, ())
        for name in needed:
            if shutil.which(name) is None:
                return Readiness(
                    available=False,
                    reason=f"`{name}` is not on the PATH",
                    repair=f"apt-get install {packages[name]}",
                )
        return Readiness(available=True)

    def prepare(self) -> None:
        """Build what must be built.

        Raises
        ------
        CapabilityError
            If the host lacks a compiler, or it fails.
        """
        readiness = self.probe()
        if not readiness.available:
            message = f"workload `{self.name}` cannot run here: {readiness.reason}"
            raise CapabilityError(message, hint=readiness.repair, code="capability.workload")
        if self.language is Language.C:
            programs.build_c()
        elif self.language is Language.JAVA:
            programs.build_java()

    def scaled(self, scale: Scale, ratio: float) -> Scale:
        """Give the scale at which an iteration takes `ratio` times as long as at `scale`.

        Numbers that change are rounded to three digits.
        """
        match self.growth:
            case Growth.OPERATIONS:
                operations = scale.operations if scale.operations is not None else scale.size
                return Scale(scale.size, _rounded(operations * ratio))
            case Growth.SQUARE:
                return Scale(_rounded(scale.size * math.sqrt(ratio)))
            case Growth.SIZE_LOG_SIZE:
                return Scale(_rounded(_size_of(size_log_size(scale.size) * ratio)))


def _python() -> Path:
    """Give a real interpreter: a shim or a virtual environment would be measured with it."""
    system = Path("/usr/bin/python3")
    return system if system.exists() else Path(sys.executable).resolve()


def size_log_size(size: float) -> float:
    """Give n log2 n, the growth of a quicksort."""
    return size * math.log2(max(size, 2.0))


def _size_of(wanted: float) -> float:
    """Invert `size_log_size` by bisection."""
    low, high = 1.0, max(wanted, 2.0)
    for _ in range(64):
        middle = (low + high) / 2
        if size_log_size(middle) < wanted:
            low = middle
        else:
            high = middle
    return high


def _rounded(number: float) -> int:
    whole = min(max(round(number), 1), _LARGEST)
    step: int = 10 ** max(len(str(whole)) - 3, 0)
    return (whole + step // 2) // step * step
