"""Transactions on a hardened connection: all of the block or nothing of it, whatever ends it.

Not `with connection:`, as apsw offers it: that rolls back while Python's error is still pending, when a connection's
authorizer, being Python, cannot be asked. SQLite would take that for a refusal and leave the transaction open.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import apsw


@contextmanager
def transaction(connection: apsw.Connection) -> Generator[None]:
    """On disk when the block has ended. Inside another one it is part of that."""
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
