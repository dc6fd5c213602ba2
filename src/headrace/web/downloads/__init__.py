"""Downloads: what a table's filter leaves, in the order of the plan, as CSV, JSON lines or Parquet, while it is read.

    run file ── a batch, then closed ──► text ──► socket ──► the next batch, when the socket has taken this one
                        or in a process of its own: row groups of Parquet ── pipe ──► socket

    export_chunks    the bytes of a CSV or JSONL file, a batch at a time
    parquet_writer   the process that writes Parquet, of which pyarrow alone takes as much memory as the whole page
    sending          the response: one chunk in memory, ended where the client goes or does not read

Nothing of a run file is open while a socket or a pipe is written: a client that stops reading holds some hundred
kilobytes of the server, nothing of the run, and both only for half a minute.
"""
