"""A local model server that can do everything a bad day brings, by script. It speaks chat completions and messages.

    with HostileServer() as server:
        server.behave(["429", "500", "ok"])        # the first call, the second, and all that follow
        server.behave(mix({"ok": 0.9, "reset": 0.1}, seed=1))
        server.behave(lambda call: "refusal" if "bomb" in call.prompt else "ok")

What it can do is in tests.models.behaviours. As a program: python -m tests.models.server --port 0 --latency 0.05,
which tells at /v1/seen what it has seen.
Covers: HTTP/1.1 with kept connections, by hand: it has to be much faster than what is measured against it.
"""

import argparse
import asyncio
import contextlib
import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from tests.models.behaviours import BEHAVIOURS, Behaviour, Call, Connection, completion, http

Choose = Callable[[Call], str | Behaviour]
Latency = Callable[[random.Random], float]
_MOST_PROMPTS = 20_000
_STORM_AFTER_S = 1.0
_MOST_KEPT = 1_000


def in_turn(behaviours: Sequence[str | Behaviour]) -> Choose:
    """One behaviour after the other; the last one stays."""
    _known(*behaviours)
    counted = iter(range(1 << 62))
    return lambda _: behaviours[min(next(counted), len(behaviours) - 1)]


def mix(weights: dict[str, float], seed: int) -> Choose:
    """A random mix, the same in every run."""
    _known(*weights)
    rng = random.Random(seed)
    return lambda _: rng.choices([*weights], [*weights.values()])[0]


class Storm:
    """Well for a second from the first call on, or for so many calls, then one behaviour for so long, then well."""

    def __init__(self, name: str, lasts_s: float, *, after_calls: int | None = None) -> None:
        _known(name)
        self._name = name
        self._lasts_s = lasts_s
        self._calls_left = after_calls
        self._begins_s: float | None = None

    def __call__(self, _: Call) -> str:
        now_s = time.monotonic()
        if self._calls_left:
            self._calls_left -= 1
            return "ok"
        wait_s = _STORM_AFTER_S if self._calls_left is None else 0.0
        self._begins_s = self._begins_s or now_s + wait_s
        return self._name if 0 <= now_s - self._begins_s < self._lasts_s else "ok"


def _known(*behaviours: str | Behaviour) -> None:
    assert behaviours, "no behaviour given"
    unknown = {each for each in behaviours if isinstance(each, str)} - {"ok", *BEHAVIOURS}
    assert not unknown, unknown


@dataclass
class Script:
    """What the server does and has seen. Written by its own thread while it runs; read it when all is quiet."""

    choose: Choose = field(default_factory=lambda: in_turn(["ok"]))
    answer: str | None = None
    latency: Latency | None = None
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    seen: int = 0
    prompts: Counter[str] = field(default_factory=Counter)
    kept: deque[Call] = field(default_factory=lambda: deque(maxlen=_MOST_KEPT))
    turned_away: int = 0

    def note(self, call: Call) -> None:
        self.seen += 1
        if len(self.prompts) < _MOST_PROMPTS or call.prompt in self.prompts:
            self.prompts[call.prompt] += 1
        self.kept.append(call)

    def told(self) -> bytes:
        told = {"calls": self.seen, "prompts": len(self.prompts), "turned_away": self.turned_away}
        return msgspec.json.encode(told)


class Exchanges(asyncio.Protocol):
    """One connection: reads requests and does what the script says."""

    def __init__(self, script: Script, running: set["asyncio.Task[None]"], open_now: set["Exchanges"]) -> None:
        self._script = script
        self._running = running
        self._open_now = open_now
        self._received = b""
        self.transport: Any = None
        self._writable = asyncio.Event()
        self._writable.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._open_now.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._open_now.discard(self)
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"\x16\x03") and not self._received:
            self.transport.write(b"HTTP/1.1 400 This is no HTTPS server\r\n\r\n")
            self.transport.close()
            return
        self._received += data
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self._received = rest[length:]
        self._answer(lines[0].split(" ")[1], headers, rest[:length])

    def _answer(self, path: str, headers: dict[str, str], body: bytes) -> None:
        script = self._script
        if path.endswith("/seen"):
            self.transport.write(http(200, script.told()))
            return
        call = Call(script.seen, path, headers, msgspec.json.decode(body), script.answer)
        script.note(call)
        chosen = script.choose(call)
        script.turned_away += chosen != "ok"
        wait_s = script.latency(script.rng) if script.latency else 0.0
        if chosen == "ok" and not wait_s:
            self.transport.write(_ok(call))
        elif chosen == "ok":
            asyncio.get_running_loop().call_later(wait_s, self._write, _ok(call))
        else:
            behaviour = BEHAVIOURS[chosen] if isinstance(chosen, str) else chosen
            self._start(behaviour(call, Connection(self.transport, self._writable)), wait_s)

    def _write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    def _start(self, behaviour: Coroutine[Any, Any, None], wait_s: float) -> None:
        async def later() -> None:
            await asyncio.sleep(wait_s)
            with contextlib.suppress(ConnectionError):
                await behaviour

        task = asyncio.ensure_future(later())
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def _ok(call: Call) -> bytes:
    return http(200, completion(call), streamed=call.is_streamed)


class HostileServer:
    """Runs in a thread of its own until the `with` block ends."""

    def __init__(self, port: int = 0) -> None:
        self.script = Script()
        self._port = port
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="hostile-server")
        self._started = threading.Event()
        self._stop: Callable[[], None] = lambda: None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def calls(self) -> int:
        return self.script.seen

    @property
    def last(self) -> Call:
        return self.script.kept[-1]

    def behave(
        self,
        what: str | Sequence[str | Behaviour] | Choose,
        *,
        answer: str | None = None,
        latency: Latency | None = None,
    ) -> None:
        """What to do from now on; everything seen so far is forgotten."""
        choose = what if callable(what) else in_turn([what] if isinstance(what, str) else what)
        # In place: connections that are kept hold on to the script.
        self.script.__init__(choose, answer, latency)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        self._thread.join()

    async def _serve(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        running: set[asyncio.Task[None]] = set()
        open_now: set[Exchanges] = set()
        server = await loop.create_server(
            lambda: Exchanges(self.script, running, open_now), "127.0.0.1", self._port, backlog=1024
        )
        self.port = server.sockets[0].getsockname()[1]
        self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
        self._started.set()
        await stopped.wait()
        await stop_accepting(server, running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for connection in list(open_now):
            connection.transport.abort()
        await asyncio.sleep(0)


async def stop_accepting(server: asyncio.Server, running: set["asyncio.Task[None]"]) -> None:
    """Close a server on whose loop nothing else runs but these tasks.

    A connection that asyncio has accepted and not yet made when its server is closed is forgotten, and stays open.
    """
    while accepting := asyncio.all_tasks() - {asyncio.current_task(), *running}:
        await asyncio.wait(accepting)
    server.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="A local model server for benchmarks; prints its address.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds, for every call")
    parser.add_argument("--answer", help="what it answers")
    parser.add_argument("--answer-times", type=int, default=1, help="the answer is repeated so often in each reply")
    parser.add_argument("--behave", default="ok", help="behaviours in turn, with commas")
    parser.add_argument("--storm-s", type=float, help="seconds of the behaviour, a second after the first call")
    arguments = parser.parse_args()
    latency = (lambda _: arguments.latency) if arguments.latency else None
    with HostileServer(arguments.port) as server:
        names = arguments.behave.split(",")
        what = in_turn(names) if arguments.storm_s is None else Storm(names[0], arguments.storm_s)
        answer = arguments.answer and arguments.answer * arguments.answer_times
        server.behave(what, answer=answer, latency=latency)
        print(server.url, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
