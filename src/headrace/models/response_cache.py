"""Replies that earlier runs paid for. Covers: keys, what may be kept, reading, and writing in the background.

A run reads only what is older than its own start: otherwise two identical respondents would answer alike, or not, by
accident of timing. The cache is a convenience: busy, broken, full or out of reach, it is skipped and counted, and the
run goes on.
Does not cover: the file (models.cache_file); who asks, and whether a reply was accepted as an answer (execute).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import apsw
import msgspec
import zstandard

from headrace.encoding import LARGE_BYTES, encode_large
from headrace.errors import RunFileError
from headrace.limits import CacheLimits
from headrace.models.cache_file import (
    DAMAGE,
    CacheFile,
    CacheRow,
    UnusableCache,
    begin_anew,
    open_cache_file,
    split_key,
)
from headrace.models.provider import Finish, Reply
from headrace.steady_clock import SteadyClock
from headrace.survey.questions.base import Schema

_KEY_BYTES = 16
_BATCH = 2_000
_BATCH_BYTES = 4_000_000
_OLDEST_S = 5.0  # a trickle is written this often
_MOST_REPLY_BYTES = 4_000_000
_LEVEL = -1  # half the time of level 1, for a third more bytes


class _Kept(msgspec.Struct, array_like=True, gc=False):
    """A reply as the cache stores it: without the rates of that moment. A change needs a new VERSION."""

    text: str
    raw: bytes
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    repaired: bool


_encoder = msgspec.msgpack.Encoder()
_decode = msgspec.msgpack.Decoder(_Kept).decode


def cache_key(model_row: bytes, system: str, user: str, schema: Schema, iteration: int) -> bytes:
    """Sixteen bytes that differ wherever anything differs that the reply may depend on."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    # The order of a schema's fields is left as it is: a model may answer in that order.
    parts = (model_row, _bytes(system), _bytes(user), msgspec.json.encode(schema))
    lengths = [len(part) for part in parts]
    digest.update(b"%d %d %d %d %d " % (*lengths, iteration))  # or one text's end might be the next one's beginning
    for part in parts:
        digest.update(part)
    return digest.digest()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class ResponseCache:
    """Made by `open`; one thread at a time. `flush` and `close` wait for the disk. `why_not` says why it is of no use.

    `skipped` counts what the cache could not do: replies not looked up and replies not kept.
    """

    def __init__(self, path: Path, started_at: float, limits: CacheLimits, clock: Callable[[], float]) -> None:
        self._path = path
        self._started_at = started_at
        self._clock = clock
        self._file: CacheFile | None = None
        self._waiting: dict[bytes, tuple[float, bytes]] = {}
        self._waiting_bytes = 0
        self._waiting_since = 0.0
        self._writing: Future[int] | None = None
        self._writing_count = 0
        self._thread: ThreadPoolExecutor | None = None
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._compress = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress
        self._is_damaged = False
        self.hits = self.misses = self.skipped = self.written = 0
        self.why_not: str | None = None
        try:
            self._file = open_cache_file(path, limits)
        except UnusableCache as error:
            self.why_not = error.message

    @classmethod
    def open(
        cls,
        path: Path,
        started_at: float,
        limits: CacheLimits | None = None,
        clock: Callable[[], float] | None = None,
    ) -> ResponseCache:
        """The cache at `path` for a run that started then, in seconds since 1970. It never fails."""
        return cls(path, started_at, limits or CacheLimits(), clock or SteadyClock.from_wall().now)

    def get(self, key: bytes) -> Reply | None:
        if self._file is None or self._is_damaged:
            self.skipped += 1
            return None
        try:
            packed = self._file.find(key, self._started_at)
        except apsw.Error as error:
            self.skipped += 1
            self._failed(error)
            return None
        kept = None if packed is None else self._unpacked(packed)
        if kept is None:
            self.misses += 1
            return None
        self.hits += 1
        return Reply(
            kept.text,
            kept.raw,
            kept.input_tokens,
            kept.output_tokens,
            kept.repaired,
            kept.cached_tokens,
            kept.reasoning_tokens,
        )

    def put(self, key: bytes, reply: Reply) -> None:
        """Keep a reply that was accepted as an answer. One that was cut off or refused is never kept."""
        if reply.finish is not Finish.STOP or not reply.text:
            return
        reply_bytes = len(reply.raw) + len(reply.text)
        if self._file is None or reply_bytes > _MOST_REPLY_BYTES or not self._has_room():
            self.skipped += 1
            return
        now = self._clock()
        if not self._waiting:
            self._waiting_since = now
        # Here and not in the thread: zstd gives up Python's lock, and the thread would have to fight for it each time.
        kept, is_large = _kept(reply), reply_bytes >= LARGE_BYTES
        packed = self._compress(encode_large(_encoder, kept, reply_bytes) if is_large else _encoder.encode(kept))
        self._waiting[key] = (now, packed)
        self._waiting_bytes += len(packed)
        if self._is_ripe(now):
            self._hand_over()

    def shrink(self) -> None:
        """Writes the waiting replies now, unless the writing thread is still busy with the last batch."""
        if self._note_written(wait=False):
            self._hand_over()

    def flush(self) -> None:
        """Writes the waiting replies, and waits for the disk."""
        self._note_written(wait=True)
        self._hand_over()
        self._note_written(wait=True)

    def close(self) -> None:
        """Writes the waiting replies and closes the file. Where it proved damaged, the next run begins a new one."""
        if self._file is None:
            return
        self.flush()
        if self._thread is not None:
            self._thread.shutdown()
        self._file.close()
        self._file = None
        if self._is_damaged:
            with suppress(apsw.Error, OSError, RunFileError):
                begin_anew(self._path)

    def _unpacked(self, packed: bytes) -> _Kept | None:
        """Decodes an entry; None for one whose bytes have changed on disk."""
        try:
            if zstandard.frame_content_size(packed) > 4 * _MOST_REPLY_BYTES:
                return None
            return _decode(self._decompress(packed))
        except (zstandard.ZstdError, msgspec.DecodeError):
            return None

    def _has_room(self) -> bool:
        """Whether another reply may wait to be written: a disk that hangs must not fill up the memory."""
        return len(self._waiting) < 2 * _BATCH and self._waiting_bytes < 2 * _BATCH_BYTES

    def _is_ripe(self, now: float) -> bool:
        is_full = len(self._waiting) >= _BATCH or self._waiting_bytes >= _BATCH_BYTES
        if not is_full and 0 <= now - self._waiting_since < _OLDEST_S:
            return False
        return self._note_written(wait=False)

    def _hand_over(self) -> None:
        """Gives the waiting replies to the writing thread."""
        if not self._waiting:
            return
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="headrace-cache")
        self._writing, self._writing_count = self._thread.submit(self._write, self._waiting), len(self._waiting)
        self._waiting, self._waiting_bytes = {}, 0

    def _note_written(self, *, wait: bool) -> bool:
        """Takes the writing thread's result; True where the thread is idle."""
        if self._writing is None:
            return True
        if not wait and not self._writing.done():
            return False
        written = self._writing.result()
        self.written += written
        self.skipped += self._writing_count - written
        self._writing = None
        return True

    def _write(self, batch: dict[bytes, tuple[float, bytes]]) -> int:
        """Writes a batch, in the writing thread; returns how many replies were written."""
        if self._file is None or self._is_damaged:
            return 0
        rows: list[CacheRow] = [(*split_key(key), at, packed) for key, (at, packed) in batch.items()]
        try:
            return len(rows) if self._file.write(rows) else 0
        except (apsw.Error, OSError) as error:
            self._failed(error)
            return 0

    def _failed(self, error: Exception) -> None:
        self.why_not = str(error)
        self._is_damaged = self._is_damaged or isinstance(error, DAMAGE)


def _kept(reply: Reply) -> _Kept:
    return _Kept(
        reply.text,
        reply.raw,
        reply.input_tokens,
        reply.output_tokens,
        reply.cached_tokens,
        reply.reasoning_tokens,
        reply.repaired,
    )
