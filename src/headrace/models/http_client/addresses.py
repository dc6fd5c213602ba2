"""The addresses of one model: the next call goes to the least busy one that works.

Covers: noticing which of several cannot be reached, and which can again; the reply or the error carries that to the
limiter, which may be in another process. Does not cover: limits and breakers of a model as a whole (models.endpoint).
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from headrace.errors import NetworkAway, ProviderUnavailable
from headrace.models.provider import AddressChange, AllAddressesAway
from headrace.models.redaction import SENT

_AVOIDED_S = 5.0  # how long an address that failed is only used when there is no other


class Address:
    """One address. `takes_schema` is False once it has refused a schema; `is_away` where the latest call did not
    reach it.
    """

    __slots__ = ("avoided_until_s", "in_flight", "is_away", "proxy", "shown", "takes_schema", "url")

    def __init__(self, base_url: str, path: str) -> None:
        before, mark, query = base_url.partition("?")
        before = before.rstrip("/").removesuffix(f"/{path}")  # some services tell the whole address
        self.url = URL(f"{before}/{path}{mark}{query}")
        self.shown = before
        self.proxy = _proxy_for(self.url)
        self.in_flight = 0
        self.avoided_until_s = 0.0
        self.takes_schema = True
        self.is_away = False


class Addresses:
    """All addresses of one model, in one process."""

    def __init__(self, base_urls: tuple[str, ...], path: str, clock: Callable[[], float]) -> None:
        self._all = [Address(base_url, path) for base_url in base_urls]
        self._clock = clock
        self._turn = 0
        self._changes: dict[str, AddressChange] = {}  # the latest of each address

    def __len__(self) -> int:
        return len(self._all)

    def pick(self, tried: list[Address]) -> Address | None:
        """The next address for a call that these failed for; None where no other is left."""
        if len(self._all) == 1:
            return None if tried else self._all[0]
        self._turn = (self._turn + 1) % len(self._all)  # among equals, take turns
        now_s = self._clock()
        turned = self._all[self._turn :] + self._all[: self._turn]
        left = [address for address in turned if address not in tried]
        return min(left, key=lambda one: (one.avoided_until_s > now_s, one.in_flight), default=None)

    def answered(self, address: Address) -> list[AddressChange] | None:
        """Notes that a call reached the address; returns the changes since the last time, None where there are none."""
        if address.is_away:
            address.is_away = False
            self._changes[address.shown] = AddressChange(address.shown)
        return self._taken_changes() if self._changes else None

    def failed(self, address: Address, error: ProviderUnavailable) -> None:
        """Avoids the address for a while, and notes that it is away where it was not reached and there are others."""
        address.avoided_until_s = self._clock() + _AVOIDED_S
        if isinstance(error, NetworkAway) and len(self._all) > 1 and not address.is_away:
            address.is_away = True
            self._changes[address.shown] = AddressChange(address.shown, error.message)

    def all_away(self, model: str) -> AllAddressesAway:
        return AllAddressesAway(
            f"{model}: none of its {len(self._all)} addresses can be reached", self._taken_changes()
        )

    def _taken_changes(self) -> list[AddressChange]:
        taken, self._changes = list(self._changes.values()), {}
        return taken


def _proxy_for(url: URL) -> str | None:
    """The environment's proxy, looked up once: aiohttp would do it for every call, in a thread."""
    proxy = getproxies().get(url.scheme)
    if proxy and (password := URL(proxy).password):
        SENT.add(password)
    return proxy if proxy and not proxy_bypass(url.host or "") else None
