"""Shaping an interface with tc, and looking afterwards at what the kernel really does.

tc prints "Specified qdisc kind is unknown" where the kernel lacks a mechanism, and scripts overlook it;
so what counts is what ``tc qdisc show`` says afterwards.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from steelyard.errors import CapabilityError
from steelyard.run.isolation.attempt import attempt
from steelyard.studies.communication.transport.link_options import RATE_UNITS, Shaper
from steelyard.studies.communication.transport.link_truth import ETHERNET_HEADER_BYTES, MTU_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steelyard.studies.communication.transport.link_options import LinkOptions

TIMER_SLACK_US: Final = 50
"""The bucket refills while the kernel's timer is late; what a full bucket cannot hold is lost for good, and
the link is slower than stated. SOURCE: own measurement on a busy virtual machine, 1 Gbit/s: 26 us lose
1.1 %, 131 us lose 0.5 %."""
PACKET_US: Final = 100
"""Time of the largest packet on the wire. A virtual machine's timer needs about 25 us per packet; with one
packet per frame a link of 1 Gbit/s gets half its rate. SOURCE: own measurement, 1 to 44 frames per packet."""
MOST_FRAMES: Final = 44
"""SOURCE: a packet of IP has at most 65535 bytes."""
LIMIT_BYTES: Final = 16 * 1024 * 1024
"""Room of the queue: above the largest window of TCP, so that nothing is dropped."""
LIMIT_FRAMES: Final = 20_000
FRAME_BYTES: Final = MTU_BYTES + ETHERNET_HEADER_BYTES
QUANTUM_BYTES: Final = 60_000


@dataclass(frozen=True, slots=True)
class Absence:
    """Something that was asked for and that this host cannot do.

    Parameters
    ----------
    name : str
        Capability, e.g. ``netem``.
    reason : str
        What the host said, and what follows.
    """

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Shaped:
    """What an interface does now, read back from the kernel.

    Parameters
    ----------
    shaper : Shaper
        The mechanism in use.
    rate_bits_per_s, burst_bytes : int
        Its rate and bucket.
    packet_frames : int
        Largest packet that goes into the shaper, in frames.
    delay_ns : int
        Delay of outgoing frames, 0 without netem.
    loss_percent : float
        Loss of outgoing frames, 0 without netem.
    missing : tuple of Absence
        What was asked for and is not there.
    """

    shaper: Shaper
    rate_bits_per_s: int
    burst_bytes: int
    packet_frames: int
    delay_ns: int
    loss_percent: float
    missing: tuple[Absence, ...] = ()

    @property
    def credit_bytes(self) -> int:
        """What passes at once after a pause: the bucket, and with `Shaper.HTB` one packet on credit."""
        return self.burst_bytes + (self.packet_frames * FRAME_BYTES if self.shaper is Shaper.HTB else 0)


def bucket_us(options: LinkOptions) -> int:
    """Give the size of the token bucket as time at the rate [us].

    tc keeps the bucket in whole microseconds, so this is what can be had: two frames, or what passes
    while a timer is late, or as much as was asked for.

    Examples
    --------
    >>> from steelyard.studies.communication.transport.link_options import LinkOptions
    >>> bucket_us(LinkOptions(1_000_000_000)), bucket_us(LinkOptions(100_000_000))
    (50, 243)
    """
    if options.burst_bytes is not None:
        return -(-options.burst_bytes * 8_000_000 // options.rate_bits_per_s)
    two_frames = -(-2 * FRAME_BYTES * 8_000_000 // options.rate_bits_per_s)
    return max(TIMER_SLACK_US, two_frames)


def packet_frames(options: LinkOptions) -> int:
    """Give the largest packet [frames]: what takes 100 us at the rate, from one frame to 44.

    Examples
    --------
    >>> from steelyard.studies.communication.transport.link_options import LinkOptions
    >>> [packet_frames(LinkOptions(rate)) for rate in (10**8, 10**9, 10**10)]
    [1, 8, 44]
    """
    fitting = PACKET_US * options.rate_bits_per_s // (FRAME_BYTES * 8_000_000)
    return min(max(fitting, 1), MOST_FRAMES)


def shape(inside: Sequence[str], interface: str, options: LinkOptions) -> Shaped:
    """Shape what an interface sends; give what the kernel says it does.

    That equals what was asked for but for `Shaped.missing`. The words `inside` bring a command into the
    interface's namespace.

    Raises
    ------
    CapabilityError
        If the kernel has no shaper, or does something else than it was asked to do.
    """
    wants_netem = options.delay_ns > 0 or options.loss_percent > 0
    missing: tuple[Absence, ...] = ()
    root = ["root"]
    if wants_netem:
        refused = _add_netem(inside, interface, options)
        if refused is None:
            root = ["parent", "1:1"]
        else:
            missing = _missing(options, refused)
    # Frames wait for the rate behind netem, or at the root: both kinds go out in order.
    attempt([*inside, "ip", "link", "set", interface, "gso_max_segs", str(packet_frames(options))])
    refusals = []
    for shaper in (options.shaper,) if options.shaper else tuple(Shaper):
        refused = _add_shaper(inside, interface, root, (shaper, options))
        if refused is None:
            return _verified(_read(inside, interface, shaper, missing), options)
        refusals.append(f"{shaper}: {refused}")
    message = f"the kernel does not shape an interface: {'; '.join(refusals)}"
    hint = "a kernel with CONFIG_NET_SCH_TBF or CONFIG_NET_SCH_HTB; or leave out `--link`"
    raise CapabilityError(message, hint=hint, code="capability.shaper")


def _missing(options: LinkOptions, reason: str) -> tuple[Absence, ...]:
    found = []
    if options.delay_ns:
        found.append(Absence("delay", f"netem: {reason}; the link adds none"))
    if options.loss_percent:
        found.append(Absence("loss", f"netem: {reason}; the link loses nothing"))
    return tuple(found)


def _add_netem(inside: Sequence[str], interface: str, options: LinkOptions) -> str | None:
    """Put netem at the root; give the reason if it is not there afterwards."""
    under_way = options.rate_bits_per_s * options.delay_ns // (FRAME_BYTES * 8 * 1_000_000_000)
    words = ["root", "handle", "1:", "netem", "limit", str(LIMIT_FRAMES + 2 * under_way)]
    words += ["delay", f"{Decimal(options.delay_ns) / 1000:f}us"]
    if options.loss_percent:
        words += ["loss", f"{options.loss_percent}%"]
    return _add(inside, interface, words, "netem")


def _add_shaper(
    inside: Sequence[str], interface: str, root: list[str], wanted: tuple[Shaper, LinkOptions]
) -> str | None:
    shaper, options = wanted
    rate = f"{options.rate_bits_per_s}bit"
    # Rounded up: tc rounds the time of the bucket down to a microsecond.
    burst = str(-(-bucket_us(options) * options.rate_bits_per_s // 8_000_000))
    if shaper is Shaper.TBF:
        words = [*root, "handle", "2:", "tbf", "rate", rate, "burst", burst, "limit", str(LIMIT_BYTES)]
        return _add(inside, interface, words, "tbf")
    reason = _add(inside, interface, [*root, "handle", "2:", "htb", "default", "1"], "htb")
    if reason is None:
        command = ["tc", "class", "add", "dev", interface, "parent", "2:", "classid", "2:1", "htb"]
        command += [
            "rate",
            rate,
            "ceil",
            rate,
            "burst",
            burst,
            "cburst",
            burst,
            "quantum",
            str(QUANTUM_BYTES),
        ]
        added = attempt([*inside, *command])
        if not added.succeeded:
            return added.last_words
        # By itself the class keeps no more packets than the interface, which a window of TCP exceeds.
        queue = ["parent", "2:1", "handle", "3:", "bfifo", "limit", str(LIMIT_BYTES)]
        reason = _add(inside, interface, queue, "bfifo")
    return reason


def _add(inside: Sequence[str], interface: str, words: list[str], kind: str) -> str | None:
    said = attempt([*inside, "tc", "qdisc", "add", "dev", interface, *words])
    if any(each["kind"] == kind for each in _show(inside, interface)):
        return None
    if said.succeeded:
        return f"`tc` reported success, but there is no {kind}"
    return said.last_words.removeprefix("Error: ").rstrip(".")


def _show(inside: Sequence[str], interface: str) -> list[dict[str, Any]]:
    shown = attempt([*inside, "tc", "-s", "-j", "qdisc", "show", "dev", interface])
    try:
        found: list[dict[str, Any]] = json.loads(shown.output)
    except ValueError as error:
        message = f"`tc -s -j qdisc show dev {interface}` gave no answer: {shown.last_words}"
        raise CapabilityError(message, hint="apt-get install iproute2", code="capability.tc") from error
    return found


def _read(inside: Sequence[str], interface: str, shaper: Shaper, missing: tuple[Absence, ...]) -> Shaped:
    """Read back what the kernel does."""
    found = {each["kind"]: each["options"] for each in _show(inside, interface)}
    netem = found.get("netem", {})
    # tc prints the delay in seconds and the loss as a ratio.
    delay_ns = round(float(netem.get("delay", {}).get("delay", 0)) * 1e9)
    loss_percent = float(netem.get("loss-random", {}).get("loss", 0)) * 100
    if shaper is Shaper.TBF:
        rate, burst = int(found["tbf"]["rate"]) * 8, int(found["tbf"]["burst"])
    else:
        rate, burst = _read_htb(attempt([*inside, "tc", "class", "show", "dev", interface]).output)
    return Shaped(shaper, rate, burst, _read_frames(inside, interface), delay_ns, loss_percent, missing)


def _read_frames(inside: Sequence[str], interface: str) -> int:
    shown = attempt([*inside, "ip", "-d", "-j", "link", "show", interface])
    try:
        return int(json.loads(shown.output)[0]["gso_max_segs"])
    except (ValueError, KeyError, IndexError, TypeError):
        return MOST_FRAMES


def _read_htb(text: str) -> tuple[int, int]:
    """Read rate [bit/s] and bucket [B] of the class, which tc prints as text alone.

    Examples
    --------
    >>> _read_htb("class htb 2:1 root prio 0 rate 1500Kbit ceil 1500Kbit burst 3125b cburst 3125b")
    (1500000, 3125)
    """
    matched = re.search(r"class htb 2:1 .*?\brate (\d+)([A-Z]?)bit .*?\bburst (\d+)([KM]?)b", text)
    if matched is None:
        return 0, 0
    rate = int(matched[1]) * RATE_UNITS[f"{matched[2].lower()}bit"]
    return rate, int(matched[3]) * {"": 1, "K": 1024, "M": 1024 * 1024}[matched[4]]


def _verified(found: Shaped, options: LinkOptions) -> Shaped:
    """Refuse a link that is not what it claims to be.

    tc keeps the bucket in microseconds at the rate and prints it in units of 1 kB above some size; the
    rate it keeps in bytes per second.
    """
    wanted = bucket_us(options) * options.rate_bits_per_s / 8_000_000
    tolerance = max(2 * options.rate_bits_per_s / 8_000_000, 1.0, wanted * 1e-3)
    problems = []
    if abs(found.rate_bits_per_s - options.rate_bits_per_s) >= 8:  # noqa: PLR2004 - one byte per second
        problems.append(f"rate {found.rate_bits_per_s} bit/s instead of {options.rate_bits_per_s}")
    if found.packet_frames != packet_frames(options):
        problems.append(f"packets of {found.packet_frames} frames instead of {packet_frames(options)}")
    if abs(found.burst_bytes - wanted) > tolerance:
        problems.append(f"burst {found.burst_bytes} B instead of {wanted:.0f}")
    absent = {each.name for each in found.missing}
    if "delay" not in absent and abs(found.delay_ns - options.delay_ns) > 1000:  # noqa: PLR2004 - 1 us
        problems.append(f"delay {found.delay_ns} ns instead of {options.delay_ns}")
    if "loss" not in absent and abs(found.loss_percent - options.loss_percent) > 1e-3:  # noqa: PLR2004
        problems.append(f"loss {found.loss_percent} % instead of {options.loss_percent}")
    if problems:
        message = f"the kernel did not apply the settings: {', '.join(problems)}"
        hint = "`tc -s qdisc show` inside the namespace says more; try another rate or burst"
        raise CapabilityError(message, hint=hint, code="capability.shaper")
    return found
