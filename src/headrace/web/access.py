"""Who may come in: the token, the cookie it is exchanged for, the names a request may call the server by, and the
headers that every response has. Pure.

A page in another tab of the same browser can send requests to a loopback address. It does not know the token, cannot
read the cookie, and its Origin is not ours; a name of its own that it points to this address (DNS rebinding) is not
among the hosts that are answered. A form that steers carries a proof made of the token, which no other page has.
Does not cover: HTTP itself (web.page_server).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from dataclasses import dataclass
from urllib.parse import urlsplit

from headrace.errors import OptionError

TOKEN_VARIABLE = "HEADRACE_VIEW_TOKEN"
_SHORTEST_TOKEN = 16
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self';"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with "no-referrer", Chromium calls the origin of our own forms "null"
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The address that is listened at, and the token of whoever may come in."""

    host: str
    port: int
    token: str

    @property
    def address(self) -> str:
        """What the user opens; it has the token in it."""
        return self.address_of("/")

    def address_of(self, path: str) -> str:
        return f"http://{_in_url(self.host)}:{self.port}{path}?token={self.token}"

    @property
    def cookie_name(self) -> str:
        return f"headrace_{self.port}"  # cookies do not tell ports apart

    @property
    def cookie(self) -> str:
        return self._derived("cookie")

    @property
    def form_proof(self) -> str:
        return self._derived("form")

    def is_token(self, given: str) -> bool:
        return _equal(given, self.token)

    def is_cookie(self, given: str) -> bool:
        return _equal(given, self.cookie)

    def is_form_proof(self, given: str) -> bool:
        return _equal(given, self.form_proof)

    def is_own_host(self, given: str) -> bool:
        """Whether a Host header names this server. Beyond loopback an address in figures will do: no name of another's
        can be pointed at it.
        """
        given = given.lower()
        if is_loopback(self.host):
            return given in {f"{name}:{self.port}" for name in (*_LOOPBACK_NAMES, _in_url(self.host))}
        return given == f"{self.host.lower()}:{self.port}" or self._is_figures(given)

    def is_own_origin(self, given: str, host: str) -> bool:
        """Whether an Origin header is that of the page itself, as the same request's Host names it."""
        return given.lower() == f"http://{host.lower()}"

    def _is_figures(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            return parts.port == self.port and bool(ipaddress.ip_address(parts.hostname or ""))
        except ValueError:
            return False

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def checked_token(host: str, given: str | None) -> str:
    """The token to use: the one of the user, or a new one, which will do on loopback only."""
    if given is None:
        if not is_loopback(host):
            raise OptionError(
                f"--host {host} can be reached from other machines, and there is no token of yours.",
                fix=f"Set {TOKEN_VARIABLE} to a secret of at least {_SHORTEST_TOKEN} letters, or leave --host out and"
                " use an SSH tunnel.",
            )
        return secrets.token_urlsafe(24)
    if len(given) < _SHORTEST_TOKEN or not (given.isascii() and given.replace("-", "").replace("_", "").isalnum()):
        raise OptionError(
            f"{TOKEN_VARIABLE} must have at least {_SHORTEST_TOKEN} letters, figures, - or _.",
            fix="For example: python -c 'import secrets; print(secrets.token_urlsafe(24))'",
        )
    return given


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _equal(one: str, other: str) -> bool:
    # A header may hold bytes that are no text.
    return hmac.compare_digest(one.encode(errors="surrogateescape"), other.encode(errors="surrogateescape"))
