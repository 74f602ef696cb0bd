from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.cli.replication import Replication
from steelyard.studies.replication.options import ReplicationOptions
from steelyard.studies.request import requested_options
from steelyard.study import study

if TYPE_CHECKING:
    from pathlib import Path


def test_the_command_line_says_what_a_study_file_says(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text('study = "replication"\nexperiments = ["e4"]\nblocks = 6\n', encoding="utf-8")
    said = Replication(experiments="e1, causes", causes="clock,alone", planted="migrations").given()
    options = requested_options(study("replication"), file, said)
    assert isinstance(options, ReplicationOptions)
    assert (options.experiments, options.blocks) == (("e1", "causes"), 6)
    assert (options.causes, options.planted, options.devices) == (("clock", "alone"), "migrations", None)
