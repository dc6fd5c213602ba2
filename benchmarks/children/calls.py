"""Makes calls to a local model server and tells their CPU: `calls pool|provider URL COUNT IN_FLIGHT PATH`."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import aiohttp
import uvloop

from benchmarks.processes import loop_ms, print_figures
from headrace import Model
from headrace.models.provider import Request
from headrace.models.services import provider_for

Call: TypeAlias = Callable[[int], Awaitable[dict[str, Any]]]

_SYSTEM = "Answer the questions of a survey as the person described here would.\n\nage: 34\ncity: Lima"
_SCHEMA = {"type": "string"}
_WARM_UP = 200


def prompt(number: int) -> str:
    return f"Respondent {number}, how do you feel about your city? Answer in a few sentences."


async def with_workers(count: int, in_flight: int, call: Call, file: TextIO) -> None:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            row = await call(number)
            file.write(json.dumps(row) + "\n")

    await asyncio.gather(*(work() for _ in range(in_flight)))


async def timed_us(count: int, in_flight: int, call: Call, file: TextIO) -> float:
    await with_workers(_WARM_UP, in_flight, call, file)
    began_s = time.process_time()
    await with_workers(count, in_flight, call, file)
    return (time.process_time() - began_s) / count * 1e6


async def pool(url: str, count: int, in_flight: int, file: TextIO) -> float:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(number: int) -> dict[str, Any]:
            messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": prompt(number)}]
            asked = {"model": "m", "temperature": 0.2, "messages": messages}
            async with session.post(f"{url}/chat/completions", json=asked) as response:
                found = await response.json()
            usage = found["usage"]
            return {"id": number, "answer": found["choices"][0]["message"]["content"], "tokens": usage["prompt_tokens"]}

        return await timed_us(count, in_flight, call, file)


async def provider(url: str, count: int, in_flight: int, file: TextIO) -> float:
    asked = provider_for(Model("m", service_name="openai_compatible", base_url=url, temperature=0.2))

    async def call(number: int) -> dict[str, Any]:
        reply = await asked.ask(Request("q", _SYSTEM, prompt(number), _SCHEMA, {}, {}, 0, 1))
        return {"id": number, "answer": reply.text, "tokens": reply.input_tokens}

    try:
        return await timed_us(count, in_flight, call, file)
    finally:
        await asked.close()


def main(way: str, url: str, count: str, in_flight: str, path: str) -> None:
    measured = {"pool": pool, "provider": provider}[way]
    with Path(path).open("w", encoding="utf-8") as file:
        cpu_us = uvloop.run(measured(url, int(count), int(in_flight), file))
    print_figures(cpu_us=cpu_us, loop_ms=loop_ms())


if __name__ == "__main__":
    main(*sys.argv[1:])
