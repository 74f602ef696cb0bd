"""Write the packages that a container of a package installs, by hash, from `uv.lock`.

Wheels for the systems that Steelyard is built for; what installs them, and brings the interpreter, is uv.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHARE = ROOT / "src" / "steelyard" / "share"
REQUIREMENTS, INSTALLER = SHARE / "locked_requirements.txt", SHARE / "locked_installer.txt"
WANTED = re.compile(
    r"(?:py3|py2\.py3|cp3\d+)-(?:none|abi3|cp31[1-4])-(?:any|manylinux[\w.]*_(?:x86_64|aarch64)[\w.]*)\.whl$"
)

UV = """\
uv==0.13.9 \\
    --hash=sha256:d7f459fe4fd247d830351c75686d3996ace3c6f3f728eb0e85a30b7ada0cef19 \\
    --hash=sha256:ecb6028d79dc96fbeafffe5c8af62a7099487ebc05a701e76714eebcffd06375
"""
"""Wheels of uv for Linux on x86-64 and 64-bit ARM."""


def requirements() -> str:
    """Give what Steelyard needs, with what draws figures; a package of a result has no catalogue."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    own = next(each for each in lock if each["name"] == "steelyard")
    todo = [
        *own["dependencies"],
        *own["optional-dependencies"]["figures"],
    ]
    markers: dict[tuple[str, str], set[str]] = {}
    seen: set[tuple[str, str]] = set()
    while todo:
        wanted = todo.pop()
        for package in (each for each in lock if each["name"] == wanted["name"] and each is not own):
            key = (package["name"], package["version"])
            if wanted.get("version", key[1]) != key[1]:
                continue
            markers.setdefault(key, set()).add(wanted.get("marker", ""))
            if key not in seen:
                seen.add(key)
                todo += package.get("dependencies", [])
    packages = {(each["name"], each["version"]): each for each in lock if "version" in each}
    return "".join(_lines(packages[key], markers[key]) for key in sorted(seen))


def _lines(package: dict[str, Any], markers: set[str]) -> str:
    named = markers - {""}
    marker = f" ; {named.pop()}" if named else ""
    hashes = [each["hash"] for each in package["wheels"] if WANTED.search(each["url"])]
    if not hashes:
        message = f"no wheel of {package['name']} {package['version']} fits"
        raise SystemExit(message)
    lines = [
        f"{package['name']}=={package['version']}{marker}",
        *(f"    --hash={each}" for each in sorted(hashes)),
    ]
    return " \\\n".join(lines) + "\n"


if __name__ == "__main__":
    REQUIREMENTS.write_text(requirements(), encoding="utf-8")
    INSTALLER.write_text(UV, encoding="utf-8")
