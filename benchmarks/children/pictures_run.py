"""A picture a call to a model server, by Headrace or by a plain pool: `pictures_run WAY URL FOLDER IN_FLIGHT PATH`.

WAY is `run`, `embed` (the pictures are kept in the run file too), `workers` (in two processes), or `pool`: tasks that
share an aiohttp session, read and encode each picture whole, and append JSONL.
"""

import asyncio
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from benchmarks.processes import loop_ms, print_figures

_PROMPT = "What is in this picture?"


async def pool(url: str, waiting: Iterator[Path], in_flight: int, file: TextIO) -> None:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            for picture in waiting:
                data = base64.b64encode(picture.read_bytes()).decode()
                part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
                content = [{"type": "text", "text": _PROMPT}, part]
                asked = {"model": "m", "messages": [{"role": "user", "content": content}]}
                async with session.post(f"{url}/chat/completions", json=asked) as response:
                    found = await response.json()
                file.write(json.dumps({"path": str(picture), "answer": found["choices"][0]}) + "\n")

        await asyncio.gather(*(work() for _ in range(in_flight)))


def run(way: str, url: str, folder: str, in_flight: int, path: str) -> None:
    from headrace import Job, Model, ScenarioList

    model = Model("m", service_name="openai_compatible", base_url=url)
    pictures = ScenarioList.from_directory(folder, key_name="photo")
    job = Job.map(_PROMPT + "{{ photo }}", pictures).by(model)
    options = {"embed": True} if way == "embed" else {"workers": 2} if way == "workers" else {}
    with job.run(path, concurrency=in_flight, cache=False, memory="200MB", **options) as results:
        stats = results.stats()
        assert stats.failed == 0, results.failed()


def main(way: str, url: str, folder: str, in_flight: int, path: str) -> None:
    if way == "pool":
        import uvloop

        with Path(path).open("w", encoding="utf-8") as file:
            uvloop.run(pool(url, iter(sorted(Path(folder).iterdir())), in_flight, file))
    else:
        run(way, url, folder, in_flight, path)
    print_figures(loop_ms=loop_ms())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
