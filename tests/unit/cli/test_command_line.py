"""Which words of a command line are whose: verbs, options, studies, and the program to run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from steelyard.cli import execute
from steelyard.cli.completion import SHELLS, whole_app
from steelyard.cli.verbs import VERBS

OTHER_STUDIES = {
    "stability": ("--transport", "--policies", "--command", "--experiments"),
    "scaling": ("--transport", "--policies", "--experiments"),
    "communication": ("--policies", "--command", "--experiments"),
    "colocation": ("--transport", "--command", "--experiments"),
    "replication": ("--transport", "--policies", "--command"),
}
OWN = {
    "stability": (),
    "scaling": ("--command", "--baseline"),
    "communication": ("--transport", "--link", "--validate"),
    "colocation": ("--policies", "--seeds", "--in-vm"),
    "replication": ("--experiments", "--planted"),
}


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that exists once a program was run: each name that could be taken for one is a program here."""
    ran = tmp_path / "ran"
    folder = tmp_path / "bin"
    folder.mkdir()
    names = ("prog", "--isolaton", "--requir", "-x", "-5", "2s", "sandbox", "--weird-program", "--")
    for name in names:
        path = folder / name
        path.write_text(f'#!/bin/sh\nprintf "%s|" "${{0##*/}}" "$@" > {ran}\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return ran


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("measure --isolaton sandbox -- prog", "Did you mean --isolation?"),
        ("measure --isolaton=sandbox -- prog", "Did you mean --isolation?"),
        ("measure --isolaton sandbox prog", "Did you mean --isolation?"),
        ("measure --isolaton=sandbox prog", "Did you mean --isolation?"),
        ("measure -x -- prog", "Unknown option: -x."),
        ("measure -x prog", "Unknown option: -x."),
        ("measure -5 -- prog", "`-5` is before `--`"),
        ("measure --memory 64M 2s -- prog", "`2s` is before `--`"),
        ("measure prog -- --weird-program", "`prog` is before `--`"),
        ("measure --isolation --json -- prog", "`--isolation` needs a value"),
        ("measure --isolation -- prog", "`--isolation` needs a value"),
        ("measure --isolation=--json -- prog", "`--json`"),
        ("measure -n 3 prog --reverse", "`-n` may be meant for"),
        ("measure prog --reverse words.txt", "`--reverse` may be meant for"),
        ("measure", "needs a command"),
        ("measure --", "needs a command"),
        ("background --requir idle -- prog", "Did you mean --require?"),
        ("background --requir=idle -- prog", "Did you mean --require?"),
        ("background --requir idle prog", "Did you mean --require?"),
        ("background -x -- prog", "Unknown option: -x."),
        ("background --quiet 2s -- prog", "`2s` is before `--`"),
        ("compare --margn 2% prog prog", "Did you mean --margin?"),
        ("compare --margn=2% prog prog", "Did you mean --margin?"),
        ("compare prog --budgt 1s prog", "Did you mean --budget?"),
        ("peaks --treshold sigma:3 .", "Did you mean --threshold?"),
        ("rerun --yess package.zip", "Did you mean --yes?"),
        ("run scaling --comand prog", "Did you mean --command?"),
        ("workload --packets", "Unknown option: --packets."),
    ],
)
def test_a_misspelt_option_is_never_the_program(
    line: str, says: str, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(line.split()) == 2
    assert says in capsys.readouterr().err
    assert not program.exists()


@pytest.mark.parametrize("words", [["measure", ""], ["measure", "--", ""], ["background", "--", ""]])
def test_an_empty_word_is_no_program(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words) == 2
    assert "needs a command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "ran"),
    [
        ("measure -- --weird-program", "--weird-program|"),
        ("measure -- --weird-program --json -x", "--weird-program|--json|-x|"),
        ("measure -- prog -- -5 --help", "prog|--|-5|--help|"),
        ("measure -- -- prog", "--|prog|"),
        ("measure -n1 -- -x", "-x|"),
        ("measure prog words.txt", "prog|words.txt|"),
    ],
)
def test_what_stands_behind_the_separator_is_the_program(line: str, ran: str, program: Path) -> None:
    assert execute(line.split()) == 0
    assert program.read_text() == ran


@pytest.mark.parametrize("line", ["help measure -- prog", "measure --help -- prog", "help background prog"])
def test_help_runs_nothing(line: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(line.split()) == 0
    assert "Usage: steelyard " in capsys.readouterr().out
    assert not program.exists()


@pytest.mark.parametrize("name", [*VERBS, "run stability", "plan replication", "scheduler"])
def test_help_of_a_verb_is_the_verb_with_its_flag(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["help", *name.split()]) == 0
    asked = capsys.readouterr().out
    assert execute([*name.split(), "--help"]) == 0
    assert capsys.readouterr().out == asked
    assert f"Usage: steelyard {name.partition(' ')[0]}" in asked


@pytest.mark.parametrize("words", [["help"], ["help", "help"], ["help", "--help"], ["-h"]])
def test_help_alone_is_the_overview(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words) == 0
    assert "Usage: steelyard VERB [options]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("reprot results/night", "report"),
        ("help reprot", "report"),
        ("schedular start", "scheduler start"),
        ("scheduler strat", "scheduler start"),
        ("simulate collocation", "simulate colocation"),
        ("--hepl", "--help"),
        ("--versoin", "--version"),
    ],
)
def test_the_nearest_verb_stands_before_the_list_of_verbs(
    line: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(line.split()) == 2
    first, second, *_, hint = capsys.readouterr().err.splitlines()
    assert first.endswith(f"did you mean `steelyard {meant}`?")
    assert second.startswith("verbs: ")
    assert hint.startswith(f"hint: steelyard {meant}")


def test_a_word_like_no_verb_gets_the_list_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["xyzzy"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: `xyzzy` is not a verb of steelyard\nverbs: run, measure")


def test_half_a_verb_names_the_other_half(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["repository"]) == 2
    assert "allowed: `index`, `list`, `fetch`\n\nhint: steelyard repository --help" in capsys.readouterr().err


@pytest.mark.parametrize("study", OWN)
def test_help_of_a_study_shows_its_options_and_the_common_ones(
    study: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", study, "--help"]) == 0
    said = capsys.readouterr().out
    common, _, own = said.partition(f" Options of {study} ")
    assert all(option in common for option in ("--quick", "--out", "--study-file", "--resume", "--json"))
    assert all(option in own for option in OWN[study])
    shown = re.sub(r"(?s)Examples:.*", "", said)
    assert not [option for option in OTHER_STUDIES[study] if f"{option} " in shown]
    examples = re.findall(r"steelyard run (\w+)", said.partition("Examples:")[2])
    assert set(examples) <= {study}


def test_help_of_run_lists_the_studies_and_no_option_of_theirs(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "--help"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"Options of (\w+ \w+|\w+)", said) == ["every study"]
    assert all(f" {study}: " in said for study in OWN)
    assert "--transport " not in said.partition("Examples:")[0]


def test_help_of_an_unknown_study_names_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "stabilty", "--help"]) == 2
    assert "`stability`" in capsys.readouterr().err


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("completion")
    app = whole_app()
    paths: dict[str, Path] = {shell: folder / f"steelyard.{shell}" for shell in SHELLS}
    for shell in SHELLS:
        paths[shell].write_text(app.generate_completion(shell=shell))
    return paths


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_reads_its_script(shell: str, scripts: dict[str, Path]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    subprocess.run([shell, "-n", scripts[shell]], check=True)


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("steelyard re", {"report", "rerun", "repository", "restore", "results"}),
        ("steelyard run ", set(OWN)),
        ("steelyard run communication --tr", {"--transport"}),
        ("steelyard run stability --tr", set()),
        ("steelyard export simgrid --no", {"--noise"}),
        ("steelyard scheduler st", {"start", "stop", "status"}),
        ("steelyard measure --iso", {"--isolation"}),
        ("steelyard compare --metric ", {"wall", "cpu", "memory"}),
        ("steelyard report night --format la", {"latex"}),
    ],
)
def test_bash_completes_verbs_studies_options_and_values(
    line: str, offered: set[str], scripts: dict[str, Path]
) -> None:
    asking = f"""
        source {scripts["bash"]}
        COMP_WORDS=({line} {'""' if line.endswith(" ") else ""}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}
        _steelyard steelyard "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD-1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    answer = subprocess.run(["bash", "-c", asking], capture_output=True, text=True, check=True)
    assert {word.strip() for word in answer.stdout.split()} == offered


@pytest.mark.parametrize("shell", SHELLS)
def test_installing_completion_says_where_it_is(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    assert execute(["--install-completion", shell]) == 0
    said = capsys.readouterr().out
    path = Path(said.splitlines()[0].removeprefix("completion: "))
    assert path.is_relative_to(tmp_path)
    assert "communication" in path.read_text()
    assert "new shell" in said


@pytest.mark.parametrize("words", [["--install-completion", "tcsh"], ["--install-completion=", "bash", "x"]])
def test_an_unknown_shell_names_the_known(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(words) == 2
    assert "allowed: bash, zsh, fish" in capsys.readouterr().err


def test_completion_that_cannot_be_written_names_the_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", "/proc")
    assert execute(["--install-completion", "fish"]) == 5
    assert "`/proc/.config" in capsys.readouterr().err
