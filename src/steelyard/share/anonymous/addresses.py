"""Addresses of hosts and home folders in a text: what tells where something was run, and by whom.

The rule for four numbers with dots, which may be an address or a version: they are an address if each is at
most 255 and has no zero before it, unless a word of versions stands directly before (``version 1.2.3.4``,
``v1.2.3.4``, ``jdk-17.0.9.8``, ``==1.2.3.4``). In the private networks 192.168, 172.16 to 172.31 and 169.254
they are one even then. Loopback, the unspecified address and those for documentation name nobody.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_OPTION: Final = r"(?<=-\w)(?<!\w-\w)"
"""Behind an option of one letter."""

_IPV4: Final = re.compile(rf"(?:(?<![\w.])|{_OPTION})(\d{{1,3}}(?:\.\d{{1,3}}){{3}})(?!\w|\.\d)")
_VERSION_BEFORE: Final = re.compile(
    r"(?:\b(?:version|ver|v|release|build)[ =:]?|[A-Za-z][\w+.]*-|==|[<>~!]=)$", re.IGNORECASE
)
_ALWAYS: Final = tuple(map(ipaddress.IPv4Network, ("192.168.0.0/16", "172.16.0.0/12", "169.254.0.0/16")))
_OF_NOBODY_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        ("0.0.0.0/32", "127.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    )
)
"""SOURCE: RFC 1122 (loopback), RFC 5737 (documentation)."""

_IPV6: Final = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{4}:[0-9A-Fa-f:.]*:?[0-9A-Fa-f]*(?![\w:])")
"""Addresses in use begin with four digits (2..., 3..., fc, fd, fe8, ff); `1::2` may be a slice of Python."""

_OF_NOBODY_6: Final = tuple(map(ipaddress.IPv6Network, ("2001:db8::/32", "3fff::/20")))
"""SOURCE: RFC 3849, RFC 9637 (documentation)."""

_MAC: Final = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}([:-])[0-9A-Fa-f]{2}(?:\1[0-9A-Fa-f]{2}){4}(?![\w:-])")
_MAC_OF_NOBODY: Final = re.compile(r"00005e0053..|0{12}|f{12}")
"""SOURCE: RFC 7042 (documentation)."""

_HOMES: Final = re.compile(r"(?:/home|/Users)/([\w.-]+)|(?<![\w/.~-])~([A-Za-z_][\w.-]*)")
_OF_ROOT: Final = re.compile(rf"(?:(?<![\w./~-])|{_OPTION})/root(?:/[\w.-]+)+")


def addresses_in(text: str) -> Iterator[str]:
    """Give the addresses of hosts in a text: of IPv4, of IPv6, and of network cards.

    Examples
    --------
    >>> list(addresses_in("run 10.1.2.3 fe80::5054:ff:fe12:3456 52:54:00:12:34:56 v1.2.3.4 127.0.0.1"))
    ['10.1.2.3', 'fe80::5054:ff:fe12:3456', '52:54:00:12:34:56']
    """
    yield from (match[1] for match in _IPV4.finditer(text) if _is_host_4(match[1], text[: match.start()]))
    yield from (match[0] for match in _IPV6.finditer(text) if _is_host_6(match[0]))
    yield from (match[0] for match in _MAC.finditer(text) if _is_card(match[0]))


def _is_host_4(found: str, before: str) -> bool:
    try:
        address = ipaddress.IPv4Address(found)
    except ValueError:
        return False
    if any(address in network for network in _OF_NOBODY_4):
        return False
    is_private = any(address in network for network in _ALWAYS)
    return is_private or _VERSION_BEFORE.search(before[-80:]) is None


def _is_host_6(found: str) -> bool:
    try:
        address = ipaddress.IPv6Address(found)
    except ValueError:
        return False
    return not any(address in network for network in _OF_NOBODY_6)


def _is_card(found: str) -> bool:
    digits = found.replace(":", "").replace("-", "").casefold()
    is_date = "-" in found and digits.isdecimal()
    return not is_date and _MAC_OF_NOBODY.fullmatch(digits) is None


def homes_in(text: str) -> Iterator[str]:
    """Give whose home folders a text names, and paths in the one of root.

    Examples
    --------
    >>> list(homes_in("/home/ada/x ~bob/y /root/lab/z ~/x /opt/root/x"))
    ['ada', 'bob', '/root/lab/z']
    """
    yield from (match[1] or match[2] for match in _HOMES.finditer(text))
    yield from (match[0] for match in _OF_ROOT.finditer(text))
