import asyncio
import http.client
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import nbclient
import nbformat
import pytest

SETUP = """
from headrace import Agent, AgentList, Model, QuestionFreeText, Survey
survey = Survey([QuestionFreeText(question_name="q", question_text="<b>Well?</b>")])
people = AgentList(Agent({"n": n}) for n in range(60))
job = survey.by(people, Model("test", canned_response="x", latency_s=0.2))
"""
RUN = "results = job.run('town.run', concurrency=5)"


class Ran(NamedTuple):
    """A cell's outputs at its end, and the texts that its displays showed on the way."""

    outputs: list[Any]
    seen: list[str]

    @property
    def html(self) -> str:
        (output,) = self.outputs
        return output["data"]["text/html"]


class Notebook:
    """Cells run one after the other, in a kernel of their own."""

    def __init__(self, client: nbclient.NotebookClient) -> None:
        self._client = client

    async def run(self, source: str, *, interrupted_after: str | None = None) -> Ran:
        """Run a cell; press the stop button when it has shown a text that matches."""
        cell = nbformat.v4.new_code_cell(source)
        self._client.nb.cells.append(cell)
        task = asyncio.create_task(self._client.async_execute_cell(cell, len(self._client.nb.cells) - 1))
        seen: list[str] = []
        while not task.done():
            await asyncio.sleep(0.02)
            texts = [output["data"]["text/plain"] for output in cell.outputs if "data" in output]
            seen += [text for text in texts if text not in seen]
            if interrupted_after is not None and any(re.search(interrupted_after, text) for text in seen):
                interrupted_after = None
                await self._client.km.interrupt_kernel()
        await task
        return Ran(cell.outputs, seen)


@asynccontextmanager
async def notebook(directory: Path) -> AsyncIterator[Notebook]:
    """The kernel is gone at the end: the leak check would find it."""
    place = {"metadata": {"path": str(directory)}}
    client = nbclient.NotebookClient(nbformat.v4.new_notebook(), timeout=60, allow_errors=True, resources=place)
    async with client.async_setup_kernel(stderr=subprocess.DEVNULL):
        yield Notebook(client)


@pytest.fixture(autouse=True)
def jupyter_s_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))


async def test_a_notebook_shows_how_far_a_run_is_stops_it_and_goes_on(tmp_path: Path):
    async with notebook(tmp_path) as cells:
        assert (await cells.run(SETUP)).outputs == []

        stopped = await cells.run(RUN, interrupted_after=r"[1-9]\d*/60")
        shown, heard, error = stopped.outputs
        assert heard["text"].startswith("stopping")
        assert error["traceback"] == [error["evalue"]]
        assert len(stopped.seen) >= 2
        assert error["ename"] == "Interrupted"
        done = int(re.fullmatch(r"Stopped after (\d+) of 60 interviews; .* again to go on\.", error["evalue"])[1])
        assert 0 < done < 60
        assert f"{done}/60" in shown["data"]["text/plain"]

        again = await cells.run(RUN)
        assert len(again.seen) >= 3
        assert all(f"{done} reused" in text for text in again.seen)
        assert '<progress value="60" max="60">' in again.html
        (reused,) = (await cells.run("results.stats().reused")).seen
        assert int(reused) == done

        for name, told in (("job", "60 interviews"), ("survey", "free_text"), ("people", "first 10 of 60 agents"),
                           ("results", "and 50 more")):  # fmt: skip
            html = (await cells.run(name)).html
            assert told in html
            assert "<b>" not in html

        awaited = await cells.run("_ = await job.run_async('a.run', concurrency=60, progress_bar='lines')")
        assert "60/60" in awaited.html
        assert "memory" in awaited.html
        assert (await cells.run("_ = job.run('b.run', concurrency=60, progress_bar=False)")).outputs == []


async def test_a_notebook_shows_each_table_once_and_print_writes_text(tmp_path: Path):
    shown = ("results.tally('q')", "results.select('answer.q')", "results.sql('select q from self')",
             "results.group_by('q').agg('count()')", "results.plot('q')", "results.plot_memory()")  # fmt: skip
    async with notebook(tmp_path) as cells:
        await cells.run(SETUP)
        await cells.run("results = job.run('town.run', limit=3, progress_bar=False)")
        for source in shown:
            (output,) = (await cells.run(source)).outputs
            assert output["output_type"] == "execute_result", source
            assert set(output["data"]) in ({"text/html", "text/plain"}, {"image/svg+xml", "text/plain"}), source
            assert output["data"]["text/plain"].strip(), source
        for source in ("print(results.tally('q'))", "results.select('answer.q').print()"):
            (printed,) = (await cells.run(source)).outputs
            assert printed["name"] == "stdout"
            assert printed["text"].splitlines()[2].startswith("x")
        (html,) = (await cells.run("results.select('answer.q').print(format='html')")).outputs
        assert "<td>x</td>" in html["data"]["text/html"]
        assert (await cells.run("text = str(results.tally('q'))")).outputs == []
        assert "x" in (await cells.run("text")).seen[0]


def opened(address: str) -> str:
    """What a browser shows in the end that is sent to an address and keeps its cookie."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        let_in = connection.getresponse()
        cookie = (let_in.getheader("Set-Cookie") or "").partition(";")[0]
        leads_to = re.search(r"url=([^\"]+)", unescape(let_in.read().decode()))
        assert leads_to is not None
        connection.request("GET", leads_to[1], headers={"Cookie": cookie})
        return connection.getresponse().read().decode()
    finally:
        connection.close()


async def test_a_notebook_shows_the_page_of_a_run_as_a_link_that_opens_it(tmp_path: Path):
    async with notebook(tmp_path) as cells:
        await cells.run(SETUP)
        outputs = (await cells.run("_ = job.run('town.run', limit=5, concurrency=5, view=True)")).outputs
        progress, shown = sorted(outputs, key=lambda output: "<a " in output["data"]["text/html"])
        assert (shown["output_type"], set(shown["data"])) == ("display_data", {"text/html", "text/plain"})
        address = shown["data"]["text/plain"]
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/runs/[0-9a-f]+\?token=[\w-]{32}", address)
        link = re.fullmatch(r'<a href="([^"]+)" target="_blank"[^>]*>([^<]+)</a>', shown["data"]["text/html"])
        assert link is not None
        assert (unescape(link[1]), link[2]) == (address, "The page of this run")
        assert "5/5" in progress["data"]["text/plain"]
        page = await asyncio.to_thread(opened, address)
        assert "<title>town.run" in page
        assert "5 of 60" in page
        (again,) = (await cells.run("_ = job.run('town.run', limit=5, view=True, progress_bar=False)")).outputs
        assert again["data"]["text/plain"] == address
