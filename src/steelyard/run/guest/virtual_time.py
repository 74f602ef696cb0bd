"""Time that is counted in instructions: how fast the virtual CPUs are then.

QEMU can let its virtual clock advance by ``2**shift`` ns with each instruction that any of the virtual CPUs
executes (``-icount``). All of them share one budget: `n` busy CPUs each execute one instruction in
``n * 2**shift`` ns, and a CPU that halts leaves its share to the others. What happens then depends on nothing
outside, so that two executions are alike to the last bit.

The virtual CPUs take turns, each for the time until the machine's next timer is due over their number. With
the timers of a kernel alone a round takes up to some milliseconds, and an interrupt waits until the turn of
its CPU comes: real CPUs, all of which execute at once, know no such delay. So there is a timer that does
nothing but end turns, and that the guest knows nothing of.

References
----------
.. [1] QEMU, docs/devel/tcg-icount.rst.
"""

from __future__ import annotations

from typing import Final

from steelyard.errors import UsageError

INSTRUCTION_NS: Final = 8
"""What an instruction takes on each busy virtual CPU [ns], unless another time is asked for: 125 million per
second. Fewer instructions per virtual second cost less; with more of them the kernel's own work is a smaller
part of the whole, as it is on machines, which execute thousands of millions."""
MAX_CPUS: Final = 64
ROUND_US: Final = 100
"""Every virtual CPU has had its turn after so much time, or earlier where a timer is due [us]. With 20 or 50
latencies differ by 1 % from those with 100, and a guest takes a quarter to a half longer."""


def clock_shift(cpus: int, at_most_ns: int = INSTRUCTION_NS) -> int:
    """Give the shift with which each of so many busy virtual CPUs is just fast enough.

    Parameters
    ----------
    cpus : int
        Virtual CPUs, 1 to 64.
    at_most_ns : int
        What an instruction may take on each of them [ns]. No shift is negative, so that it takes at least as
        many nanoseconds as there are CPUs.

    Raises
    ------
    UsageError
        If there are no CPUs or too many, or an instruction is to take no time.

    Examples
    --------
    >>> [clock_shift(cpus) for cpus in (1, 2, 4, 8)]
    [3, 2, 1, 0]
    >>> [clock_shift(2, at_most_ns) for at_most_ns in (1, 2, 3, 4, 8)]
    [0, 0, 0, 1, 2]
    """
    if at_most_ns < 1:
        message = f"{at_most_ns} ns per instruction; allowed: from 1"
        raise UsageError(message, code="usage.guest-clock")
    if not 1 <= cpus <= MAX_CPUS:
        message = f"{cpus} virtual CPUs; allowed: 1 to {MAX_CPUS}"
        raise UsageError(message, code="usage.guest-cpus")
    return max((at_most_ns // cpus).bit_length() - 1, 0)


def clock_arguments(cpus: int, at_most_ns: int = INSTRUCTION_NS) -> list[str]:
    """Give the emulator's arguments for time that is counted in instructions, and short turns.

    The timer that ends turns belongs to a filter of packets on a network that nobody is connected to.

    Raises
    ------
    UsageError
        As `clock_shift`.

    Examples
    --------
    >>> clock_arguments(2)[:2]
    ['-icount', 'shift=2,sleep=off']
    """
    shift = clock_shift(cpus, at_most_ns)
    words = ["-icount", f"shift={shift},sleep=off"]
    words += ["-netdev", "hubport,id=nowhere,hubid=0"]
    return [*words, "-object", f"filter-buffer,id=round,netdev=nowhere,interval={ROUND_US}"]


def instruction_ns(cpus: int, at_most_ns: int = INSTRUCTION_NS) -> int:
    """Give how long one instruction takes on each of so many virtual CPUs when all are busy [ns].

    Examples
    --------
    >>> [instruction_ns(cpus) for cpus in (1, 2, 3, 4, 8, 16)]
    [8, 8, 6, 8, 8, 16]
    >>> [instruction_ns(cpus, 1) for cpus in (1, 2, 4, 8)]
    [1, 2, 4, 8]
    """
    return cpus << clock_shift(cpus, at_most_ns)


def clock_for_some(busy: int, cpus: int, at_most_ns: int = INSTRUCTION_NS) -> int:
    """Give the `at_most_ns` of a guest that is fast enough while only a part of its CPUs are busy [ns].

    Parameters
    ----------
    busy : int
        Virtual CPUs whose speed is asked for.
    cpus : int
        Virtual CPUs of the guest, 1 to 64.
    at_most_ns : int
        What an instruction may take on each of the busy ones while the others halt [ns].

    Examples
    --------
    >>> [clock_shift(3, clock_for_some(2, 3, at_most_ns)) for at_most_ns in (1, 4, 8)]
    [0, 1, 2]
    """
    return cpus << clock_shift(busy, at_most_ns)


def work_iterations(
    work_us: float, instructions_per_iteration: float, cpus: int, at_most_ns: int = INSTRUCTION_NS
) -> int:
    """Give the length of a loop that takes a given time on a virtual CPU when all of them are busy.

    A guest cannot measure it itself: a loop that is alone has the shares of the idle CPUs, too.

    Parameters
    ----------
    work_us : float
        Time [us].
    instructions_per_iteration : float
        Instructions of one iteration of the loop, counted in its machine code.
    cpus : int
        Virtual CPUs of the guest.
    at_most_ns : int
        As `clock_shift`.

    Examples
    --------
    One millisecond of a loop of seven instructions:

    >>> work_iterations(1000, 7, cpus=2)
    17857
    """
    return max(round(work_us * 1000 / (instruction_ns(cpus, at_most_ns) * instructions_per_iteration)), 1)
