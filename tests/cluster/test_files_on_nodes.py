"""Files in prompts on nodes that have none of them, without Ray: fetched once, bounded, verified, gone at the end."""

import asyncio
import base64
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import FileStore, Model, QuestionFreeText, QuestionFunctional, Ray, Scenario, ScenarioList, Survey
from headrace.cluster.node_file_source import FileAsked, NodeFileSource
from headrace.cluster.node_files import NodeFiles
from headrace.cluster.sent_files import BlockTurns, FileSender
from headrace.cluster.tunnel_wire import FilePiece, FileWanted, FromFiles, ToFiles
from headrace.framing import framed
from headrace.interviews.workers import survey_nodes
from headrace.memory.measure.process import own_resident_bytes
from headrace.survey.record import Cause
from tests.cluster.nodes_here import NODES, NodesHere, first_word
from tests.models.server import HostileServer
from tests.pictures import pdf, png
from tests.temporary_files import no_temporary_file_left
from tests.trouble.children import until

__all__ = ["no_temporary_file_left"]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="paths that one process has alone: Linux only")

LOOK = QuestionFreeText(question_name="seen", question_text="What is in {{ scenario.photo }}?")
PATIENCE_S = 30.0


@pytest.fixture
def server() -> Iterator[HostileServer]:
    with HostileServer() as running:
        yield running


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """A directory by a name that leads there in this process alone: in a worker the descriptor is another file's."""
    (tmp_path / "here").mkdir()
    descriptor = os.open(tmp_path / "here", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> type[NodesHere]:
    monkeypatch.setattr(survey_nodes, "RayNodes", NodesHere)
    return NodesHere


def a_model(server: HostileServer, **parameters: Any) -> Model:
    return Model("m", service_name="openai_compatible", base_url=server.url, timeout_s=20.0, **parameters)


def sent_contents(server: HostileServer) -> list[bytes]:
    urls = [call.content[1]["image_url"]["url"] for call in server.script.kept]
    return sorted(base64.b64decode(url.partition(",")[2]) for url in urls)


# Whole jobs.


def test_each_node_gets_each_file_once_for_all_its_interviews(
    nodes: type[NodesHere], server: HostileServer, here: Path, tmp_path: Path
):
    pictures = [FileStore(png(here / f"{n}.png", shade=n, filler_bytes=500_000)) for n in range(3)]
    scenarios = ScenarioList(Scenario({"photo": each}) for each in pictures)
    job = Survey([LOOK]).by(scenarios).by(a_model(server))
    with job.run(tmp_path / "a.run", executor=Ray(), cache=False, n=8) as results:
        assert [result.answer["seen"] for result in results] == ["Good"] * 24
    assert sent_contents(server) == sorted(8 * [Path(each.path).read_bytes() for each in pictures])
    assert 0 < sum(host.file_bytes for host in nodes.latest.hosts) <= NODES * sum(each.size for each in pictures)


def test_a_file_that_changed_or_vanished_fails_its_interview_as_on_one_machine(
    nodes: type[NodesHere], server: HostileServer, here: Path, tmp_path: Path
):
    scenarios = ScenarioList(Scenario({"photo": FileStore(png(here / f"{n}.png", shade=n))}) for n in range(3))
    png(here / "1.png", shade=99)
    (here / "2.png").unlink()
    job = Survey([LOOK]).by(scenarios).by(a_model(server))
    messages: list[list[str]] = []
    for options in ({}, {"executor": Ray()}):
        with job.run(tmp_path / f"{len(messages)}.run", cache=False, **options) as results:
            assert [result.answer["seen"] for result in results] == ["Good", None, None]
            failures = [failure for result in results for failure in result.failures]
            assert {failure.cause for failure in failures} == {Cause.FILE.value}
            messages.append([failure.message for failure in failures])
            assert results.stats().calls == 1
    assert messages[0] == messages[1]
    assert "its content changed since it was referred to" in messages[0][0]
    assert "No such file or directory" in messages[0][1]


def test_embedded_files_reach_nodes_when_the_files_are_gone(
    nodes: type[NodesHere], server: HostileServer, here: Path, tmp_path: Path
):
    pictures = [FileStore(png(here / f"{n}.png", shade=n, filler_bytes=n * 500_000)) for n in range(3)]
    expected = sorted(Path(each.path).read_bytes() for each in pictures)
    job = Survey([LOOK]).by(ScenarioList(Scenario({"photo": each}) for each in pictures)).by(a_model(server))
    job.run(tmp_path / "a.run", embed=True, cache=False, limit=1, executor=Ray()).close()
    shutil.rmtree(here.resolve())
    with job.run(tmp_path / "a.run", cache=False, executor=Ray()) as results:
        assert [result.answer["seen"] for result in results] == ["Good"] * 3
    assert sent_contents(server) == expected


def test_texts_of_files_are_read_on_nodes_also_by_a_function(nodes: type[NodesHere], here: Path, tmp_path: Path):
    (here / "a.txt").write_text("Alpha words")
    reports = [FileStore(here / "a.txt"), FileStore(pdf(here / "b.pdf", "Beta words"))]
    questions = [
        QuestionFunctional(question_name="first", func=first_word),
        QuestionFreeText(question_name="whole", question_text="{{ scenario.report.text }}"),
    ]
    job = Survey(questions).by(ScenarioList(Scenario({"report": each}) for each in reports)).by(Model("test"))
    with job.run(tmp_path / "a.run", executor=Ray()) as results:
        assert [result.answer["first"] for result in results] == ["Alpha", "Beta"]
        assert [result.failures for result in results] == [[], []]


def test_a_picture_that_is_too_large_is_made_smaller_on_its_node(
    nodes: type[NodesHere], server: HostileServer, here: Path, tmp_path: Path
):
    pytest.importorskip("PIL")
    photo = FileStore(png(here / "a.png", filler_bytes=500_000), too_large="resize")
    job = Survey([LOOK]).by(Scenario({"photo": photo})).by(a_model(server, max_file_bytes=100_000))
    with job.run(tmp_path / "a.run", executor=Ray(), cache=False) as results:
        assert [result.failures for result in results] == [[]]
    (sent,) = sent_contents(server)
    assert sent.startswith(b"\xff\xd8")
    assert len(sent) <= 100_000
    for left in Path(tempfile.gettempdir()).glob("headrace-pictures-*"):
        shutil.rmtree(left)  # of a killed worker: the next process that makes a picture smaller removes it


# A cache and a sender, without workers between them.


class Crossing:
    """A node's cache beside the controller's sender, each message handed over. `on_piece` may change a piece."""

    def __init__(self) -> None:
        self.wanted: list[FileWanted] = []
        self.in_flight = self.most_in_flight = 0
        self.files: NodeFiles
        self.sender = FileSender(self._to_node, BlockTurns())

    def to_controller(self, message: FromFiles) -> None:
        if isinstance(message, FileWanted):
            self.wanted.append(message)
        else:
            self.in_flight = 0
        asyncio.get_running_loop().call_soon(self.sender.take, message)

    def _to_node(self, message: ToFiles) -> None:
        if isinstance(message, FilePiece):
            self.in_flight += len(message.data)
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            message.data = self.on_piece(message.data)
        asyncio.get_running_loop().call_soon(self.files.take, message)

    def on_piece(self, data: bytes) -> bytes:
        return data

    @property
    def kept(self) -> set[str]:
        """The digests of the copies there."""
        return {path.name for path in Path(self.files.folder).iterdir() if path.is_file()}

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not is_so():
                await asyncio.sleep(0.001)

    async def copy_of(self, file: FileStore) -> Any:
        return await asyncio.wait_for(asyncio.to_thread(NodeFileSource(self.files.folder).open, file), PATIENCE_S)


@asynccontextmanager
async def crossing() -> AsyncIterator[Crossing]:
    made = Crossing()
    made.files = await NodeFiles.start(made.to_controller)
    try:
        yield made
    finally:
        made.sender.close()
        await made.files.close()


def a_file(path: Path, size: int) -> FileStore:
    with path.open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(size)
    return FileStore(path)


@pytest.mark.anyio
async def test_a_file_of_100_mb_takes_a_block_of_memory_on_either_side(tmp_path: Path):
    file = a_file(tmp_path / "a.png", 100_000_000)
    async with crossing() as made:
        (await made.copy_of(a_file(tmp_path / "b.png", 2_000_000))).close()
        before = own_resident_bytes()
        copy = await made.copy_of(file)
        assert copy.size() == file.size
        assert own_resident_bytes() - before < 8_000_000
        assert made.most_in_flight < 500_000
        copy.close()


@pytest.mark.anyio
async def test_whoever_asks_for_a_file_on_its_way_waits_for_the_same_one(tmp_path: Path):
    file = a_file(tmp_path / "a.png", 5_000_000)
    async with crossing() as made:
        copies = await asyncio.gather(*(made.copy_of(file) for _ in range(5)))
        assert [wanted.digest for wanted in made.wanted] == [file.digest]
        for copy in copies:
            copy.close()


@pytest.mark.anyio
async def test_the_latest_files_are_kept_and_one_that_is_open_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("headrace.cluster.node_files._MOST_BYTES", 2_500_000)
    files = [a_file(tmp_path / f"{n}.png", 1_000_000 + n) for n in range(3)]
    async with crossing() as made:
        copies = [await made.copy_of(file) for file in files]
        assert made.kept == {file.digest for file in files[1:]}
        assert copies[0].read(8) == b"\x89PNG\r\n\x1a\n"
        assert Path(copies[0].path).read_bytes()[:4] == b"\x89PNG"
        (await made.copy_of(files[0])).close()
        assert len(made.wanted) == 4
        for copy in copies:
            copy.close()


@pytest.mark.anyio
async def test_a_cache_without_room_still_hands_out_whatever_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("headrace.cluster.node_files._MOST_BYTES", 1)
    files = [a_file(tmp_path / f"{n}.png", 100_000 + n) for n in range(4)]  # fewer than the threads that read and ask
    async with crossing() as made:
        copies = await asyncio.gather(*map(made.copy_of, files))
        assert [copy.size() for copy in copies] == [file.size for file in files]
        await made.until(lambda: len(made.kept) == 1)
        for copy in copies:
            copy.close()


@pytest.mark.anyio
async def test_a_copy_stays_until_the_worker_that_asked_for_it_has_it_open_or_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("headrace.cluster.node_files._MOST_BYTES", 1)
    first, second, third = (a_file(tmp_path / f"{n}.png", 100_000 + n) for n in range(3))
    async with crossing() as made:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            copy = Path(await asyncio.to_thread(NodeFileSource(made.files.folder)._copy_of, first, connection))
            (await made.copy_of(second)).close()
            assert copy.stat().st_size == first.size
        (await made.copy_of(third)).close()
        await made.until(lambda: made.kept == {third.digest})


@pytest.mark.anyio
async def test_workers_that_are_killed_while_a_file_is_on_its_way_leave_nothing_beside_its_copy(tmp_path: Path):
    file = a_file(tmp_path / "a.png", 5_000_000)
    async with crossing() as made:
        for _ in range(3):
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.connect(f"{made.files.folder}/socket")
                connection.sendall(framed(msgspec.msgpack.encode(FileAsked(file.path, file.digest, file.size))))
        (await made.copy_of(file)).close()
        await made.until(lambda: not made.files._asking)
        assert made.kept == {file.digest}


@pytest.mark.anyio
async def test_what_did_not_arrive_as_it_was_is_not_kept(tmp_path: Path):
    file = a_file(tmp_path / "a.png", 1_000_000)
    async with crossing() as made:
        made.on_piece = lambda data: bytes(len(data))
        with pytest.raises(OSError, match="it did not arrive as it was sent"):
            await made.copy_of(file)
        assert [path.name for path in Path(made.files.folder).iterdir()] == ["socket"]
        del made.on_piece
        (await made.copy_of(file)).close()


@pytest.mark.anyio
async def test_a_cache_that_ends_leaves_its_transfers_and_whoever_waits(tmp_path: Path):
    file = a_file(tmp_path / "a.png", 50_000_000)
    async with crossing() as made:
        asking = asyncio.create_task(made.copy_of(file))
        await made.until(lambda: made.in_flight > 0)
        await made.files.close()
        with pytest.raises(OSError, match="closed the connection"):
            await asking
        await made.until(lambda: not made.sender._sending)
        assert not Path(made.files.folder).exists()


HOST = """
import asyncio, sys
from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import RemoteWarden
from headrace.workers.pool import WorkerPool

async def main():
    pool = WorkerPool(place=RemoteWarden(NodeHost(), {}, lambda reason: None))
    await pool.worker(64 << 20)
    print("started", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_killed_host_leaves_no_directory():
    with subprocess.Popen([sys.executable, "-c", HOST], stdout=subprocess.PIPE, text=True) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "started\n"
            (folder,) = Path(tempfile.gettempdir()).glob("headrace-node-*")
        finally:
            host.send_signal(signal.SIGKILL)
    until(lambda: not folder.exists(), "the end of the directory")
