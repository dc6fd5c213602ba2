"""The same calls by Ray Data: `ray_data_calls PATH CALLS IN_FLIGHT URL ADDRESS CLUSTER`.

`map_batches` with an actor for each CPU of the cluster; each asks its whole batch at once by aiohttp, so that as many
calls are in flight as for us, and the answers are written to Parquet files.
"""

import asyncio
import logging
import os
import sys
import time
from typing import Any

from benchmarks.cluster_cpu import CpuWatch
from benchmarks.processes import print_figures


class Asking:
    """One of the actors. Its session lives as long as the loop that all its batches use."""

    def __init__(self, url: str) -> None:
        import aiohttp

        self._url = f"{url}/chat/completions"
        self._loop = asyncio.new_event_loop()
        self._session: aiohttp.ClientSession = self._loop.run_until_complete(self._open())

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, "text": self._loop.run_until_complete(self._ask_all(batch["id"]))}

    async def _open(self) -> Any:
        import aiohttp

        return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))

    async def _ask_all(self, numbers: Any) -> list[str]:
        return await asyncio.gather(*(self._ask(int(number)) for number in numbers))

    async def _ask(self, number: int) -> str:
        body = {"model": "m", "messages": [{"role": "user", "content": f"p{number}, tell me."}]}
        async with self._session.post(self._url, json=body) as response:
            return (await response.json())["choices"][0]["message"]["content"]


def main(path: str, calls: int, in_flight: int, url: str, address: str, cluster: int) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    import ray.data

    with CpuWatch(cluster) as cpu:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR)
        ray.data.DataContext.get_current().enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        actors = int(ray.cluster_resources()["CPU"])
        batch = in_flight // actors
        began_s = time.perf_counter()
        rows: Any = ray.data.range(calls, override_num_blocks=max(actors, calls // batch))
        # No CPUs for those that wait for a service: Ray Data needs them for its own tasks.
        asked = rows.map_batches(
            Asking,
            fn_constructor_args=(url,),
            batch_size=batch,
            compute=ray.data.ActorPoolStrategy(size=actors),
            num_cpus=0,
            zero_copy_batch=True,
        )
        asked.write_parquet(path)
        took_s = time.perf_counter() - began_s
        ray.shutdown()
    print_figures(seconds=took_s, **cpu.figures())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], sys.argv[5], int(sys.argv[6]))
