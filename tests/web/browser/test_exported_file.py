"""A run as one file, as Chromium shows it: from a disk, and from somebody's web server."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from headrace.web.exported_page import export_page
from tests.web.browser.axe import AxeRules, axe
from tests.web.browser.chromium import Theme, in_chromium, visiting
from tests.web.browser.shown_place import run_survey

__all__ = ["axe"]

LOOKS: list[tuple[int, Theme]] = [(1280, "light"), (390, "dark")]


class _QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("exported")
    run_survey(place / "a run.run")
    export_page(place / "a run.run", place / "page.html", most_bytes=70_000)  # axe-core takes long for many rows
    return place


@pytest.fixture(scope="module")
def web_server(place: Path) -> Iterator[str]:
    files = functools.partial(_QuietFiles, directory=str(place))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.05))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("scripts", [True, False])
@in_chromium
def test_the_file_opens_from_a_disk_and_from_a_web_server(
    scripts: bool, chromium: Browser, place: Path, web_server: str, axe: AxeRules
):
    for origin, path in (("file://", str(place / "page.html")), (web_server, "/page.html")):
        with visiting(chromium, origin, scripts=scripts) as visit:
            visit.open(path)
            for look in LOOKS:
                visit.look(*look)
                assert visit.overflow() <= 0, look
                assert not scripts or origin == web_server or axe.broken_in(visit.window) == [], look
            assert visit.window.locator("svg").count() == 5
            assert visit.window.locator("tbody tr").count() >= 20
            background = visit.window.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == "rgb(22, 26, 32)", "the style in the file holds, also in the dark"
            assert visit.trouble == []
