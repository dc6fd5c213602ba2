"""The page's server in a process of its own, and clients: requests, pages that follow a run, readers that stop reading,
and Chromium where it is there.
"""

import http.client
import json
import os
import re
import selectors
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from benchmarks.process_memory import resident_bytes
from benchmarks.processes import ChildFailed, start_python

_TOKEN = "a-token-for-the-benchmarks"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE_S = 60


class PageProcess:
    """`headrace view FILE`; the context ends it."""

    def __init__(self, path: Path) -> None:
        self._process: subprocess.Popen[str] = start_python(
            "-m", "headrace", "view", path, env={"HEADRACE_VIEW_TOKEN": _TOKEN}
        )
        assert self._process.stdout is not None
        found = re.search(r":(\d+)/", self._process.stdout.readline())
        if found is None:
            raise ChildFailed("headrace view printed no address")
        self.port = int(found[1])
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        self.run = str(self.api("/runs")["files"][0]["id"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.communicate(timeout=_PATIENCE_S)

    @property
    def resident_bytes(self) -> int:
        return resident_bytes(self._process.pid)

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def get(self, path: str) -> tuple[int, str]:
        self._connection.request("GET", path, headers={"Authorization": f"Bearer {_TOKEN}"})
        reply = self._connection.getresponse()
        return reply.status, reply.read().decode()

    def api(self, path: str) -> Any:
        status, body = self.get(f"/api/v1{path}")
        if status != 200:
            raise ChildFailed(f"{path} was answered with {status}: {body[:300]}")
        return json.loads(body)

    def has(self, path: str) -> bool:
        """Whether the API of this version knows an address."""
        return self.get(f"/api/v1{path}")[0] != 404

    def timed(self, path: str) -> tuple[float, str]:
        """How many milliseconds a page takes, and the page."""
        began_s = time.perf_counter()
        status, body = self.get(path)
        if status != 200:
            raise ChildFailed(f"{path} was answered with {status}: {body[:300]}")
        return (time.perf_counter() - began_s) * 1000, body

    def asked(self, path: str, receive_bytes: int = 0) -> socket.socket:
        """A connection that has asked for something, and has read nothing of it."""
        connection = socket.socket()
        if receive_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        connection.connect(("127.0.0.1", self.port))
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: Bearer {_TOKEN}\r\n\r\n"
        connection.sendall(head.encode())
        return connection

    @contextmanager
    def followed(self, pages: int) -> Iterator[None]:
        """While the block runs, so many live pages are open and read what comes."""
        is_over = threading.Event()
        with ExitStack() as open_ones, selectors.DefaultSelector() as selector:
            for _ in range(pages):
                connection = open_ones.enter_context(self.asked(f"/api/v1/runs/{self.run}/events"))
                selector.register(connection, selectors.EVENT_READ, connection)
            reading = threading.Thread(target=_read_all, args=(selector, is_over))
            reading.start()
            try:
                yield
            finally:
                is_over.set()
                reading.join()

    @contextmanager
    def browser(self) -> Iterator["PageBrowser | None"]:
        """Chromium with the page's cookie; None where there is none."""
        program = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if program is None:
            yield None
            return
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            window = browser.new_page()
            window.goto(f"http://127.0.0.1:{self.port}/?token={_TOKEN}")
            window.wait_for_url(lambda url: "token=" not in url)
            yield PageBrowser(window, f"http://127.0.0.1:{self.port}")
            browser.close()


class PageBrowser:
    def __init__(self, window: Any, origin: str) -> None:
        self._window = window
        self._origin = origin

    def load_ms(self, path: str) -> float:
        """From the click to the end of loading, by the browser's own clock."""
        self._window.goto(self._origin + path, wait_until="load")
        return float(self._window.evaluate("performance.getEntriesByType('navigation')[0].duration"))


def _read_all(selector: selectors.BaseSelector, is_over: threading.Event) -> None:
    while not is_over.is_set():
        for key, _ in selector.select(0.2):
            if not key.data.recv(1 << 16):
                selector.unregister(key.fileobj)
