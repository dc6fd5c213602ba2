"""The addresses of one model: the next call goes to the least busy one that works, or where its prompt's beginning is.

Covers: noticing which of several cannot be reached, and which can again; the reply or the error carries that to the
limiter, which may be in another process; addresses that join and leave. Does not cover: limits and breakers of a model
as a whole (models.endpoint), or where addresses come from (models.address_list).

Where calls are to go by their prompts' beginnings, each beginning has an order of all addresses (rendezvous hashing:
the same in every process, and an address that joins or leaves moves only its own share). A call goes to the first in
that order that works and has not clearly more in flight than the others: a quarter more than the mean, or two more, as
this process sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from headrace.errors import NetworkAway, ProviderUnavailable
from headrace.models.address_list import AddressList
from headrace.models.provider import AddressChange, AllAddressesAway, Request
from headrace.models.redaction import SENT

_AVOIDED_S = 5.0  # how long an address that failed is only used when there is no other
_MOST_OF_MEAN = 1.25  # calls in flight at the address that a prompt's beginning belongs to
_LEAST_MORE = 2
_LONG_PROMPT = 4_000  # characters: a document rather than a question
_BEGINNING = 1_000  # characters of it
_MASK = (1 << 64) - 1


class Address:
    """One address. `takes_schema` is False once it has refused a schema; `is_away` where the latest call did not
    reach it. `seed` is its part in the order that a prompt's beginning gives.
    """

    __slots__ = ("avoided_until_s", "base_url", "in_flight", "is_away", "proxy", "seed", "shown", "takes_schema", "url")

    def __init__(self, base_url: str, path: str) -> None:
        before, mark, query = base_url.partition("?")
        before = before.rstrip("/").removesuffix(f"/{path}")  # some services tell the whole address
        self.base_url = base_url
        self.url = URL(f"{before}/{path}{mark}{query}")
        self.shown = before
        self.proxy = _proxy_for(self.url)
        self.seed = _hashed(str(self.url))
        self.in_flight = 0
        self.avoided_until_s = 0.0
        self.takes_schema = True
        self.is_away = False

    def is_avoided(self, now_s: float) -> bool:
        """Whether it is asked only where there is no other: it has just failed, or was not reached and one call is
        trying it already. Others would wait as long as that one for a machine that is gone.
        """
        return self.avoided_until_s > now_s or (self.is_away and self.in_flight > 0)


class Addresses:
    """All addresses of one model, in one process."""

    def __init__(self, base_urls: tuple[str, ...], path: str, clock: Callable[[], float]) -> None:
        self._path = path
        self._known = AddressList(base_urls)
        self._urls = base_urls
        self._all = [Address(base_url, path) for base_url in base_urls]
        self._clock = clock
        self._turn = 0
        self._changes: dict[str, AddressChange] = {}  # the latest of each address

    def __len__(self) -> int:
        return len(self._all)

    def follow(self, known: AddressList) -> None:
        """Use these addresses from now on, as they are at each call."""
        self._known = known

    def pick(self, tried: list[Address], beginning: int | None = None) -> Address | None:
        """The next address for a call that these failed for; None where no other is left. `beginning` is of its prompt
        (`beginning_of`), where that decides.
        """
        if self._known.urls is not self._urls:
            self._renew()
        if len(self._all) == 1:
            return None if self._all[0] in tried else self._all[0]
        now_s = self._clock()
        if beginning is not None and (own := self._own(beginning, tried, now_s)) is not None:
            return own
        self._turn = (self._turn + 1) % max(1, len(self._all))  # among equals, take turns
        turned = self._all[self._turn :] + self._all[: self._turn]
        left = [address for address in turned if address not in tried]
        return min(left, key=lambda one: (one.is_avoided(now_s), one.in_flight), default=None)

    def answered(self, address: Address) -> list[AddressChange] | None:
        """Notes that a call reached the address; returns the changes since the last time, None where there are none."""
        if address.is_away:
            address.is_away = False
            self._changes[address.shown] = AddressChange(address.shown)
        return self._taken_changes() if self._changes else None

    def failed(self, address: Address, error: ProviderUnavailable) -> None:
        """Avoids the address for a while, and notes that it is away where it was not reached and there are others. One
        that has left is nobody's concern.
        """
        address.avoided_until_s = self._clock() + _AVOIDED_S
        is_news = isinstance(error, NetworkAway) and len(self._all) > 1 and not address.is_away
        if is_news and address in self._all:
            address.is_away = True
            self._changes[address.shown] = AddressChange(address.shown, error.message)

    def all_away(self, model: str) -> AllAddressesAway:
        return AllAddressesAway(
            f"{model}: none of its {len(self._all)} addresses can be reached", self._taken_changes()
        )

    def _own(self, beginning: int, tried: list[Address], now_s: float) -> Address | None:
        """The address that a prompt's beginning belongs to; the next in its order where that one is not to be asked."""
        working = [address for address in self._all if not address.is_avoided(now_s)]
        mean = (1 + sum([address.in_flight for address in working])) / max(1, len(working))
        most = max(mean * _MOST_OF_MEAN, mean + _LEAST_MORE)
        free = [address for address in working if address.in_flight < most and address not in tried]
        return max(free, key=lambda address: _weight(address.seed ^ beginning), default=None)

    def _renew(self) -> None:
        """Take the addresses that are known now. Those that stay are as they were; calls to those that left end."""
        self._urls = self._known.urls
        before = {address.base_url: address for address in self._all}
        self._all = [before.get(base_url) or Address(base_url, self._path) for base_url in self._urls]
        stayed = {address.shown for address in self._all}
        self._changes = {shown: change for shown, change in self._changes.items() if shown in stayed}

    def _taken_changes(self) -> list[AddressChange]:
        taken, self._changes = list(self._changes.values()), {}
        return taken


def beginning_of(request: Request) -> int:
    """A number for what a prompt begins with, the same in every process.

    That is the system prompt: the persona, which all calls of one agent share. Where there is none, or where a document
    follows, it is the first part of the user prompt too: calls about one document share that.
    """
    system, prompt = request.system_prompt, request.user_prompt
    is_long = not system or len(prompt) > _LONG_PROMPT
    return _hashed(f"{system}\n\n{prompt[:_BEGINNING]}" if is_long else system)


def _hashed(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def _weight(mixed: int) -> int:
    """A random-looking number from 64 bits: two rounds, since one leaves neighbours near each other."""
    mixed = mixed * 0x9E3779B97F4A7C15 & _MASK
    return (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 & _MASK


def _proxy_for(url: URL) -> str | None:
    """The environment's proxy, looked up once: aiohttp would do it for every call, in a thread."""
    proxy = getproxies().get(url.scheme)
    if proxy and (password := URL(proxy).password):
        SENT.add(password)
    return proxy if proxy and not proxy_bypass(url.host or "") else None
