"""Go: names by running each benchmark once, one benchmark by the test program of its package."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from steelyard.errors import CapabilityError, DataError, RunError
from steelyard.run.redact import last_lines, without_secrets
from steelyard.studies.comparison.harness.driver import Driver, Listed, exactly

if TYPE_CHECKING:
    from steelyard.studies.comparison.harness.driver import Place, Scratch

_VALUE: Final = re.compile(r"\s\d+\s+(\d[\d.]*) ns/op")
_PASSED_ON: Final = re.compile(r"--?(?P<flag>(?:cpu|short|benchmem|parallel))(?P<value>=.*)?")
_SWITCHES: Final = frozenset({"short", "benchmem"})
_FAILED: Final = 1
"""Exit code of ``go test`` where a benchmark failed, and where a package cannot be compiled."""


@dataclass(slots=True)
class _Package:
    """The benchmarks of a package, with those that failed and those that have others below them."""

    values: dict[str, None] = field(default_factory=dict)
    failed: dict[str, None] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Those that can be run: a failure is said by the run that fails."""
        leaves = [
            name for name in self.failed if not any(each.startswith(f"{name}/") for each in self.values)
        ]
        return list(dict.fromkeys([*self.values, *leaves]))


def _listed(place: Place) -> list[Listed]:
    words = list(place.words)
    if words[1:2] != ["test"]:
        message = f"`{' '.join(words)}` does not begin with `go test`"
        raise RunError(message, hint='command = "go test ./..."')
    at = words.index("-args") if "-args" in words else len(words)
    asked, arguments = words[2:at], words[at + 1 :]
    once = ["-json", "-run=^$", "-bench=.", "-benchtime=1x", *asked, *words[at:]]
    said = place.ask([*words[:2], *once], accepted=(0, _FAILED))
    packages = packages_of(said)
    if not packages and " ns/op" in said:
        message = "this Go does not say which benchmark a line is about"
        raise CapabilityError(message, hint="install Go 1.20 or later", code="capability.package")
    found = []
    for number, (package, benchmarks) in enumerate(sorted(packages.items())):
        # One name for each checkout, and equally long ones: paths are part of layouts.
        program = place.scratch.kept / f"{place.number:03d}" / f"{number:04d}.test"
        program.parent.mkdir(exist_ok=True)
        place.ask([*words[:2], "-c", "-o", str(program), *_flags(asked), package])
        folder = Path(place.ask([words[0], "list", "-f", "{{.Dir}}", package]).strip())
        below = os.path.relpath(folder, place.folder.resolve())
        timed = ["-test.run=^$", f"-test.benchtime={place.seconds:g}s", *_of_program(asked)]
        found += [
            Listed(
                name if below == "." else f"{below}/{name}",
                (str(program), f"-test.bench={_pattern(name)}", *timed, *arguments),
                folder,
            )
            for name in benchmarks.names
        ]
    return found


def packages_of(text: str) -> dict[str, _Package]:
    """Give the benchmarks of each package from the events of ``go test -json``.

    Raises
    ------
    RunError
        If a package cannot be compiled.
    """
    found: dict[str, _Package] = {}
    compiler: list[str] = []
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("Action") == "build-output":
            compiler.append(event.get("Output", ""))
        if event.get("Action") == "build-fail" or event.get("FailedBuild"):
            message = f"cannot compile the tests: {last_lines(without_secrets(''.join(compiler)))}"
            raise RunError(message, hint="repair the tests, or name other packages in `command`")
        name, package = event.get("Test", ""), event.get("Package", "")
        if not name.startswith("Benchmark"):
            continue
        if " ns/op" in event.get("Output", ""):
            found.setdefault(package, _Package()).values[name] = None
        elif event.get("Action") == "fail":
            found.setdefault(package, _Package()).failed[name] = None
    return found


def _pattern(name: str) -> str:
    """Give the pattern of one benchmark; Go takes one for each level of its name."""
    return "/".join(map(exactly, name.split("/")))


def _flags(asked: list[str]) -> list[str]:
    """Give what stands before the packages."""
    return asked[: next((at for at, word in enumerate(asked) if _is_package(word)), len(asked))]


def _is_package(word: str) -> bool:
    return word.startswith("./") or word in {".", "..."} or word.endswith("/...")


def _of_program(asked: list[str]) -> list[str]:
    """Give the flags that the test program itself takes."""
    found = []
    for at, word in enumerate(asked):
        flag = _PASSED_ON.fullmatch(word)
        if flag is None:
            continue
        value = flag["value"] or ("" if flag["flag"] in _SWITCHES else f"={asked[at + 1]}")
        found.append(f"-test.{flag['flag']}{value}")
    return found


def _read(scratch: Scratch, _statistic: str) -> float:
    values = _VALUE.findall(scratch.output.read_text(encoding="utf-8", errors="replace"))
    if len(values) != 1:
        message = f"it reported {len(values)} values of ns/op instead of one"
        raise DataError(message, code="data.import")
    return float(values[0])


DRIVER: Final = Driver(_listed, _read)
