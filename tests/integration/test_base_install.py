"""Every verb in an environment of its own that has what `pip install steelyard` brings, and no extra."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fixtures.git_repository import MadeRepository
from steelyard.cli.verb_lookup import find_verb
from steelyard.cli.verbs import VERBS

SAMPLE = Path(__file__).parents[1] / "golden" / "importers" / "hyperfine.json"
INSTALL = "pip install 'steelyard[figures]'"
TINY = """
study = "stability"
blocks = 2
iterations = 4
workers = [1, 2]
isolation = ["bare"]
workloads = ["exp/exp_float"]
"""
MESSAGES = "--transport pipe --quick --operations 600 --replications 3 --largest 100000"

# Each builds on what those above it left in the folder; the last word says which exit codes are right.
LINES = (
    ("measure -- true", {0}),
    ("compare true false --budget 2s --ignore-failure --report --out compared", {0, 1}),
    ("bench --file suite.toml --minutes 0.1 --rev one --rev two --exact --no-record", {0, 1}),
    ("bisect one two --minutes 0.1 --out halved -- true", {0, 1}),
    ("run stability --quick --study-file tiny.toml --no-analyse --out tiny", {0}),
    ("analyse tiny", {0}),
    ("report tiny", {0}),
    ("report tiny --format markdown", {0}),
    ("report tiny --format latex", {0}),
    ("figure tiny", {0}),
    ("figure tiny --table csv --out behind", {0}),
    ("figure tiny shifts", {2, 3}),
    ("verify tiny", {0}),
    ("verify compared", {0}),
    ("run stability --quick --study-file tiny.toml --out other", {0}),
    ("pack tiny -o public/tiny.zip", {0}),
    ("verify public/tiny.zip", {0}),
    ("repository index public --verify", {0}),
    ("repository list public", {0}),
    ("repository fetch public tiny.zip -o fetched.zip", {0}),
    ("rerun compared --out again --yes", {0, 1}),
    ("compare-results tiny other --margin 5%", {0, 1}),
    ("history tiny other --html history.html", {0, 1}),
    ("peaks tiny", {0}),
    ("fit lines.csv --x size --y time", {0}),
    ("plan stability --quick --study-file tiny.toml", {0}),
    ("import hyperfine sample.json --out imported", {0}),
    ("analyse imported", {0}),
    ("analyse imported --on pool:2", {0}),
    ("analyse imported --on local-cluster", {3}),
    ("report imported", {0}),
    ("verify imported", {0}),
    ("export tiny", {0}),
    ("open sample.json --no-browser", {0}),
    ("results scan .", {0}),
    ("results list", {0}),
    ("results show tiny", {0}),
    ("results tag tiny small", {0}),
    ("results note tiny text", {0}),
    ("results diff tiny other --margin 5%", {0, 1}),
    ("results open tiny --no-browser", {0}),
    ("results rm other --yes", {0}),
    # Pages need an extra, and the error names its command.
    ("serve --port 0", {3}),
    (f"run communication {MESSAGES} --out messages", {0}),
    ("export simgrid messages --model MODEL --out platform", {0}),
    ("export model messages --model MODEL --format json --out model.json", {0}),
    ("predict messages --model MODEL --size 64KiB", {0}),
    ("simulate colocation --cores 2 --load 0.5 --policy idle --duration 1s", {0}),
    ("workload packets serial 20 4 100 t 1", {0}),
    ("background -- true", {0}),
    ("scheduler start --help", {0}),
    ("scheduler stop --help", {0}),
    ("scheduler status", {0}),
    ("restore", {0}),
    ("doctor", {0}),
    ("fleet doctor --help", {0}),
    ("run stability --quick --study-file tiny.toml --on local --no-analyse --out far", {0}),
    ("run-part far/placed/part-0001", {0}),
    ("--install-completion bash", {0}),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`steelyard` in an environment whose packages are those of this one that no extra asks for."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for name in base_packages("steelyard"):
        for place in {
            Path(file).parts[0] for file in distribution(name).files or () if ".." not in str(file)
        }:
            source = Path(str(distribution(name).locate_file(place)))
            if not (packages / place).exists() and source.exists():
                (packages / place).symlink_to(source)
    script = folder / "bin" / "steelyard"
    begin = 'from steelyard.entry import main\nif __name__ == "__main__":\n    main()'  # as pip writes it
    script.write_text(f"#!{folder}/bin/python\n{begin}\n")
    script.chmod(0o755)
    return script


def base_packages(name: str) -> set[str]:
    """A package with everything that it needs, and that those need."""
    found, ahead = set(), [name]
    while ahead:
        package = canonicalize_name(ahead.pop())
        if package not in found:
            found.add(package)
            needed = map(Requirement, requires(package) or ())
            ahead += [
                each.name for each in needed if each.marker is None or each.marker.evaluate({"extra": ""})
            ]
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("work")
    made = MadeRepository(place)
    for name in ("one", "two"):
        made.commit(name, suite_dot_toml=f"# {name}\n[benchmark.nothing]\ncommand = 'true'\n")
        made.git("tag", name)
    (place / "tiny.toml").write_text(TINY)
    (place / "lines.csv").write_text("size,time\n" + "".join(f"{x},{3 + 2 * x + x % 3}\n" for x in range(40)))
    (place / "sample.json").write_bytes(SAMPLE.read_bytes())
    (place / "public").mkdir()
    return place


def test_the_environment_has_no_extra(program: Path) -> None:
    tried = subprocess.run(
        [program.parent / "python", "-c", "import vl_convert"], check=False, capture_output=True, text=True
    )
    assert "No module named 'vl_convert'" in tried.stderr
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("steelyard ")


def test_every_verb_is_tried() -> None:
    tried = {split[0] for line, _ in LINES if (split := find_verb(line.split())) is not None}
    assert tried == set(VERBS)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_verb_needs_an_extra(program: Path, folder: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    models, said = folder / "messages" / "models", {}
    for line, codes in LINES:
        words = line.replace("MODEL", next((each.stem for each in models.glob("*.json")), "none")).split()
        answer = subprocess.run(
            [program, *words], check=False, cwd=folder, env=environment, capture_output=True, text=True
        )
        said[line] = answer.stdout + answer.stderr
        assert answer.returncode in codes, f"{line}\n{said[line]}"
        assert "Traceback" not in said[line], line
        assert "a bug in steelyard" not in said[line], line
    for line in filter(
        re.compile(r"report tiny( --format markdown)?$|compare .*--report|run .* other").match, said
    ):
        assert INSTALL in said[line], line
    assert "The figures are missing" in (folder / "tiny" / "report.html").read_text()
    assert not (folder / "tiny" / "figures").exists()
