"""Who may come in: by token, cookie, Host and Origin."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.errors import OptionError
from headrace.web.access import Access, checked_token
from headrace.web.sent_forms import FormSentTwice, SentForms, new_number
from tests.web.running_page import TOKEN, RunningPage


@pytest.fixture
def page(tmp_path: Path) -> Iterator[RunningPage]:
    with RunningPage(tmp_path) as page:
        yield page


def test_nobody_comes_in_without_the_token(page: RunningPage):
    for path in ("/", "/runs/0011223344556677", "/api/v1/runs", "/?token=wrong-token-of-another", "/nowhere"):
        assert page.get(path, Accept="*/*").status == 401, path


def test_the_token_is_exchanged_for_a_cookie_that_scripts_and_other_sites_do_not_get(page: RunningPage):
    answer = page.get(f"/?token={TOKEN}", Accept="*/*")
    cookie = answer.headers["set-cookie"]
    assert answer.status == 200
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert TOKEN not in answer.body
    assert page.get("/", Cookie=cookie.partition(";")[0]).status == 200


def test_an_address_with_a_token_leads_on_within_the_page_only(page: RunningPage):
    answer = page.get(f"//evil.example/?token={TOKEN}", Accept="*/*")
    assert "evil.example" not in answer.body or "url=&#x2f;evil" in answer.body.replace("url=/", "url=&#x2f;")
    assert "url=&#x2f;&#x2f;" not in answer.body
    assert "url=//" not in answer.body


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{port}", ""]
)
def test_a_name_that_was_pointed_at_this_address_is_not_answered(page: RunningPage, host: str):
    answer = page.get("/", Host=host.format(port=page.port), Authorization=f"Bearer {TOKEN}")
    assert answer.status in (400, 403)
    assert "Runs" not in answer.body


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1", "http://localhost:{port}"],
)
def test_pages_of_other_origins_are_not_answered(page: RunningPage, origin: str):
    sent = origin.format(port=page.port)
    assert page.get("/api/v1/runs", Origin=sent, Authorization=f"Bearer {TOKEN}").status == 403


def test_every_response_forbids_scripts_of_others_and_keeping(page: RunningPage):
    for path in ("/", "/nowhere", "/assets/page.css", "/api/v1/runs", "/runs/0011223344556677"):
        headers = page.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';"), path
        assert "unsafe" not in policy, path
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_beyond_loopback_figures_will_do_and_other_names_do_not():
    access = Access("0.0.0.0", 80, TOKEN)
    assert access.is_own_host("192.168.1.5:80")
    assert access.is_own_host("[fe80::1]:80")
    assert not access.is_own_host("evil.example:80")
    assert not access.is_own_host("192.168.1.5:81")


def test_binding_wider_than_loopback_needs_a_token_of_ones_own():
    with pytest.raises(OptionError, match="HEADRACE_VIEW_TOKEN"):
        checked_token("0.0.0.0", None)
    with pytest.raises(OptionError, match="at least 16"):
        checked_token("0.0.0.0", "short")
    assert checked_token("0.0.0.0", TOKEN) == TOKEN
    assert len(checked_token("127.0.0.1", None)) >= 32


def test_a_link_that_leads_out_of_its_directory_is_not_shown(tmp_path: Path):
    place = tmp_path / "place"
    place.mkdir()
    (tmp_path / "secret.run").write_bytes(b"")
    (place / "link.run").symlink_to(tmp_path / "secret.run")
    (place / "own.run").write_bytes(b"")
    with RunningPage(place) as page:
        assert [file["name"] for file in page.api("/runs")["files"]] == ["own.run"]


def test_a_link_in_a_circle_and_a_name_that_is_no_text_leave_the_others_shown(tmp_path: Path):
    (tmp_path / "circle.run").symlink_to(tmp_path / "circle.run")
    (tmp_path / "own.run").write_bytes(b"")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.run")).write_bytes(b"")
    with RunningPage(tmp_path) as page:
        assert [file["name"] for file in page.api("/runs")["files"]] == ["own.run"]
        assert [page.get(path).status for path in ("/", "/metrics")] == [200, 200]


def test_a_header_that_is_no_text_is_refused_like_any_other(page: RunningPage, caplog: pytest.LogCaptureFixture):
    with socket.create_connection(("127.0.0.1", page.port), timeout=30) as connection:
        host = b"Host: 127.0.0.1:%d\r\n" % page.port
        connection.sendall(b"GET / HTTP/1.1\r\n" + host + b"Authorization: Bearer \xe9\r\nConnection: close\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 401")
    assert caplog.records == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", "x"),
        ("multipart/form-data; boundary=b", "--b\r\n\r\nx\r\n--c"),
        ("application/x-www-form-urlencoded; charset=nonsense", "a=b"),
        ("application/x-www-form-urlencoded; charset=utf-16", "abc"),
        ("application/x-www-form-urlencoded; charset=base64", "a=b"),
    ],
)
def test_a_form_that_is_none_is_refused_in_words(
    kind: str, body: str, page: RunningPage, caplog: pytest.LogCaptureFixture
):
    answer = page.post_body("/api/v1/runs/0011223344556677/pause", body, kind)
    assert answer.status in (400, 404), answer.body
    assert answer.json()["error"]["message"]
    assert caplog.records == []


def test_only_numbers_of_our_own_forms_are_remembered():
    forms, number = SentForms(), new_number()
    for given in ("x" * 60_000, "", number):
        with forms.sent(given):
            pass
    with forms.sent("x" * 60_000):
        pass
    with pytest.raises(FormSentTwice), forms.sent(number):
        pass
