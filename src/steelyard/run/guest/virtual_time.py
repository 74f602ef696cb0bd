"""Time that is counted in instructions: how fast the virtual CPUs are then.

QEMU can let its virtual clock advance by ``2**shift`` ns with each instruction that any of the virtual CPUs
executes (``-icount``). All of them share one budget: `n` busy CPUs each execute one instruction in
``n * 2**shift`` ns, and a CPU that halts leaves its share to the others. What happens then depends on nothing
outside, so that two executions are alike to the last bit.

References
----------
.. [1] QEMU, docs/devel/tcg-icount.rst.
"""

from __future__ import annotations

from typing import Final

from steelyard.errors import UsageError

NS_PER_CPU: Final = 8
"""Each of the busy virtual CPUs executes one instruction in 8 ns (125 million per second) where the shift can
be chosen so: 2 CPUs shift 2, 4 CPUs shift 1, 8 CPUs shift 0. Fewer instructions per virtual second cost less,
more of them make the kernel's own work a smaller part of the whole."""
MAX_CPUS: Final = 16


def clock_shift(cpus: int) -> int:
    """Give the shift that makes each of so many busy virtual CPUs execute one instruction in 8 ns.

    Parameters
    ----------
    cpus : int
        Virtual CPUs, 1 to 16; above 8 they are slower than that, because no shift is negative.

    Raises
    ------
    UsageError
        If there are none or too many.

    Examples
    --------
    >>> [clock_shift(cpus) for cpus in (1, 2, 4, 8)]
    [3, 2, 1, 0]
    """
    if not 1 <= cpus <= MAX_CPUS:
        message = f"{cpus} virtual CPUs; allowed: 1 to {MAX_CPUS}"
        raise UsageError(message, code="usage.guest-cpus")
    return max((NS_PER_CPU // cpus).bit_length() - 1, 0)


def instruction_ns(cpus: int) -> int:
    """Give how long one instruction takes on each of so many virtual CPUs when all are busy [ns].

    Examples
    --------
    >>> [instruction_ns(cpus) for cpus in (1, 2, 3, 4, 8, 16)]
    [8, 8, 6, 8, 8, 16]
    """
    return cpus << clock_shift(cpus)


def work_iterations(work_us: float, instructions_per_iteration: float, cpus: int) -> int:
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

    Examples
    --------
    One millisecond of a loop of seven instructions:

    >>> work_iterations(1000, 7, cpus=2)
    17857
    """
    return max(round(work_us * 1000 / (instruction_ns(cpus) * instructions_per_iteration)), 1)
