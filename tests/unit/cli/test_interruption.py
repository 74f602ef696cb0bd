from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

WAITING = """
import time
from steelyard.cli.interruption import interruptible
try:
    with interruptible():
        try:
            print("waits", flush=True)
            time.sleep(30)
        finally:
            print("in order", flush=True)
            time.sleep({tidying_s})
except KeyboardInterrupt:
    pass
"""


@pytest.mark.parametrize(("apart_s", "tidying_s", "code"), [(0.0, 0.0, 0), (0.6, 30.0, -signal.SIGINT)])
def test_two_signals_at_once_are_one_and_a_later_one_ends_the_process(
    apart_s: float, tidying_s: float, code: int
) -> None:
    words = [sys.executable, "-c", WAITING.format(tidying_s=tidying_s)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        time.sleep(apart_s)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=20)
    assert process.returncode == code
    assert said == "in order\n"
