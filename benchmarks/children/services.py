"""One prompt a row to a local model server, by Headrace or by a plain pool: `services WAY URL ROWS IN_FLIGHT PATH`.

WAY is `run` (the response cache off), `cached` (on), `workers` (off, in two processes), `pool`: tasks that share an
aiohttp session and append JSONL, or `tuned`: the same pool at its best, with msgspec and a garbage collector that looks
as seldom as ours.
"""

import asyncio
import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from benchmarks.processes import loop_ms, print_figures

_SYSTEM = "Answer the questions of a survey as the person described here would.\n\nage: 34\ncity: Lima"
_PROMPT = "Respondent {{ number }}, how do you feel about your city? Answer in a few sentences."

_YOUNG_OBJECTS = 20_000  # as in headrace.memory.collector
_HEADERS = {"Content-Type": "application/json"}


def rows(path: str) -> Iterator[dict[str, Any]]:
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


async def pool(url: str, data: str, in_flight: int, file: TextIO, *, is_tuned: bool) -> None:
    import aiohttp

    loads, dumps = _tuned() if is_tuned else (json.loads, json.dumps)

    waiting = rows(data)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def work() -> None:
            for row in waiting:
                text = _PROMPT.replace("{{ number }}", str(row["number"]))
                messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": text}]
                asked = {"model": "m", "temperature": 0.2, "messages": messages}
                async with session.post(f"{url}/chat/completions", data=dumps(asked), headers=_HEADERS) as response:
                    found = loads(await response.read())
                usage, answer = found["usage"], found["choices"][0]["message"]["content"]
                file.write(dumps({**row, "answer": answer, "tokens": usage["prompt_tokens"]}) + "\n")

        await asyncio.gather(*(work() for _ in range(in_flight)))


def _tuned() -> tuple[Callable[[bytes], Any], Callable[[Any], str]]:
    import msgspec

    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
    encode = msgspec.json.Encoder().encode
    return msgspec.json.Decoder().decode, lambda value: encode(value).decode()


def run(url: str, data: str, in_flight: int, path: str, *, cache: bool, workers: int) -> dict[str, int]:
    from headrace import Job, Model

    model = Model("m", service_name="openai_compatible", base_url=url, temperature=0.2)
    job = Job.map(_PROMPT, data, system_prompt=_SYSTEM).by(model)
    stats = job.run(path, concurrency=in_flight, cache=cache, workers=workers).stats()
    assert stats.failed == 0
    return {"interviews": stats.interviews, "hits": stats.cache_hits}


def main(way: str, url: str, data: str, in_flight: int, path: str) -> None:
    told: dict[str, int] = {}
    if way in {"pool", "tuned"}:
        import uvloop

        with Path(path).open("w", encoding="utf-8") as file:
            uvloop.run(pool(url, data, in_flight, file, is_tuned=way == "tuned"))
    else:
        told = run(url, data, in_flight, path, cache=way == "cached", workers=2 if way == "workers" else 0)
    print_figures(loop_ms=loop_ms(), **told)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
