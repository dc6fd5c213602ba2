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
from headrace.plan.bitmap import Bitmap, BitWriter
from headrace.plan.identity import where_row
from headrace.plan.product import Plan
from headrace.store.contents import damaged, decoding, typed_rows
from headrace.survey.values import decode_value

if TYPE_CHECKING:
    from headrace.plan.job import Job

_WHERE, _COUNT = "where", "where.count"
_PAGE_BYTES = 1 << 20
_MOST_TEXT = 1_000_000


def left_out_of(job: Job, plan: Plan, before: Bitmap | None = None) -> Bitmap | None:
    """The ordinals of a plan that a job leaves out; `before` has those of the boxes that are in the file already."""
    if not job.conditions:
        return None
    written = BitWriter()
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
    for number, first in enumerate(range(0, len(left_out.bits), _PAGE_BYTES)):
        page = bytes(left_out.bits[first : first + _PAGE_BYTES])
        connection.execute(write, (_page_key(number), compress(page)))


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
    bits, decompress = bytearray(), zstandard.ZstdDecompressor(max_window_size=_PAGE_BYTES).decompress
    with decoding(path, "what it leaves out"):
        for number in range(-(-((plan.size + 7) // 8) // _PAGE_BYTES)):
            sql = f"SELECT value FROM meta WHERE key = ? AND length(value) <= {2 * _PAGE_BYTES}"
            ((page,),) = typed_rows(connection, tuple[bytes], sql, (_page_key(number),))
            bits += decompress(page, max_output_size=_PAGE_BYTES)
    found = Bitmap.of(plan.size, bits)
    if len(bits) != (plan.size + 7) // 8 or found.count != count:
        raise damaged(path, "what it leaves out does not fit its plan")
    return found


def count_left_out(connection: apsw.Connection, path: Path) -> int | None:
    """How many ordinals the job in a run file leaves out; None where it has no conditions."""
    with decoding(path, "what it leaves out"):
        rows = typed_rows(connection, tuple[int], "SELECT value FROM meta WHERE key = ?", (_COUNT,))
    return rows[0][0] if rows else None


def _page_key(number: int) -> str:
    return f"{_WHERE}.{number:05}"
