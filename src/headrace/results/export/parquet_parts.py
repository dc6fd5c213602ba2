"""A directory of Parquet part files of a run file's answers and fields, brought up to date by writing only what is new.

    x.run.parts/manifest.json            what is there (part_manifest)
    x.run.parts/part-3-<random>.parquet  the interviews of range 3: ordinals 196,608 to 262,143, in plan order
    x.run.parts/build.lock               one process at a time brings the directory up to date; the others wait
    x.run.parts/spill-<random>/          what queries of one connection hold on disk
    x.run.parts/readers.lock             held, shared, by whoever reads: a part that was replaced goes when nobody does

A part is never changed. A range whose digest is another than the manifest's is written again under a new name; where a
column has become wider, all ranges are. The manifest is replaced when all new parts are on disk, so a kill leaves the
old state and some unlisted files, which go the next time. Each range is as the run file was when it was read; with a
run that goes on, later ranges may be newer. Does not cover: asking the parts (duckdb_views).
"""

from __future__ import annotations

import os
import secrets
import shutil
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from pathlib import Path

import msgspec

from headrace.errors import OptionError
from headrace.results.export.arrow_batches import column_shapes, import_arrow, with_shapes
from headrace.results.export.column_shapes import Leaf, Shape, joined
from headrace.results.export.column_source import Batch, ColumnSource, Kinds
from headrace.results.export.export_progress import watched
from headrace.results.export.parquet_files import write_row_groups
from headrace.results.export.part_manifest import (
    PartEntry,
    PartManifest,
    encoded_shape,
    is_part_name,
    load_manifest,
    new_name,
    save_manifest,
)
from headrace.store.private import make_directory, make_file, open_file, sync
from headrace.store.run_file.range_digests import RANGE_BITS, RangeDigest

try:
    import fcntl
except ImportError:  # Windows has no flock; it refuses to remove files that are open
    fcntl = None

ORDINAL = "interview.ordinal"
_SPILL = "spill-"


class RangedSource(msgspec.Struct, frozen=True, kw_only=True):
    """What parts are made of. `columns` has the column `interview.ordinal`; `batches` reads ordinals from the first up
    to the second, in order.
    """

    path: Path
    made_at: float
    columns: list[str]
    kinds: Callable[[], Kinds]
    digests: Callable[[], dict[int, RangeDigest]]
    batches: Callable[[int, int], Iterator[Batch]]


class OpenParts:
    """Parts that are up to date, and stay on disk until `release`."""

    def __init__(self, directory: Path, manifest: PartManifest, lease: int | None) -> None:
        self.files = [directory / entry.name for entry in manifest.entries]
        self.columns = [name for name, _ in manifest.columns]
        # Of this connection alone: DuckDB gives the files in it the same names everywhere. Made when it is needed.
        self.spill = directory / f"{_SPILL}{secrets.token_hex(8)}"
        self._lease = lease

    def release(self) -> None:
        lease, self._lease = self._lease, None
        if lease is not None:
            os.close(lease)


def up_to_date_parts(directory: Path, source: RangedSource) -> OpenParts:
    """Bring the directory up to date and keep its parts from being removed."""
    import_arrow()
    try:
        _make_private(directory)
        with _locked(directory / "build.lock", is_shared=False) as is_alone:
            manifest = _refreshed(directory, source)
            if is_alone:
                _remove_unlisted(directory, manifest)
            return OpenParts(directory, manifest, _lease(directory))
    except OSError as error:
        raise OptionError(
            f"{directory} cannot be written: {error.strerror or error}.",
            fix="Give a directory that can: results.duckdb(directory=...).",
        ) from error


def _make_private(directory: Path) -> None:
    make_directory(directory)
    if directory.is_symlink() or (hasattr(os, "getuid") and directory.stat().st_uid != os.getuid()):
        raise OptionError(
            f"{directory} is a link, or belongs to somebody else.", fix="Give another: results.duckdb(directory=...)."
        )
    directory.chmod(0o700)


def _refreshed(directory: Path, source: RangedSource) -> PartManifest:
    known = load_manifest(directory)
    if known is None or known.made_at != source.made_at:
        known = PartManifest(made_at=source.made_at, columns=[])
    digests = source.digests()
    kept = {
        number: entry
        for number, entry in known.parts.items()
        if digests.get(number) == entry.digest and _is_there(directory, entry)
    }
    has_schema = known.schema is not None and _is_there(directory, known.schema)
    names = [name for name, _ in known.columns]
    if has_schema and kept.keys() == digests.keys() and kept.keys() == known.parts.keys() and names == source.columns:
        return known
    manifest = _Refresh(directory, source, digests, known.shapes, kept).run()
    save_manifest(directory, manifest)
    return manifest


class _Refresh:
    """Writes the ranges that are not among `kept`; all of them, where a column has become wider."""

    def __init__(
        self,
        directory: Path,
        source: RangedSource,
        digests: dict[int, RangeDigest],
        known: dict[str, Shape],
        kept: dict[int, PartEntry],
    ) -> None:
        self._directory = directory
        self._source = source
        self._digests = digests
        self._known = known
        self._kept = kept

    def run(self) -> PartManifest:
        missing = ColumnSource(self._source.columns, self._source.kinds, self._batches)
        return with_shapes(self._joined(column_shapes(missing)), self._written)

    def _written(self, shapes: list[Shape]) -> PartManifest:
        self._drop_narrower(shapes)
        written = self._write(shapes)
        columns = list(zip(self._source.columns, map(encoded_shape, shapes), strict=True))
        schema = self._part("schema", (0, 0), shapes, iter(()))
        return PartManifest(made_at=self._source.made_at, columns=columns, schema=schema, parts=self._kept | written)

    def _joined(self, found: Sequence[Shape]) -> list[Shape]:
        names = self._source.columns
        return [joined(self._known.get(name, Leaf.NOTHING), shape) for name, shape in zip(names, found, strict=True)]

    def _drop_narrower(self, shapes: Sequence[Shape]) -> None:
        """Write every range again where one of the columns that its part has is wider by now, or gone."""
        now = dict(zip(self._source.columns, shapes, strict=True))
        if any(now.get(name) != shape for name, shape in self._known.items()):
            self._kept, self._known = {}, {}

    def _missing(self) -> list[int]:
        return sorted(self._digests.keys() - self._kept.keys())

    def _batches(self) -> Iterator[Batch]:
        """The rows that are to be written."""
        missing = self._missing()
        total = sum(self._digests[number][0] for number in missing)
        streams = (self._source.batches(first << RANGE_BITS, stop << RANGE_BITS) for first, stop in _runs(missing))
        return watched(chain.from_iterable(streams), lambda: total)

    def _write(self, shapes: list[Shape]) -> dict[int, PartEntry]:
        pieces = _by_range(self._batches(), self._source.columns.index(ORDINAL))
        written: dict[int, PartEntry] = {}
        for number, batches in groupby(pieces, key=lambda piece: piece[0]):
            digest = self._digests.get(number, (0, 0))  # (0, 0) is that of no rows: it is written again next time
            written[number] = self._part(f"part-{number}", digest, shapes, (batch for _, batch in batches))
        return written

    def _part(self, kind: str, digest: RangeDigest, shapes: list[Shape], batches: Iterator[Batch]) -> PartEntry:
        path = self._directory / new_name(kind)
        make_file(path)
        # A file that is not finished is not listed, and so it goes next time; no need to remove it here.
        write_row_groups(path, ColumnSource(self._source.columns, self._source.kinds, lambda: batches), shapes)
        sync(path)
        return PartEntry(path.name, digest, path.stat().st_size)


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges that follow each other, as first and stop: they are read in one go."""
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        held = [number for _, number in run]
        yield held[0], held[-1] + 1


def _by_range(batches: Iterator[Batch], ordinal_at: int) -> Iterator[tuple[int, Batch]]:
    """The batches cut where a range ends, each with the number of its range."""
    for batch in batches:
        ordinals, first = batch[ordinal_at], 0
        while first < len(ordinals):
            number = ordinals[first] >> RANGE_BITS
            stop = bisect_left(ordinals, (number + 1) << RANGE_BITS, lo=first)
            yield number, [values[first:stop] for values in batch]
            first = stop


def _is_there(directory: Path, entry: PartEntry) -> bool:
    try:
        return (directory / entry.name).lstat().st_size == entry.file_bytes
    except OSError:
        return False


@contextmanager
def _locked(path: Path, *, is_shared: bool) -> Generator[bool]:
    """Hold a lock, waiting for it; False where files cannot be locked here."""
    descriptor = open_file(path)
    try:
        yield _lock(descriptor, is_shared=is_shared)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, is_shared: bool, waits: bool = True) -> bool:
    if fcntl is None:
        return False
    how = (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        return False
    return True


def _lease(directory: Path) -> int | None:
    """A shared lock that keeps parts from being removed as long as it is open."""
    descriptor = open_file(directory / "readers.lock")
    _lock(descriptor, is_shared=True)
    return descriptor


def _remove_unlisted(directory: Path, manifest: PartManifest) -> None:
    """Remove parts that were replaced and what a kill has left, unless some process may still read them."""
    descriptor = open_file(directory / "readers.lock")
    try:
        if not _lock(descriptor, is_shared=False, waits=False):
            return
        listed = {entry.name for entry in manifest.entries}
        for path in directory.iterdir():
            if path.name.startswith(_SPILL):
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in listed and (is_part_name(path.name) or path.name.endswith(".json.part")):
                with suppress(OSError):
                    path.unlink()
    finally:
        os.close(descriptor)
