"""A model server on loopback that answers with numbers, and counts what it was asked for.

Prompts name a number and a question: "Number 17, times 3." is answered with 51. It speaks chat completions.
"""

import json
import re
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

ASKED = re.compile(r"Number (\d+), times (\d+)\.")


class NumberServer:
    """`answered` counts replies that were sent, by number and factor. `latency_s` may change at any time.

    `connections` are open now, or closed by their client while a request of theirs is still being answered.
    """

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.answered: Counter[tuple[int, int]] = Counter()
        self.connections = 0
        self._noting = threading.Lock()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                (number, factor) = map(int, ASKED.findall(json.loads(body)["messages"][-1]["content"])[-1])
                time.sleep(owner.latency_s)
                reply = json.dumps(owner.completion(str(number * factor))).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(reply)))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                owner.note(number, factor)  # before the program can have it, and be seen to have it
                self.wfile.write(reply)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 200

            def process_request(self, request: Any, client_address: Any) -> None:
                owner.count_connections(1)
                super().process_request(request, client_address)

            def shutdown_request(self, request: Any) -> None:
                super().shutdown_request(request)
                owner.count_connections(-1)

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass  # whoever asked was killed

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    @staticmethod
    def completion(text: str) -> dict[str, Any]:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}

    @property
    def calls(self) -> int:
        return self.answered.total()

    def note(self, number: int, factor: int) -> None:
        with self._noting:
            self.answered[number, factor] += 1

    def count_connections(self, more: int) -> None:
        with self._noting:
            self.connections += more

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
