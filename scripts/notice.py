"""Write NOTICE: what others made that the native module and the static programs contain, and on which terms.

Its list is that of Cargo.lock, here and of the best-effort class, less what only tests, build scripts and
macros use. `--check` writes nothing and fails if NOTICE is not what would be written.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from build_backend import PROGRAMS, ROOT

TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
WORKSPACES = {
    "Cargo.toml": sorted({"steelyard-py", *PROGRAMS.values()}),
    "crates/sched/bpf/Cargo.toml": ["steelyard-scheduler"],
}
ACCEPTED = ("Apache-2.0", "MIT", "BSD-2-Clause")
"""The first of these that a crate may be used under is the one it is used under."""
HEAD = """\
Steelyard
Copyright The Steelyard developers

Licensed under the Apache License, Version 2.0, whose text is in LICENSE.

The wheel contains compiled code of others. Beside the crates that are listed below these are:

- in all programs and the native module: the standard library of Rust and what it is made of, Copyright The
  Rust Project Developers and others, used under the Apache License, Version 2.0
- in the static programs: the GNU C Library, Copyright Free Software Foundation and others, under the GNU
  Lesser General Public License, version 2.1 or later, whose text is in LICENSES/LGPL-2.1.txt. The source
  distribution has all that is needed to link the programs to another version of the library
  (scripts/build_backend.py).
- in the static programs: the runtime library of GCC, under the GNU General Public License, version 3, with
  the GCC Runtime Library Exception
- in the loader of the best-effort class: libelf of elfutils, Copyright Red Hat, Inc. and others, used under
  the GNU Lesser General Public License, version 3 or later, whose text is in LICENSES/LGPL-3.0.txt and
  LICENSES/GPL-3.0.txt; the source distribution has all that is needed to link the loader to another version
  (scripts/build-scheduler.sh)
- in the loader as well: libbpf, Copyright Libbpf Authors, used under the BSD-2-Clause licence, whose text is
  that of libbpf-rs below; zlib, Copyright Jean-loup Gailly and Mark Adler, under the zlib licence
- in the native module: compiler-rt and libunwind of LLVM, under the Apache License, Version 2.0, with LLVM
  Exceptions
"""


def contained_crates() -> list[tuple[str, str]]:
    """Give name and version of each crate that is linked into what the wheel contains."""
    found = set()
    for manifest, crates in WORKSPACES.items():
        command = ["cargo", "tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"]
        command += ["--format", "{p}", "--manifest-path", manifest]
        for target in TARGETS:
            command += ["--target", target]
        for crate in crates:
            command += ["--package", crate]
        answer = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
        # Behind those of this workspace stands their folder.
        found |= set(re.findall(r"^(\S+) v(\S+)(?: \(\*\))?$", answer.stdout, re.MULTILINE))
    return sorted(found)


def packages() -> dict[tuple[str, str], dict[str, str]]:
    """Give what the manifest of each crate of the locks says."""
    known = {}
    for manifest in WORKSPACES:
        command = ["cargo", "metadata", "--locked", "--format-version", "1", "--manifest-path", manifest]
        for target in TARGETS:
            command += ["--filter-platform", target]
        answer = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True)
        for package in json.loads(answer.stdout)["packages"]:
            known[package["name"], package["version"]] = package
    return known


def licence(package: dict[str, str]) -> str:
    offered = re.split(r" OR |/", package["license"] or "")
    for name in ACCEPTED:
        if name in offered:
            return name
    problem = (
        f"error: cannot use {package['name']}: its licence is {package['license']}; accepted: {ACCEPTED}"
    )
    raise SystemExit(problem)


def texts(package: dict[str, str], name: str) -> list[str]:
    """Give what must go with the crate: its text of the licence, unless that is ours, and its notice."""
    folder = Path(package["manifest_path"]).parent
    files = sorted(folder.glob("NOTICE*"))
    if name != "Apache-2.0":
        files += sorted(folder.glob(f"LICENSE[-.]{name}*")) or sorted(folder.glob("LICENSE*"))[:1]
    return [file.read_text(encoding="utf-8").strip().expandtabs() for file in files]


def notice() -> str:
    known = packages()
    lines, parts = [], []
    for crate in contained_crates():
        package = known[crate]
        name = licence(package)
        lines.append(f"- {' '.join(crate)}, {name}, {package['repository']}")
        parts += [f"{'-' * 80}\n{' '.join(crate)}\n\n{text}\n" for text in texts(package, name)]
    return "\n".join([HEAD, "Crates:\n", *lines, "", "Their own texts:\n", *parts])


def main() -> None:
    path = ROOT / "NOTICE"
    text = notice()
    if sys.argv[1:] != ["--check"]:
        path.write_text(text, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text:
        problem = (
            "error: NOTICE does not list what Cargo.lock says\n\nhint: .venv/bin/python scripts/notice.py"
        )
        raise SystemExit(problem)


if __name__ == "__main__":
    main()
