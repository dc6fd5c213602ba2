"""A model server that reads requests of any size, keeps nothing of them, and answers after LATENCY_S: `body_server S`.

At /v1/seen it tells how many calls, and how many bytes of bodies, have come.
"""

import asyncio
import json
import sys

_ANSWER = json.dumps(
    {
        "choices": [{"message": {"content": "a cat"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 800, "completion_tokens": 3},
    }
).encode()


def _http(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class Swallowing(asyncio.Protocol):
    """One connection."""

    calls = received_bytes = 0
    latency_s = 0.0

    def __init__(self) -> None:
        self._head = b""
        self._left_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if not self._left_bytes:
            head, end, rest = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                self._head = head
                return
            self._head, data = b"", rest
            lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            if head.startswith(b"GET") or not lengths:
                told = {"calls": Swallowing.calls, "received_bytes": Swallowing.received_bytes}
                self._transport.write(_http(json.dumps(told).encode()))
                return
            self._left_bytes = int(lengths[0].partition(b":")[2])
        Swallowing.received_bytes += len(data)
        self._left_bytes -= len(data)
        if not self._left_bytes:
            Swallowing.calls += 1
            asyncio.get_running_loop().call_later(Swallowing.latency_s, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_http(_ANSWER))


async def main() -> None:
    Swallowing.latency_s = float(sys.argv[1])
    server = await asyncio.get_running_loop().create_server(Swallowing, "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
