from __future__ import annotations

from steelyard.model import Execution
from steelyard.run.executor.run_specs import fill, in_block


def test_the_number_of_the_block_counts_from_one_and_other_braces_stay() -> None:
    execution = Execution("bare", ("prog", "--seed", "{block}", "{workers}", "{x}"))
    assert in_block(execution, 0).command == ("prog", "--seed", "1", "{workers}", "{x}")
    assert in_block(execution, 10).command[2] == "11"
    assert execution.command[2] == "{block}"


def test_an_unknown_placeholder_is_left_alone() -> None:
    assert fill("{work}/{worker}{", {"work": "/bin", "worker": "3"}) == "/bin/3{"
