"""A peer's pool of processes, put to the same tasks as ours: `pool_peer NAME`. Runs in the peer's own environment."""

import logging
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from benchmarks.children import pool_tasks
from benchmarks.children.process_sizes import LargestGrowth, descendants, proportional_kb
from benchmarks.processes import print_figures

_STARTS = 3
_PATIENCE_S = 60


class Pool(Protocol):
    """Two workers. `submit` returns something with `result(timeout)`. Where `has_limit`, tasks have a memory limit,
    given in the peer's own way. `start_one` is one more worker, or a pool of one; it returns what ends it.
    """

    has_limit: bool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any: ...
    def start_one(self) -> Callable[[], object]: ...
    def close(self) -> None: ...


class Futures:
    """concurrent.futures and loky."""

    has_limit = False

    def __init__(self, make: Callable[[int], Any]) -> None:
        self._make = make
        self._pool = make(2)
        self.submit = self._pool.submit

    def start_one(self) -> Callable[[], object]:
        pool = self._make(1)
        pool.submit(pool_tasks.echo, 1).result()
        return pool.shutdown

    def close(self) -> None:
        self._pool.shutdown()


def concurrent_futures(method: str) -> Futures:
    from concurrent.futures import ProcessPoolExecutor

    context = get_context(method)
    if method == "forkserver":  # at its best: what its workers need is imported once
        context.set_forkserver_preload(["__main__", pool_tasks.__name__])
    return Futures(lambda workers: ProcessPoolExecutor(workers, mp_context=context))


def loky() -> Futures:
    from loky import ProcessPoolExecutor  # pyright: ignore[reportMissingImports]

    return Futures(lambda workers: ProcessPoolExecutor(max_workers=workers))


class Pebble:
    has_limit = False

    def __init__(self) -> None:
        from pebble import ProcessPool  # pyright: ignore[reportMissingImports]

        self._make = lambda workers: ProcessPool(max_workers=workers, context=get_context("spawn"))
        self._pool = self._make(2)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._pool.schedule(function, args=list(arguments))

    def start_one(self) -> Callable[[], object]:
        pool = self._make(1)
        pool.schedule(pool_tasks.echo, args=[1]).result()
        return lambda: _end(pool)

    def close(self) -> None:
        _end(self._pool)


def _end(pool: Any) -> None:
    pool.stop()
    pool.join()


class Dask:
    has_limit = True

    def __init__(self) -> None:
        from distributed import Client, LocalCluster  # pyright: ignore[reportMissingImports]

        logging.disable(logging.CRITICAL)
        self._cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=pool_tasks.LIMIT_BYTES
        )
        self._client = Client(self._cluster)
        self._workers = 2

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._client.submit(function, *arguments, pure=False)

    def start_one(self) -> Callable[[], object]:
        self._workers += 1
        self._cluster.scale(self._workers)
        self._client.wait_for_workers(self._workers)
        return lambda: None  # ends with its cluster

    def close(self) -> None:
        self._client.close()
        self._cluster.close()


class Ray:
    has_limit = True

    def __init__(self) -> None:
        import ray  # pyright: ignore[reportMissingImports]

        self._ray = ray
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
        self._remote = ray.remote(_Actor)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        options = {"memory": pool_tasks.LIMIT_BYTES} if function is pool_tasks.run_away else {"num_cpus": 1}
        return _Reference(self._ray, self._ray.remote(**options)(function).remote(*arguments))

    def start_one(self) -> Callable[[], object]:
        actor = self._remote.options(num_cpus=0).remote()
        self._ray.get(actor.ping.remote())
        return lambda: self._ray.kill(actor)

    def close(self) -> None:
        self._ray.shutdown()


class _Actor:
    def ping(self) -> int:
        return 1


class _Reference:
    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray = ray
        self._reference = reference

    def result(self, timeout: float | None = None) -> Any:
        return self._ray.get(self._reference, timeout=timeout)


PEERS: dict[str, Callable[[], Pool]] = {
    "fork": lambda: concurrent_futures("fork"),
    "spawn": lambda: concurrent_futures("spawn"),
    "forkserver": lambda: concurrent_futures("forkserver"),
    "loky": loky,
    "pebble": Pebble,
    "dask": Dask,
    "ray": Ray,
}


@contextmanager
def _opened(name: str) -> Iterator[Pool]:
    pool = PEERS[name]()
    try:
        for result in [pool.submit(pool_tasks.wait_or_die, -1) for _ in range(4)]:
            result.result()  # both workers are there
        yield pool
    finally:
        pool.close()


def measure(name: str) -> dict[str, Any]:
    """Each in a pool of its own where it may break the pool."""
    with _opened(name) as pool:
        tree_kb = proportional_kb(descendants(os.getpid()))
        figures = {"tree_kb": tree_kb, "trip_us": _trip_us(pool), "start_ms": _start_ms(pool)}
        figures["has_limit"] = pool.has_limit
    with _opened(name) as pool:
        figures["lost"] = _lost(pool)
    with _opened(name) as pool:
        figures |= _runaway(pool)
    with _opened(name) as pool:
        figures |= _steps(pool)
    return figures


def _start_ms(pool: Pool) -> float:
    """Until its first result, without what it takes to end it."""
    took: list[float] = []
    for _ in range(_STARTS):
        began = time.perf_counter()
        end = pool.start_one()
        took.append(time.perf_counter() - began)
        end()
    return statistics.median(took) * 1e3


def _trip_us(pool: Pool) -> float:
    return min(_median_s(pool) for _ in range(pool_tasks.BATCHES)) * 1e6


def _median_s(pool: Pool) -> float:
    took: list[float] = []
    until = time.perf_counter() + pool_tasks.BATCH_S
    while time.perf_counter() < until:
        took.append(_timed_s(lambda: pool.submit(pool_tasks.echo, 1).result()))
    return statistics.median(took)


def _lost(pool: Pool) -> int:
    """Of those that did nothing wrong."""
    submitted = [pool.submit(pool_tasks.wait_or_die, number) for number in range(pool_tasks.TASKS)]
    ended = [_ended(one) for one in submitted]
    return sum(told != number for number, told in enumerate(ended) if number != pool_tasks.KILLER)


def _runaway(pool: Pool) -> dict[str, Any]:
    with LargestGrowth() as growth:
        ended = _ended(pool.submit(pool_tasks.run_away, pool_tasks.RUNAWAY_MB))
    return {"peak_bytes": growth.bytes, "ended": "done" if ended == pool_tasks.RUNAWAY_MB else ended}


def _steps(pool: Pool) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "steps")
        ended = _ended(pool.submit(pool_tasks.take_steps, path))
        return {"steps": pool_tasks.steps_taken(path), "finished": ended == pool_tasks.STEPS}


@contextmanager
def _quietly() -> Iterator[None]:
    """Peers say much about workers that die; it is shown where the measure itself fails."""
    before = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            yield
        except BaseException:
            said.seek(0)
            os.write(before, said.read())
            raise
        finally:
            os.dup2(before, 2)


def _ended(submitted: Any) -> Any:
    """Its result, or the name of the error."""
    try:
        return submitted.result(timeout=_PATIENCE_S)
    except Exception as error:  # noqa: BLE001 - what it is called is what is measured
        return type(error).__name__


def _timed_s(act: Callable[[], Any]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with _quietly():
        found = measure(sys.argv[1])
    print_figures(**found)
