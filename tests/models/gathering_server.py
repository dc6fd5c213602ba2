"""A model server whose replies wait until so many calls are in flight at once: no clock tells whether they were."""

import asyncio

from tests.models.behaviours import Call, Connection, completion, error, http


class Gathering:
    """What a HostileServer does (`server.behave([Gathering(4).respond])`). `most` is how many calls were in flight at
    once; once that was `count`, all are answered, and so is each that comes later: with an error where the service
    `fails`.
    """

    def __init__(self, count: int, *, fails: bool = False) -> None:
        self.count = count
        self.most = 0
        self.waiting = 0
        self._fails = fails
        self._all_here = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def answer(self) -> None:
        """Have all answered that wait, though fewer than `count`."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._all_here.set)

    async def respond(self, call: Call, out: Connection) -> None:
        self._loop = asyncio.get_running_loop()
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting >= self.count:
            self._all_here.set()
        await self._all_here.wait()
        self.waiting -= 1
        out.send(http(500, error("broken")) if self._fails else http(200, completion(call, call.prompt)))


class Rounds:
    """What a HostileServer does: replies wait until `size` calls are in flight, again and again, but for the last of
    `total`. With fewer in flight at once, the run never ends.
    """

    def __init__(self, size: int, total: int) -> None:
        self._size, self._left = size, total
        self._waiting = 0
        self._all_here = asyncio.Event()

    async def respond(self, call: Call, out: Connection) -> None:
        self._left -= 1
        self._waiting += 1
        all_here = self._all_here
        if self._waiting >= self._size or not self._left:
            all_here.set()
            self._all_here, self._waiting = asyncio.Event(), 0
        await all_here.wait()
        out.send(http(200, completion(call)))
