"""Check a built wheel: `.tools/wheel/bin/python scripts/check_wheel.py WHEEL PLATFORM`.

The native module must run on PLATFORM as auditwheel defines it, the programs on any Linux of that processor;
nothing carries symbols, what is needed for debugging, or names of folders where it was built; the texts of
licences are there.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

MAGIC = b"\x7fELF"
MACHINES = {"x86_64": "EM_X86_64", "aarch64": "EM_AARCH64"}
TEXTS = {"licenses/LICENSE", "licenses/NOTICE"} | {
    f"licenses/LICENSES/{name}.txt" for name in ("GPL-3.0", "LGPL-2.1", "LGPL-3.0")
}
PROGRAMS = ("steelyard/_native.abi3.so", "steelyard/_bin/steelyard-launch")
ON_X86_64 = "steelyard/_bin/steelyard-scheduler"


def glibc(platform: str) -> tuple[int, ...]:
    """Give the version of the C library in a name such as `manylinux_2_28_x86_64`."""
    return tuple(int(part) for part in platform.split("_")[1:3])


def tag_problems(wheel: Path, platform: str) -> list[str]:
    """Ask auditwheel for the oldest platform that has each symbol and library which the module needs."""
    command = [sys.executable, "-m", "auditwheel", "show", "--json", wheel]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    needed = answer["overall_tag"]
    if needed.startswith("manylinux_") and glibc(needed) <= glibc(platform):
        return []
    return [f"needs {needed}, allowed is {platform}: {json.dumps(answer['versioned_symbols'])}"]


def program_problems(name: str, content: bytes, platform: str) -> list[str]:
    program = ELFFile(io.BytesIO(content))
    sections = {section.name for section in program.iter_sections()}
    found = [
        f"{name}: has {section}" for section in sorted(sections) if section.startswith((".debug", ".symtab"))
    ]
    if program["e_machine"] != MACHINES[platform.split("_", 3)[3]]:
        found.append(f"{name}: is for {program['e_machine']}")
    segments = {segment["p_type"] for segment in program.iter_segments()}
    if "/_bin/" in name and "PT_INTERP" in segments:
        found.append(f"{name}: is not linked statically")
    return found


def problems(wheel: Path, platform: str) -> list[str]:
    found = tag_problems(wheel, platform)
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    programs = {name: content for name, content in contents.items() if content.startswith(MAGIC)}
    for name, content in programs.items():
        found += program_problems(name, content, platform)
    expected = {*PROGRAMS, ON_X86_64} if platform.endswith("x86_64") else set(PROGRAMS)
    if lacks := expected - programs.keys():
        found.append(f"lacks {sorted(lacks)}; has {sorted(programs)}")
    folders = (Path.cwd(), Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")))
    found += [
        f"{name}: names {folder}"
        for name, content in contents.items()
        for folder in folders
        if bytes(folder) in content
    ]
    found += [f"lacks {text}" for text in TEXTS if not any(name.endswith(text) for name in contents)]
    return found


def main() -> None:
    wheel, platform = Path(sys.argv[1]), sys.argv[2]
    if found := problems(wheel, platform):
        raise SystemExit("\n".join(f"error: cannot publish {wheel.name}: {problem}" for problem in found))
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, runs on {platform}")


if __name__ == "__main__":
    main()
