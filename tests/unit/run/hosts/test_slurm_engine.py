"""What is placed by Slurm while its controller is away, refuses, or holds a task; a scripted site answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from steelyard.errors import RunError, SteelyardError, UsageError
from steelyard.run.hosts import slurm
from steelyard.run.hosts.slurm import ARRAYS_NAME, SlurmEngine

if TYPE_CHECKING:
    from pathlib import Path

AWAY = "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)"
LIMIT = "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy"
PROGRAMS = {
    # Each line of `refusals` is one answer that is not given yet.
    "sbatch": """
cat > /dev/null
echo "$*" >> "$SITE/asked"
if [ -s "$SITE/refusals" ]; then
    head -n 1 "$SITE/refusals" >&2; sed -i 1d "$SITE/refusals"; exit 1
fi
for word; do case $word in --job-name=*) name=${word#*=} ;; --array=0-*) last=${word##*-} ;; esac; done
for task in $(seq 0 "$last"); do echo "$name|$task|7|PENDING|None" >> "$SITE/queue"; done
""",
    "squeue": 'cat "$SITE/queue" 2> /dev/null || true',
    "scancel": 'echo "$*" >> "$SITE/cancelled"',
    "sinfo": 'cat "$SITE/nodes"',
    "scontrol": 'if [ "$2" = hostnames ]; then echo "$3" | tr , "\\n"; else echo "MaxArraySize = 3"; fi',
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the folder in which the site keeps its queue."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    place = tmp_path / "site"
    place.mkdir()
    (place / "nodes").write_text("n1\nn2\n", encoding="utf-8")
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    monkeypatch.setenv("SITE", str(place))
    monkeypatch.setattr(slurm, "AGAIN_S", 0.0)
    return place


def refuse(site: Path, *answers: str) -> None:
    (site / "refusals").write_text("".join(f"{each}\n" for each in answers), encoding="utf-8")


def queued(site: Path) -> list[tuple[str, str]]:
    lines = (site / "queue").read_text(encoding="utf-8").splitlines() if (site / "queue").exists() else []
    return [(name, task) for name, task, *_ in (line.split("|") for line in lines)]


def parts_in(folder: Path, count: int) -> list[Path]:
    folder.mkdir()
    parts = [folder / f"part-{number}" for number in range(count)]
    for part in parts:
        part.mkdir()
    return parts


def test_parts_wait_while_the_controller_is_away_and_are_submitted_once(site: Path, tmp_path: Path) -> None:
    parts = parts_in(tmp_path / "placed", 5)
    engine = SlurmEngine((), tmp_path / "placed")
    refuse(site, *[AWAY] * 4)
    engine.place(parts)
    for _ in range(3):
        found = engine.pending()
        assert found is not None
        assert found.parts == {part.name for part in parts}
        assert "Unable to contact slurm controller" in found.reasons[0]
        assert queued(site) == []
    found = engine.pending()
    assert found is not None
    assert found.reasons == ()
    assert [task for _, task in queued(site)] == ["0", "1", "2", "0", "1"]
    # A name for each array, however often it was tried: squeue takes no list of any length.
    assert len(json.loads((tmp_path / "placed" / ARRAYS_NAME).read_text())["arrays"]) == 2
    again = SlurmEngine((), tmp_path / "placed").pending()
    assert again is not None
    assert again.parts == {part.name for part in parts}


def test_what_a_limit_refuses_waits_for_what_the_limit_took(site: Path, tmp_path: Path) -> None:
    parts = parts_in(tmp_path / "placed", 5)
    engine = SlurmEngine((), tmp_path / "placed")
    engine.place(parts[:3])
    refuse(site, LIMIT, LIMIT)
    engine.place(parts[3:])
    found = engine.pending()
    assert found is not None
    assert found.parts == {part.name for part in parts}
    assert "violates accounting" in found.reasons[0]
    (site / "queue").unlink()  # they are over
    engine.pending()
    assert [task for _, task in queued(site)] == ["0", "1"]


def test_what_is_refused_although_nothing_runs_is_an_error(site: Path, tmp_path: Path) -> None:
    engine = SlurmEngine((), tmp_path / "placed")
    refuse(site, LIMIT)
    with pytest.raises(RunError, match="cannot submit to Slurm"):
        engine.place(parts_in(tmp_path / "placed", 1))


def test_an_answer_that_was_lost_is_not_asked_for_again(site: Path, tmp_path: Path) -> None:
    engine = SlurmEngine((), tmp_path / "placed")
    refuse(site, "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
    engine.place(parts_in(tmp_path / "placed", 1))
    (array,) = json.loads((tmp_path / "placed" / ARRAYS_NAME).read_text())["arrays"]
    (site / "queue").write_text(f"{array['name']}|0|7|RUNNING|None\n", encoding="utf-8")
    for _ in range(2):
        found = engine.pending()
        assert found is not None
        assert found.parts == {"part-0"}
        assert found.reasons == ()
    assert len(queued(site)) == 1


@pytest.mark.parametrize("held", ["REQUEUE_HOLD|None", "PENDING|launch failed requeued held"])
def test_a_task_that_waits_for_an_administrator_is_cancelled_and_free(
    site: Path, tmp_path: Path, held: str
) -> None:
    engine = SlurmEngine((), tmp_path / "placed")
    engine.place(parts_in(tmp_path / "placed", 2))
    ((name, _), _) = queued(site)
    (site / "queue").write_text(f"{name}|0|7|{held}\n{name}|1|8|RUNNING|None\n", encoding="utf-8")
    found = engine.pending()
    assert found is not None
    assert found.parts == {"part-1"}
    assert (site / "cancelled").read_text(encoding="utf-8") == "7\n"


def words_of_jobs(site: Path) -> list[list[str]]:
    return [line.split() for line in (site / "asked").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        ("-p", "main", "-w", "n1,n2", "-x", "n3"),
        ("-pmain", "-wn1,n2", "-xn3"),
        ("--partition=main", "--nodelist", "n1,n2", "--exclude=n3"),
    ],
)
def test_options_count_however_they_are_written(site: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    (site / "nodes").write_text("n1\nn2\nn3\nn4\n", encoding="utf-8")
    engine = SlurmEngine(words, tmp_path / "placed")
    assert engine.names == ("n1", "n2")
    assert engine.width == 2
    one, two = parts_in(tmp_path / "placed", 2)
    engine.place([one])
    engine.place([two], ["n2", "n1"])
    anywhere, pair = words_of_jobs(site)
    assert {"--partition=main", "--nodes=1", "--exclude=n3,n4"} <= set(anywhere), (
        "sbatch would give both nodes to a job"
    )
    assert {"--partition=main", "--nodes=2", "--nodelist=n2,n1"} <= set(pair)
    about_nodes = ("--nodes", "--nodelist", "--exclude", "-w", "-x")
    assert [sum(word.startswith(about_nodes) for word in each) for each in (anywhere, pair)] == [2, 2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-w",), "cannot give `-w` to sbatch: it has no value"),
        (("-a", "0-3"), "cannot give `--array=0-3` to sbatch: Steelyard sets it itself"),
        (("-Jmine",), "cannot give `--job-name=mine` to sbatch: Steelyard sets it itself"),
    ],
)
def test_options_that_cannot_be_given_are_said(
    site: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    assert site.exists()
    with pytest.raises(SteelyardError, match=said):
        SlurmEngine(words, tmp_path)


def test_nodes_that_do_not_meet_the_constraint_are_not_there(site: Path, tmp_path: Path) -> None:
    (site / "nodes").write_text("n1 fast,big\nn2 (null)\nn3 fast\n", encoding="utf-8")
    engine = SlurmEngine(["-C", "fast"], tmp_path)
    assert engine.names == ("n1", "n3")
    assert engine.width == 2


def test_a_node_that_is_not_there_is_named(site: Path, tmp_path: Path) -> None:
    assert site.exists()
    with pytest.raises(UsageError, match="names the node `n9`, which is not there") as caught:
        SlurmEngine(["-w", "n9"], tmp_path).names  # noqa: B018 - asking for it refuses
    assert caught.value.hint == "nodes: n1, n2"
