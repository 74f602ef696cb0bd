"""What is true of a shaped link by construction: what fitted bandwidths and delays are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MTU_BYTES: Final = 1500
ETHERNET_HEADER_BYTES: Final = 14
"""SOURCE: IEEE 802.3: two addresses and a type. Preamble, check sum and gap exist on wires only: the kernel
counts the packet with its link header (``qdisc_pkt_len_init`` in net/core/dev.c)."""
IPV4_HEADER_BYTES: Final = 20
"""SOURCE: RFC 791, section 3.1, without options."""
TCP_HEADER_BYTES: Final = 20
"""SOURCE: RFC 9293, section 3.1, without options."""
TIMESTAMPS_BYTES: Final = 12
"""SOURCE: RFC 7323, section 3.2 and appendix A: 10 bytes, filled up to 12."""
BITS_PER_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class LinkTruth:
    """What holds on the link, as verified in the kernel.

    Parameters
    ----------
    rate_bits_per_s : int
        Rate of frames with their Ethernet headers, each direction.
    credit_bytes : int
        After a pause of ``credit_bytes / rate`` this much passes at once.
    delay_ns : int
        Added in each direction; 0 where the kernel cannot add any.
    loss_percent : float
        Frames lost, 0 where the kernel cannot lose any.
    has_timestamps : bool
        Whether TCP sends timestamps, which take 12 bytes of each frame.
    mtu_bytes : int
        Largest packet without the Ethernet header.
    """

    rate_bits_per_s: int
    credit_bytes: int
    delay_ns: int
    loss_percent: float
    has_timestamps: bool = True
    mtu_bytes: int = MTU_BYTES

    @property
    def payload_per_frame_bytes(self) -> int:
        """Payload of a full frame: 1448 bytes at an MTU of 1500 with timestamps."""
        options = TIMESTAMPS_BYTES if self.has_timestamps else 0
        return self.mtu_bytes - IPV4_HEADER_BYTES - TCP_HEADER_BYTES - options

    @property
    def frame_bytes(self) -> int:
        """A full frame as the kernel counts it: 1514 bytes at an MTU of 1500."""
        return self.mtu_bytes + ETHERNET_HEADER_BYTES

    @property
    def payload_bytes_per_s(self) -> float:
        """Bandwidth of the payload of TCP in full frames, one direction [B/s].

        ``rate / 8 * (MTU - 20 - 20 - 12) / (MTU + 14)``: 95.64 % of the rate at an MTU of 1500.

        Examples
        --------
        >>> round(LinkTruth(1_000_000_000, 18362, 0, 0.0).payload_bytes_per_s)
        119550859
        """
        return self.rate_bits_per_s / BITS_PER_BYTE * self.payload_per_frame_bytes / self.frame_bytes

    def fewest_ns(self, payload_bytes: int) -> float:
        """Give the shortest possible time of a message [ns]: the bucket full, nothing under way.

        Every frame but the last is full, and the credit's worth passes at once.
        """
        whole, rest = divmod(payload_bytes, self.payload_per_frame_bytes)
        headers = self.frame_bytes - self.payload_per_frame_bytes
        wire = whole * self.frame_bytes + (rest + headers if rest else 0)
        waiting = max(0, wire - self.credit_bytes)
        return waiting * BITS_PER_BYTE * 1e9 / self.rate_bits_per_s + self.delay_ns
