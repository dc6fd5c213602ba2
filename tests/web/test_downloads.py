"""Downloads: what is filtered as a file, clients that stop or go, and runs that go on meanwhile."""

import http.client
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from headrace import Model, QuestionFreeText, Survey
from headrace.results.results import Results
from headrace.survey.agent import Agent
from headrace.web.downloads import sending
from headrace.web.downloads.export_chunks import text_chunks
from tests.results import files
from tests.web.hostile import SCRIPTS, hostile_run
from tests.web.running_page import TOKEN, RunningPage

PATIENCE_S = 30.0
LONG = "x" * 4_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("downloads")
    files.city(place / "city.run", people=60)
    hostile_run(place / "hostile.run")
    return place


@pytest.fixture
def page(place: Path) -> Iterator[RunningPage]:
    with RunningPage(place) as page:
        yield page


def id_of(page: RunningPage, name: str = "city.run") -> str:
    return next(file["id"] for file in page.api("/runs")["files"] if file["name"] == name)


def body_of(page: RunningPage, kind: str, name: str = "city.run", **asked: Any) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=PATIENCE_S)
    try:
        path = f"/runs/{id_of(page, name)}/download.{kind}?{urlencode(asked)}"
        connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert "attachment" in answer.headers["Content-Disposition"]
        return answer.read()
    finally:
        connection.close()


def wait_until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_downloads_are_what_results_write(page: RunningPage, place: Path, tmp_path: Path):
    asked = {"filter": "answer.rating > 4", "columns": "agent.age,answer.*,comment.mood_comment"}
    with Results.open(place / "city.run") as results:
        chosen = results.filter(asked["filter"]).select(*asked["columns"].split(","))
        chosen.to_csv(tmp_path / "x.csv")
        chosen.to_jsonl(tmp_path / "x.jsonl")
        results.to_csv(tmp_path / "all.csv")
    assert body_of(page, "csv", **asked) == (tmp_path / "x.csv").read_bytes()
    assert body_of(page, "jsonl", **asked) == (tmp_path / "x.jsonl").read_bytes()
    assert body_of(page, "csv") == (tmp_path / "all.csv").read_bytes()
    assert body_of(page, "csv", filter="rating == 99", columns="rating").split() == [b"answer.rating"]


def test_parquet_is_written_while_it_is_sent(page: RunningPage, place: Path, tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    asked = {"filter": "answer.rating > 4", "columns": "agent.age,answer.*"}
    (tmp_path / "x.parquet").write_bytes(body_of(page, "parquet", **asked))
    with Results.open(place / "city.run") as results:
        wanted = results.filter("answer.rating > 4").select("agent.age", "answer.*").to_arrow()
    found = parquet.read_table(tmp_path / "x.parquet")
    assert found.to_pylist() == wanted.to_pylist()
    assert found.schema.equals(wanted.schema)


def test_formulas_are_escaped_where_that_is_asked_for(page: RunningPage):
    formula = '"' + SCRIPTS[8].replace('"', '""') + '"'
    assert formula in body_of(page, "csv", "hostile.run", columns="answer.said").decode().split("\n")
    escaped = body_of(page, "csv", "hostile.run", columns="answer.said", escape_formulas="true").decode().split("\n")
    assert formula not in escaped
    assert formula[0] + "'" + formula[1:] in escaped


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_what_cannot_be_asked_for_is_an_error_and_no_file(page: RunningPage, kind: str):
    run = id_of(page)
    for asked in ({"filter": "agent.agee == 3"}, {"columns": "nothing"}, {"escape_formulas": "perhaps"}):
        answer = page.get(f"/runs/{run}/download.{kind}?{urlencode(asked)}")
        assert answer.status == 400, answer.body
        assert "content-disposition" not in answer.headers
        assert answer.headers["content-type"].startswith("text/plain")
        assert "<" not in answer.body
    assert page.get(f"/runs/0011223344556677/download.{kind}").status == 404
    assert page.get(f"/runs/{run}/download.exe").status == 404
    assert page.get(f"/runs/{run}/download.{kind}", Accept="*/*").status == 401


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_file_that_keeps_no_rows_is_refused_before_the_first_byte(tmp_path: Path, kind: str):
    survey = Survey([QuestionFreeText(question_name="q", question_text="Well?")])
    survey.by(Model("test")).run(tmp_path / "a.run", cache=False, keep="nothing", aggregate={"n": "count()"})
    with RunningPage(tmp_path) as page:
        (file,) = page.api("/runs")["files"]
        assert page.get(f"/runs/{file['id']}/download.{kind}").status == 400


def test_a_name_from_outside_cannot_leave_its_header(tmp_path: Path):
    files.city(tmp_path / 'a"b\r\nX: y;é.run', people=1)
    with RunningPage(tmp_path) as page:
        (found,) = page.api("/runs")["files"]
        answer = page.get(f"/runs/{found['id']}/download.csv")
        assert answer.status == 200
        assert "x" not in answer.headers
        assert answer.headers["content-disposition"].startswith('attachment; filename="a_b__X_ y__.csv"; filename*=')


class StoppedClient:
    """A client that asks for a download, reads its beginning, and then nothing."""

    def __init__(self, page: RunningPage, path: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", page.port), timeout=PATIENCE_S)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{page.port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        self._socket.sendall(request.encode())
        assert self._socket.recv(100).startswith(b"HTTP/1.1 200")

    def go(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some thousand interviews with long answers: more than sockets and pipes hold."""
    agents = (Agent(traits={"age": n % 70}) for n in range(6_000))
    path = tmp_path_factory.mktemp("long") / "long.run"
    return files.write(path, files.job(files.survey("said"), agents), lambda n: [f"{n} {LONG}"])


def counted_chunks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What became of chunks: an entry for each, and `closed` at the end."""
    seen: list[str] = []

    def chunks(*given: Any) -> Generator[bytes]:
        try:
            for chunk in text_chunks(*given):
                seen.append("chunk")
                yield chunk
        finally:
            seen.append("closed")

    monkeypatch.setattr(sending, "text_chunks", chunks)
    return seen


def test_a_client_that_stops_reading_holds_nothing_of_the_run_and_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sending, "_TAKEN_WITHIN_S", 2.0)
    seen = counted_chunks(monkeypatch)
    of = files.job(files.survey("said"), [Agent(traits={"age": n}) for n in range(6_000)])
    with RunningPage(tmp_path) as page:
        with files.opened(tmp_path / "live.run", of) as file:
            write(file, of, range(5_000))
            client = StoppedClient(page, f"/runs/{id_of(page, 'live.run')}/download.csv?columns=answer.said")
            time.sleep(0.3)
            # Sockets hold some of the 67 chunks.
            assert len(seen) < 25, "the file is read no faster than it is taken"
            write(file, of, range(5_000, 6_000))
        # It is sealed: that could not be while a reader has the file open.
        assert not (tmp_path / "live.run-wal").exists()
        wait_until(lambda: "closed" in seen)
        assert seen.count("chunk") < 25
        client.go()


def test_a_client_that_goes_away_ends_the_work(long_run: Path, monkeypatch: pytest.MonkeyPatch):
    seen = counted_chunks(monkeypatch)
    with RunningPage(long_run) as page:
        client = StoppedClient(page, f"/runs/{id_of(page, 'long.run')}/download.jsonl")
        client.go()
        wait_until(lambda: "closed" in seen)
        assert seen.count("chunk") < 25  # of some 80: sockets hold some of them


def test_a_search_in_vain_ends_when_nobody_waits_for_it(long_run: Path, monkeypatch: pytest.MonkeyPatch):
    ended = threading.Event()

    def endless(*_: Any) -> Generator[bytes]:
        try:
            yield b"header\n"
            while True:
                time.sleep(0.01)
                yield b""
        finally:
            ended.set()

    monkeypatch.setattr(sending, "text_chunks", endless)
    with RunningPage(long_run) as page:
        StoppedClient(page, f"/runs/{id_of(page, 'long.run')}/download.csv").go()
        assert ended.wait(PATIENCE_S)


@pytest.fixture
def writer_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The process that writes Parquet writes without an end instead, and its pid into this file."""
    pytest.importorskip("pyarrow")
    told = tmp_path / "pid"
    endless = (
        "import os, pathlib, sys; sys.stdin.read(); p = pathlib.Path(sys.argv[1]);"
        " p.with_suffix('.new').write_text(str(os.getpid())); p.with_suffix('.new').rename(p)\n"
        "while True: os.write(1, b'x' * 65536)"
    )
    monkeypatch.setattr(sending, "COMMAND", (sys.executable, "-c", endless, str(told)))
    return told


def test_the_process_that_writes_parquet_ends_with_its_client(long_run: Path, writer_told: Path):
    with RunningPage(long_run) as page:
        client = StoppedClient(page, f"/runs/{id_of(page, 'long.run')}/download.parquet")
        wait_until(writer_told.exists)
        client.go()
        wait_until(lambda: not is_running(int(writer_told.read_text())))


def test_clients_that_leave_a_parquet_file_half_read_leave_room_for_others(long_run: Path, writer_told: Path):
    with RunningPage(long_run) as page:
        path = f"/runs/{id_of(page, 'long.run')}/download.parquet"
        for client in [StoppedClient(page, path) for _ in range(4)]:  # more at once are refused
            client.go()
        wait_until(lambda: page.get(path.replace(".parquet", ".csv")).status == 200)


def test_a_server_that_ends_while_a_parquet_file_is_half_read_ends_its_process(
    long_run: Path, writer_told: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sending, "_ENDED_WITHIN_S", PATIENCE_S)
    with RunningPage(long_run) as page:
        client = StoppedClient(page, f"/runs/{id_of(page, 'long.run')}/download.parquet")
        wait_until(writer_told.exists)
    client.go()
    assert not is_running(int(writer_told.read_text()))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_process_that_fails_says_why_or_cuts_the_file(page: RunningPage, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("pyarrow")
    fails = 'import sys; sys.stderr.write(\'{"message": "No luck today.", "fix": ""}\'); sys.exit(1)'
    monkeypatch.setattr(sending, "COMMAND", (sys.executable, "-c", fails))
    answer = page.get(f"/runs/{id_of(page)}/download.parquet")
    assert answer.status == 500
    assert "No luck today." in answer.body
    monkeypatch.setattr(sending, "COMMAND", (sys.executable, "-c", "print('x' * 100); import sys; sys.exit(1)"))
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        body_of(page, "parquet")


def test_a_damaged_row_cuts_the_file_short(page: RunningPage, monkeypatch: pytest.MonkeyPatch):
    def damaged(*given: Any) -> Generator[bytes]:
        yield next(text_chunks(*given))
        raise sending.HeadraceError("Interview 7 is damaged.")

    monkeypatch.setattr(sending, "text_chunks", damaged)
    with pytest.raises((http.client.IncompleteRead, ConnectionError)):
        body_of(page, "csv")


def test_only_a_few_downloads_go_on_at_once(long_run: Path):
    with RunningPage(long_run) as page:
        path = f"/runs/{id_of(page, 'long.run')}/download.csv"
        clients = [StoppedClient(page, path) for _ in range(4)]
        assert page.get(path).status == 503
        for client in clients:
            client.go()
        wait_until(lambda: page.get(path + "?filter=age==99").status == 200)


def test_a_download_of_a_run_that_goes_on_has_whole_rows(tmp_path: Path):
    of = files.job(files.survey("said"), [Agent(traits={"age": n}) for n in range(6_000)])
    with files.opened(tmp_path / "live.run", of) as file, RunningPage(tmp_path) as page:
        write(file, of, range(2_000))
        writer = threading.Thread(target=write, args=(file, of, range(2_000, 6_000)))
        writer.start()
        rows = [json.loads(line) for line in body_of(page, "jsonl", "live.run").splitlines()]
        writer.join()
        assert 2_000 <= len(rows) <= 6_000
        assert [row["interview.ordinal"] for row in rows] == list(range(len(rows)))
        assert all(row["answer.said"] == f"{row['agent.age']} {LONG}" for row in rows)


def write(file: Any, of: Any, ordinals: range) -> None:
    for first in range(ordinals.start, ordinals.stop, 500):
        batch = [files.row(file, of, n, [f"{n} {LONG}"]) for n in range(first, first + 500)]
        file.journal.commit([files.row_batch(batch)], [])
