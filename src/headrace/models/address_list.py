"""The addresses of a model as they are known now, where they may change while it is called.

    address file ──► FollowedFile, in the controller ──► AddressList ──► the providers of this process
                                                                    └──► SetAddresses ──► workers: an AddressList each

Covers: looking at an address file every second, and telling who must know. The controller alone reads the file: worker
processes are told, since another machine may not have it. Does not cover: what is in the file
(models.http_client.address_file), or which address a call goes to (models.http_client.addresses).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

import msgspec

from headrace.errors import HeadraceError
from headrace.models.http_client.address_file import AddressFile

_LOOK_EVERY_S = 1.0
_MOST_SHOWN = 10

AddressListener: TypeAlias = Callable[[tuple[str, ...]], None]


class AddressList:
    """`urls` is replaced, never changed: a reader compares it with the one it knows."""

    def __init__(self, urls: tuple[str, ...] = ()) -> None:
        self.urls = urls
        self._listeners: list[AddressListener] = []

    def replace(self, urls: Iterable[str]) -> None:
        self.urls = tuple(urls)
        for listener in self._listeners:
            listener(self.urls)

    def listen(self, listener: AddressListener) -> None:
        """Call this with all addresses whenever they have changed."""
        self._listeners.append(listener)

    def unlisten(self, listener: AddressListener) -> None:
        self._listeners.remove(listener)


class FileNews(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at an address file has found: other addresses, or that it cannot be used (`problem` says why), or
    can again. While it cannot be used, the addresses known before stay.
    """

    known: tuple[str, ...]
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    problem: str = ""

    def in_words(self, path: Path) -> str:
        is_one = len(self.known) == 1
        count = "1 address" if is_one else f"{len(self.known):,} addresses"
        if self.problem:
            stay = "stays" if is_one else "stay"
            return f"{self.problem} The {count} known before {stay} in use until the file can be used again."
        changes = [
            f"{_shown(urls)} {'have' if len(urls) > 1 else 'has'} {what}"
            for urls, what in ((self.joined, "joined"), (self.left, "left"))
            if urls
        ]
        return f"{path} has {count} now{': ' * bool(changes)}{'; '.join(changes)}."


def _shown(urls: tuple[str, ...]) -> str:
    """The first of these addresses, without what may stand behind a question mark."""
    more = f" and {len(urls) - _MOST_SHOWN:,} more" if len(urls) > _MOST_SHOWN else ""
    return ", ".join(url.partition("?")[0] for url in urls[:_MOST_SHOWN]) + more


class FollowedFile:
    """An address file that is looked at until `close`; ListError where it cannot be used at the beginning. `tell` hears
    of each change, and once of each problem. Made on the loop whose providers use `known`.
    """

    def __init__(self, file: AddressFile, tell: Callable[[FileNews], None]) -> None:
        self._file = file
        self._tell = tell
        self._problem = ""
        self.known = AddressList(file.read())
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def close(self) -> None:
        self._following.cancel()

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                found = await asyncio.to_thread(self._file.look)  # a network's disk may be slow
            except HeadraceError as error:
                self._keep(error.message)
            else:
                if found is not None:
                    self._take(found)

    def _keep(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self._tell(FileNews(known=self.known.urls, problem=problem))

    def _take(self, found: tuple[str, ...]) -> None:
        before, was_problem, self._problem = self.known.urls, self._problem, ""
        if found != before:
            self.known.replace(found)
        if was_problem or {*found} != {*before}:
            joined = tuple(url for url in found if url not in before)
            self._tell(FileNews(known=found, joined=joined, left=tuple(url for url in before if url not in found)))
