"""Pages of others in the same browser, which has the page's cookie: by another name that leads here (DNS rebinding),
by requests, forms and frames.
"""

import functools
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser

from tests.web.browser.chromium import HOSTILE_HOST, Visit, in_chromium, visiting
from tests.web.browser.shown_place import Shown

# What a hostile page's script tries; what it can read of the replies is in `window.read`.
_ATTACK = """
<!doctype html><title>hostile</title><body><script>
window.read = [];
const target = "{target}", tried = [];
for (const mode of ["cors", "no-cors"]) {{
  for (const path of ["/", "/api/v1/runs", "/api/v1/runs/{going}/memory"]) {{
    tried.push(fetch(target + path, {{mode, credentials: "include"}})
      .then(reply => reply.text()).then(text => text && window.read.push(text), () => null));
  }}
  tried.push(fetch(target + "/api/v1/runs/{going}/stop", {{mode, method: "POST", credentials: "include",
    body: new URLSearchParams({{now: "true"}})}}).then(reply => reply.text())
    .then(text => text && window.read.push(text), () => null));
}}
const frame = document.createElement("iframe");
frame.src = target + "/";
document.body.append(frame);
tried.push(new Promise(done => frame.onload = () => {{
  try {{ if (frame.contentDocument.body.innerText) window.read.push("frame"); }} catch {{}}
  done();
}}));
const form = document.createElement("form");
form.method = "post"; form.action = target + "/api/v1/runs/{going}/stop"; form.target = "hidden";
const hidden = document.createElement("iframe"); hidden.name = "hidden";
document.body.append(hidden, form);
form.submit();
Promise.all(tried).then(() => document.title = "tried");
</script>
"""


@contextmanager
def hostile_site(page: str) -> Iterator[int]:
    """A server of somebody else, at a name of their own; its port."""

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.05))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def state(shown: Shown) -> str:
    return shown.page.api(f"/runs/{shown.going}")["state"]


@in_chromium
def test_a_name_that_was_pointed_here_shows_nothing(chromium: Browser, shown: Shown):
    with visiting(chromium, shown.page) as visit:
        visit.enter("/")
        for path in ("/", f"/?token={shown.page.access.token}", "/api/v1/runs", f"/runs/{shown.going}"):
            reply = visit.window.goto(f"http://{HOSTILE_HOST}:{shown.page.port}{path}")
            assert reply is not None
            assert reply.status == 403
            assert "not known by that name" in visit.window.inner_text("body")


def attacked(visit: Visit, shown: Shown, target: str) -> list[str]:
    with hostile_site(_ATTACK.format(target=target, going=shown.going)) as port:
        visit.enter("/")
        visit.window.goto(f"http://{HOSTILE_HOST}:{port}/")
        visit.window.wait_for_function("document.title == 'tried'")
        return visit.window.evaluate("window.read")


@in_chromium
def test_another_page_can_neither_read_nor_steer(chromium: Browser, shown: Shown):
    with visiting(chromium, shown.page) as visit:
        assert attacked(visit, shown, f"http://127.0.0.1:{shown.page.port}") == []
        assert attacked(visit, shown, f"http://{HOSTILE_HOST}:{shown.page.port}") == []
        assert state(shown) == "running"
        visit.open(f"/runs/{shown.going}")  # the cookie still serves whoever has it
        assert visit.window.locator("h1").inner_text().startswith("going.run")
