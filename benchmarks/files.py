"""Files in prompts: pictures of 2 MB through a mock service, many in flight, beside a plain pool of aiohttp workers.

The pictures are twenty of random pixels, each under many names (hard links): every call reads and sends 2 MB, and each
name is a scenario of its own. The service reads every byte, keeps none, and answers after half a second.
"""

import json
import os
import shutil
import struct
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.processes import ChildFailed, Ended, run_child, start_python
from benchmarks.report import Line, Table, loops, megabytes

_MOST_PEAK_BYTES = 200_000_000
_MOST_ROW_BYTES = 2_000
_PICTURES, _SIDE = 20, 816
_IN_FLIGHT = 200
_LATENCY_S = 0.5


def measure(bench: Bench) -> Table:
    count, peer_count = bench.sizes.pictures, bench.sizes.peer_pictures
    folder, few = bench.directory / "pictures", bench.directory / "few-pictures"
    content_bytes = _make_pictures(bench.directory / "twenty", folder, count)
    _make_pictures(bench.directory / "twenty", few, peer_count)
    with _service() as url:
        runs = {way: _run(bench, url, way, folder) for way in ("run", "embed", "workers")}
        peer, _ = _run(bench, url, "pool", few)
    (plain, plain_bytes), (embedded, embedded_bytes), (workers, _) = runs["run"], runs["embed"], runs["workers"]
    row_bytes = plain_bytes / count
    more_bytes = embedded_bytes - plain_bytes
    shutil.rmtree(folder)
    return Table(
        f"files: {count:,} pictures of {megabytes(content_bytes / _PICTURES)}, {_IN_FLIGHT} in flight",
        [
            _peak("peak RSS", plain, megabytes(peer.peak_bytes)),
            _peak("peak RSS, embed=True", embedded),
            Line("peak RSS of this process, workers=2", megabytes(workers.peak_bytes)),
            Line("CPU a picture, ms", f"{plain.cpu_s / count * 1e3:.1f}", peer=f"{peer.cpu_s / peer_count * 1e3:.1f}"),
            Line(
                "run file, bytes an interview",
                f"{row_bytes:,.0f}",
                f"<= {_MOST_ROW_BYTES:,}",
                row_bytes <= _MOST_ROW_BYTES,
            ),
            Line(
                "more with embed=True",
                megabytes(more_bytes),
                f"<= {megabytes(content_bytes * 1.05)}",
                more_bytes <= content_bytes * 1.05,
            ),
        ],
        [
            f"{_PICTURES} pictures of random pixels, {megabytes(content_bytes)}, under {count:,} names (hard links)",
            "CPU includes making the list: every name is read once for its digest",
            f"the service is a process of its own, reads every byte and answers after {_LATENCY_S} s",
            f"peer: a pool that reads and encodes each picture whole, {peer_count:,} pictures",
            loops([each.figures["loop_ms"] for each, _ in runs.values()]),
        ],
    )


def _peak(name: str, ended: Ended, peer: str = "") -> Line:
    is_ok = ended.peak_bytes <= _MOST_PEAK_BYTES
    return Line(name, megabytes(ended.peak_bytes), f"<= {megabytes(_MOST_PEAK_BYTES)}", is_ok, peer)


def _run(bench: Bench, url: str, way: str, folder: Path) -> tuple[Ended, int]:
    path = bench.directory / f"files-{way}.run"
    ended = run_child("pictures_run", way, url, folder, _IN_FLIGHT, path)
    size = path.stat().st_size
    path.unlink()
    return ended, size


@contextmanager
def _service() -> Iterator[str]:
    process = start_python("-m", "benchmarks.children.body_server", _LATENCY_S)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise ChildFailed("the mock service did not start")
        with urllib.request.urlopen(f"{url}/seen", timeout=30) as response:
            json.load(response)
        yield url
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _make_pictures(kept: Path, folder: Path, count: int) -> int:
    """Names for the twenty pictures, which are made once; how many bytes the pictures have together."""
    kept.mkdir(exist_ok=True)
    folder.mkdir()
    pictures = [kept / f"{number}.png" for number in range(_PICTURES)]
    for picture in pictures:
        if not picture.exists():
            picture.write_bytes(_picture())
    for number in range(count):
        os.link(pictures[number % _PICTURES], folder / f"{number:06}.png")
    return sum(picture.stat().st_size for picture in pictures)


def _picture() -> bytes:
    rows = b"".join(b"\0" + os.urandom(3 * _SIDE) for _ in range(_SIDE))
    header = struct.pack(">IIBBBBB", _SIDE, _SIDE, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
