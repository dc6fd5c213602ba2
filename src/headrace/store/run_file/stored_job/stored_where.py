"""The combinations that a job leaves out, as its run file keeps them: the conditions, and a bitmap by ordinal.

They stand in `meta`, where a file without conditions has none of these rows: `where` holds the conditions,
`where.count` how many ordinals are left out, and `where.00000` and so on the bitmap in compressed pages of a megabyte.
All are part of the plan's checksum. Does not cover: evaluating conditions (plan.left_out).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import zstandard

from headrace.expressions import Expression, parse
from headrace.plan.bit_writer import BitWriter
from headrace.plan.bitmap import BLOCK_BYTES, Bitmap
from headrace.plan.identity import where_row
from headrace.plan.product import Plan
from headrace.store.contents import damaged, decoding, typed_rows
from headrace.survey.values import decode_value

if TYPE_CHECKING:
    from headrace.plan.job import Job

_WHERE, _COUNT = "where", "where.count"
_PAGE_BYTES = 1 << 20
_PAGE_BLOCKS = _PAGE_BYTES // BLOCK_BYTES
_MOST_TEXT = 1_000_000


def left_out_of(job: Job, plan: Plan, before: Bitmap | None = None) -> Bitmap | None:
    """The ordinals of a plan that a job leaves out; `before` has those of the boxes that are in the file already."""
    if not job.conditions:
        return None
    written = BitWriter(plan.size)
    if before is not None:
        written.append_all(before)
    for base, box in zip(plan.bases, plan.boxes, strict=False):
        if before is None or base >= before.length:
            written.append_all(job.left_out(box))
    return written.bitmap()


def write_where(connection: apsw.Connection, job: Job, left_out: Bitmap | None) -> None:
    """Write the conditions and what they leave out, inside the caller's transaction."""
    if left_out is None:
        return
    write = "INSERT OR REPLACE INTO meta VALUES(?, ?)"
    connection.execute(write, (_WHERE, where_row(job.conditions)))
    connection.execute(write, (_COUNT, left_out.count))
    compress = zstandard.ZstdCompressor(level=3).compress
    for number, first in enumerate(range(0, len(left_out.blocks), _PAGE_BLOCKS)):
        page = b"".join(map(left_out.block, left_out.blocks[first : first + _PAGE_BLOCKS]))
        connection.execute(write, (_page_key(number), compress(page[: _bytes_of(left_out.length, number)])))


def read_conditions(connection: apsw.Connection, path: Path) -> tuple[Expression, ...]:
    """The conditions of the job in a run file; none where it has none."""
    with decoding(path, "its conditions"):
        sql = f"SELECT CASE WHEN length(value) <= {_MOST_TEXT} THEN value ELSE '' END FROM meta WHERE key = ?"
        rows = typed_rows(connection, tuple[str], sql, (_WHERE,))
        return tuple(parse(source) for (row,) in rows for source in decode_value(row))


def read_left_out(connection: apsw.Connection, path: Path, plan: Plan) -> Bitmap | None:
    """The ordinals that the job in a run file leaves out."""
    if (count := count_left_out(connection, path)) is None:
        return None
    found, decompress = Bitmap(plan.size), zstandard.ZstdDecompressor(max_window_size=_PAGE_BYTES).decompress
    with decoding(path, "what it leaves out"):
        for number, first in enumerate(range(0, len(found.blocks), _PAGE_BLOCKS)):
            sql = f"SELECT value FROM meta WHERE key = ? AND length(value) <= {2 * _PAGE_BYTES}"
            ((packed,),) = typed_rows(connection, tuple[bytes], sql, (_page_key(number),))
            page = decompress(packed, max_output_size=_PAGE_BYTES)
            if len(page) != _bytes_of(plan.size, number):
                raise ValueError(f"page {number} has another length")
            for place, block in enumerate(found.blocks[first : first + _PAGE_BLOCKS]):
                found.put_block(block, page[place * BLOCK_BYTES : (place + 1) * BLOCK_BYTES])
    if found.count != count or found.count_below(plan.size) != count:
        raise damaged(path, "what it leaves out does not fit its plan")
    return found


def _bytes_of(length: int, page: int) -> int:
    """How many bytes a page has, of a bitmap of so many bits."""
    return min(_PAGE_BYTES, (length + 7) // 8 - page * _PAGE_BYTES)


def count_left_out(connection: apsw.Connection, path: Path) -> int | None:
    """How many ordinals the job in a run file leaves out; None where it has no conditions."""
    with decoding(path, "what it leaves out"):
        rows = typed_rows(connection, tuple[int], "SELECT value FROM meta WHERE key = ?", (_COUNT,))
    return rows[0][0] if rows else None


def _page_key(number: int) -> str:
    return f"{_WHERE}.{number:05}"
