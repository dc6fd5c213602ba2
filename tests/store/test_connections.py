import threading

import apsw

from headrace.memory.reclaiming import reclaim_memory
from headrace.store.connections import open_writer, release_pages


def cached_bytes(connection: apsw.Connection) -> int:
    return connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0]


def filled(path) -> apsw.Connection:
    path.touch()
    connection = open_writer(path)
    connection.execute("CREATE TABLE t(x)")
    with connection:
        connection.executemany("INSERT INTO t VALUES(?)", ((bytes(1000),) for _ in range(3000)))
    return connection


def test_pages_that_sqlite_keeps_are_dropped_where_memory_is_short(tmp_path):
    connection = filled(tmp_path / "a.db")
    before = cached_bytes(connection)
    reclaim_memory()
    assert before > 1_000_000
    assert cached_bytes(connection) < before / 10
    assert connection.execute("SELECT count(*) FROM t").get == 3000
    connection.close()
    release_pages()  # a closed one is none of its business


def test_dropping_pages_never_disturbs_a_thread_that_writes(tmp_path):
    connection = filled(tmp_path / "a.db")
    is_over = threading.Event()

    def drop() -> None:
        while not is_over.is_set():
            release_pages()

    dropping = threading.Thread(target=drop)
    dropping.start()
    try:
        for number in range(200):
            with connection:
                connection.execute("INSERT INTO t VALUES(?)", (number,))
    finally:
        is_over.set()
        dropping.join()
    assert connection.execute("SELECT count(*) FROM t").get == 3200
    connection.close()
