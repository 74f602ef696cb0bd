"""What a request must fulfil before any page sees it: host, origin, token, size."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import socket
import threading
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from collections.abc import Container

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_QUERY: Final = 2048
"""Bytes of a query; the longest that the pages write are a tenth of it."""
LONGEST_PATH: Final = 512
MOST_FIELDS: Final = 32
FEWEST_TOKEN_CHARACTERS: Final = 16

PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer` a browser says `Origin: null` of the page's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_SAFE: Final = frozenset({"GET", "HEAD"})
_DAY_S: Final = 86_400


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def own_names() -> set[str]:
    """Give the names of this machine; its full name is added when a name server has said it."""
    names = {"localhost", socket.gethostname().lower()}
    threading.Thread(target=lambda: names.add(socket.getfqdn().lower()), daemon=True).start()
    return names


def is_own_host(header: str, port: int, names: Container[str]) -> bool:
    """Whether a request was addressed to this server by a name that no stranger can point here.

    A page of a stranger reaches a server of this machine if the stranger's own name resolves to its address
    (DNS rebinding). Addresses in digits resolve to nothing else; of names, ours alone count.

    Examples
    --------
    >>> [is_own_host(header, 80, {"localhost"}) for header in ("127.0.0.1:80", "localhost", "[::1]:80")]
    [True, True, True]
    >>> [is_own_host(header, 80, {"localhost"}) for header in ("evil.example", "127.0.0.1:9")]
    [False, False]
    """
    try:
        parts = urlsplit(f"//{header}")
        name, found = parts.hostname, parts.port
    except ValueError:
        return False
    if name is None or parts.username is not None or parts.path or parts.query or parts.fragment:
        return False
    if (80 if found is None else found) != port:
        return False
    if name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Lets through what is addressed to this server, from its own pages, small, and entitled.

    Parameters
    ----------
    application : ASGI application
        The pages.
    port : int
        Port the server listens on.
    token : str or None
        What a reader must show once; ``None`` asks for nothing.
    """

    def __init__(self, application: ASGIApp, port: int, token: str | None) -> None:
        self._application = application
        self._port = port
        self._token = token
        self._names = own_names()
        self._cookie_name = f"steelyard-{port}"
        # A cookie goes to every port of a host: it must not be the token itself.
        key = secrets.token_bytes(32)
        self._cookie = hmac.new(key, (token or "").encode(), hashlib.sha256).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return

        async def hardened(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _ALWAYS.items():
                    headers[name] = value
                headers.setdefault("Content-Security-Policy", PAGE_POLICY)
                headers.setdefault("Cache-Control", "no-cache, private")
            await send(message)

        refusal = self._refusal(scope) or self._admission(scope)
        await (refusal or self._application)(scope, receive, hardened)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        query: bytes = scope["query_string"]
        if not is_own_host(headers.get("host", ""), self._port, self._names):
            return _said(421, "this server is not reached by that name; open the address that it printed")
        if len(scope["path"]) > LONGEST_PATH or len(query) > LONGEST_QUERY:
            return _said(414, f"the query is too long: at most {LONGEST_QUERY} bytes")
        if query.count(b"&") >= MOST_FIELDS:
            return _said(400, f"the query has too many fields: at most {MOST_FIELDS}")
        if scope["method"] not in _SAFE | {"POST"}:
            return _said(405, "allowed: GET, HEAD, POST")
        return None if self._is_own_origin(scope["method"], headers) else _said(403, _FOREIGN)

    def _is_own_origin(self, method: str, headers: Headers) -> bool:
        """Whether the reader's own browser asks from our pages, or the reader opens one from elsewhere."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin != f"http://{headers['host']}":
            return False
        if method not in _SAFE:
            return origin is not None and site in {None, "same-origin"}
        if site in {None, "same-origin", "none"}:
            return True
        # A link on another page may lead here; nothing else of another page may.
        return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"

    def _admission(self, scope: Scope) -> PlainTextResponse | RedirectResponse | None:
        """Ask for the token: once in the address, then by the cookie that it is exchanged for."""
        if self._token is None:
            return None
        headers = Headers(scope=scope)
        fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        shown = next((value for name, value in fields if name == "token"), None)
        if shown is not None and hmac.compare_digest(shown.encode(), self._token.encode()):
            rest = urlencode([(name, value) for name, value in fields if name != "token"])
            path = "/" + scope["path"].lstrip("/")
            answer = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
            # With `strict`, whoever follows a link from another site would be asked for the token again; what
            # changes something asks for the origin anyway.
            answer.set_cookie(
                self._cookie_name, self._cookie, max_age=_DAY_S, httponly=True, samesite="lax", path="/"
            )
            return answer
        if hmac.compare_digest(self._shown_cookie(headers).encode(), self._cookie.encode()):
            return None
        return _said(401, "open the address with `?token=...` that `steelyard serve` printed")

    def _shown_cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie_name)
        except CookieError:
            return ""
        return "" if found is None else found.value


_FOREIGN: Final = "this request comes from a page of another site"


def _said(status: int, reason: str) -> PlainTextResponse:
    return PlainTextResponse(f"cannot show this page: {reason}\n", status_code=status)
