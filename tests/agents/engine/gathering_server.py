"""A model server whose replies wait until so many calls are in flight at once: no clock tells whether they were."""

import asyncio
import itertools

from tests.models.behaviours import BEHAVIOURS, Call, Connection, completion, http

_numbers = itertools.count()


class Gathering:
    """What a HostileServer does (`server.behave(Gathering(4).name)`). `most` is how many calls were in flight at once;
    once that was `count`, all are answered, and so is each that comes later.
    """

    def __init__(self, count: int) -> None:
        self.name = f"gathering-{next(_numbers)}"
        self.count = count
        self.most = 0
        self._waiting = 0
        self._all_here = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        BEHAVIOURS[self.name] = self._respond

    def answer(self) -> None:
        """Have all answered that wait, though fewer than `count`."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._all_here.set)

    async def _respond(self, call: Call, out: Connection) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting += 1
        self.most = max(self.most, self._waiting)
        if self._waiting >= self.count:
            self._all_here.set()
        await self._all_here.wait()
        self._waiting -= 1
        out.send(http(200, completion(call, call.prompt)))
