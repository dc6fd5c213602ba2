"""Chromium for the page's tests: one for all tests of a process, and a note of all that goes wrong in it.

It is driven from a thread of its own: Playwright's blocking interface leaves a running event loop in its thread, where
no other test could start one.
"""

import functools
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal, ParamSpec, TypeVar
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests.web.running_page import TOKEN, RunningPage

PATIENCE_MS = 30_000
# A name that leads to this machine, as an attacker's name server would say; no other name leads anywhere.
HOSTILE_HOST = "rebound.example"
_RESOLVER_RULES = f"MAP {HOSTILE_HOST} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
# Root may not have Chromium's sandbox, and all that it is shown here comes from the tests.
# Nothing here needs a GPU or an extension, and each would be a process more.
_SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-extensions", f"--host-resolver-rules={_RESOLVER_RULES}"]
_NAMES = ("chromium", "chromium-browser", "google-chrome")
MISSING = "there is no Chromium here: apt-get install chromium"
Theme = Literal["light", "dark"]

Given = ParamSpec("Given")
Found = TypeVar("Found")

_thread: list[ThreadPoolExecutor] = []  # one, while the fixture `chromium` is there


def in_chromium(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """Run a test, or anything else that touches the browser, in the browser's thread."""

    @functools.wraps(function)
    def run(*arguments: Given.args, **named: Given.kwargs) -> Found:
        return _thread[0].submit(function, *arguments, **named).result()

    return run


@contextmanager
def started() -> Iterator[Browser]:
    """A Chromium that is ours; only within the browser's thread. Where there is none, the test is skipped, or fails
    where `CI` is set.
    """
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_SWITCHES)
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(
    scope="package"
)  # no longer: a budget of later tests counts the memory of all children, and it takes 1 GB
def chromium() -> Iterator[Browser]:
    with ThreadPoolExecutor(1, thread_name_prefix="chromium") as thread:
        running = started()
        browser = thread.submit(running.__enter__).result()
        _thread.append(thread)
        try:
            yield browser
        finally:
            _thread.clear()
            thread.submit(running.__exit__, None, None, None).result()


class Visit:
    """A window of its own on a page, with its cookie. `trouble` is what a user must never see or be done to: errors in
    the console, scripts that fail, requests to other servers, dialogs, responses that say that something failed.
    """

    def __init__(self, window: Page, origin: str) -> None:
        self.window = window
        self.trouble: list[str] = []
        self._origin = origin
        self._note_trouble()

    def open(self, path: str) -> None:
        self.window.goto(self._origin + path, wait_until="load")

    def enter(self, path: str = "/") -> None:
        """Come in as a user does, by the printed address."""
        self.window.goto(f"{self._origin}{path}{'&' if '?' in path else '?'}token={TOKEN}", wait_until="load")
        self.window.wait_for_url(lambda url: "token=" not in url)
        self.window.wait_for_load_state("load")

    def look(self, width: int, theme: Theme) -> None:
        self.window.set_viewport_size({"width": width, "height": 800})
        self.window.emulate_media(color_scheme=theme)

    def overflow(self) -> int:
        """By how many pixels the document is wider than the window."""
        return self.window.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def _note_trouble(self) -> None:
        window, note = self.window, self.trouble.append
        window.on("console", lambda said: note(f"console: {said.text}") if said.type == "error" else None)
        window.on("pageerror", lambda error: note(f"a script failed: {error}"))
        window.on("dialog", lambda dialog: (note(f"a dialog: {dialog.message}"), dialog.dismiss()))
        window.on("popup", lambda popup: note(f"a new window: {popup.url}"))
        window.on("request", self._note_strange)
        window.on("response", lambda got: note(f"{got.status} of {got.url}") if got.status >= 400 else None)

    def _note_strange(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self._origin and parts.scheme != "data":
            self.trouble.append(f"a request to another server: {request.url[:200]}")


@contextmanager
def visiting(browser: Browser, shown: RunningPage | str, *, scripts: bool = True) -> Iterator[Visit]:
    """A visit of a page that is served, or of what another origin has, such as `file://`."""
    origin = shown if isinstance(shown, str) else f"http://127.0.0.1:{shown.port}"
    context = browser.new_context(java_script_enabled=scripts)
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield Visit(context.new_page(), origin)
    finally:
        context.close()
