"""Record the page template of this version, and keep packages of it in `tests/fixtures/packages`.

What is kept of a release is never written again: later versions must confirm it. Until the version in
Cargo.toml is released, run this after every change of the template, the analysis or the package's texts.
Packages of real runs are analysed, reported and packed again; studies that are named are run before.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from fixtures.kept_package import BUILT, PACKAGES  # noqa: E402 - from the folder of tests
from fixtures.kept_run import STUDIES, keep_run  # noqa: E402 - from there
from steelyard import __version__  # noqa: E402 - after it
from steelyard.cli import execute  # noqa: E402
from steelyard.share.page_content import released_entry  # noqa: E402

TEMPLATES = ROOT / "src" / "steelyard" / "share" / "released_templates.json"


def main(executed: list[str]) -> None:
    """Write both."""
    known = json.loads(TEMPLATES.read_text(encoding="utf-8"))
    known[__version__] = released_entry()
    TEMPLATES.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PACKAGES.mkdir(exist_ok=True)
    for study, build in BUILT.items():
        with tempfile.TemporaryDirectory() as folder:
            result, package = build(Path(folder) / "result"), Path(folder) / "kept.zip"
            for words in (["analyse", result], ["report", result], ["pack", result, "-o", package]):
                code = execute([str(word) for word in words])
                if code:
                    raise SystemExit(code)
            shutil.move(package, PACKAGES / f"steelyard-{__version__}-{study}.zip")
    for study in STUDIES:
        keep_run(study, is_executed=study in executed)


if __name__ == "__main__":
    main(sys.argv[1:])
