"""Looking through a run file that keeps no rows: its bits, and the failures and answers of interviews that failed.

Does not cover: its plan, lists and totals, which are checked as in every file (run_verification).
"""

from __future__ import annotations

import apsw

from headrace.plan.product import Plan
from headrace.store.contents import UNREADABLE, raw_rows, short_message
from headrace.store.run_file.details import read_counters
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.keeping.finished_bits import FinishedBits
from headrace.store.run_file.keeping.unkept_rows import failed_by_bits
from headrace.store.verification import Verification


def check_unkept(connection: apsw.Connection, found: Verification, header: RunHeader, plan: Plan) -> None:
    """Note what is damaged; bits that cannot be read are an error, as when a run begins."""
    bits, counters = FinishedBits.load(connection, found.path, len(plan)), read_counters(connection, found.path)
    failed = failed_by_bits(bits)
    for what, there in (("done", bits.count()), ("failed", failed.count)):
        if counters[what] != there:
            found.note("counters", f"{counters[what]:,} interviews are counted as {what}, {there:,} are there")
    found.rows += connection.execute("SELECT count(*) FROM finished").get
    if rows := connection.execute("SELECT count(*) FROM interviews").get:
        found.note("interviews", f"it has {rows:,} rows, and keeps none")
    for (ordinal,) in raw_rows(connection, "SELECT ordinal FROM failures UNION SELECT ordinal FROM details"):
        found.rows += 1
        if not isinstance(ordinal, int) or ordinal not in range(len(plan)) or ordinal not in failed:
            found.note("failures", "is of an interview that has not failed", ordinal)
    for ordinal, packed in raw_rows(connection, "SELECT ordinal, detail FROM details"):
        try:
            header.packer.unpack(packed)
        except UNREADABLE as error:
            found.note("details", short_message(error), ordinal)
