"""Computations that take too long, break, or are too many."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from steelyard.errors import DataError
from steelyard.model.finding import read_findings
from steelyard.serve.computing import MOST_MEMORY, MOST_WAITING, Computing, TooBusyError


@pytest.mark.long("processes are started anew three times")
def test_the_server_survives_what_it_computes() -> None:
    async def session() -> None:
        computing = Computing(patience_s=5)
        try:
            assert await computing.run(math.isqrt, 49) == 7
            with pytest.raises(DataError, match="does not exist"):
                await computing.run(read_findings, Path("/nowhere/findings.json"))
            with pytest.raises(TooBusyError, match="ended without an answer"):
                await computing.run(os._exit, 1)
            with pytest.raises(TooBusyError, match="ended without an answer"):
                await computing.run(bytearray, MOST_MEMORY)
            begin = time.monotonic()
            with pytest.raises(TooBusyError, match="took longer than 5 s"):
                await computing.run(time.sleep, 60)
            assert time.monotonic() - begin < 20
            assert await computing.run(math.isqrt, 64) == 8
        finally:
            computing.close()

    asyncio.run(session())


@pytest.mark.long("a server of its own is killed")
def test_what_computes_ends_with_a_killed_server() -> None:
    script = (
        "import asyncio, os\n"
        "from steelyard.serve.computing import Computing\n"
        "if __name__ == '__main__':\n"
        "    print(asyncio.run(Computing().run(os.getpid)), flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=20
    )
    process = Path("/proc") / found.stdout.strip()
    end = time.monotonic() + 10
    while process.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert found.stdout.strip()
    assert not process.exists()


def test_too_many_do_not_wait() -> None:
    async def session() -> None:
        computing = Computing()
        tasks = [asyncio.create_task(computing.run(time.sleep, 60)) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(TooBusyError, match="are waiting"):
            await computing.run(math.isqrt, 1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        computing.close()

    asyncio.run(session())
