"""Transactions on a hardened connection: the whole block is committed, or nothing of it, however it ends.

Not apsw's `with connection:`, which rolls back while Python's error is pending. The connection's authorizer, being
Python, cannot be called then; SQLite would take that for a refusal and leave the transaction open.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import apsw


@contextmanager
def transaction(connection: apsw.Connection) -> Generator[None]:
    """Commit the block; it is on disk when the block has ended. Inside another transaction it is part of that one."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite has already rolled back
            connection.execute("ROLLBACK")
        raise
