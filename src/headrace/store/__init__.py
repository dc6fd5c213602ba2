"""The files that last: run files and engine files, opened, locked, checked, committed and closed in the same way.

SQLite through apsw: its own current SQLite, WAL mode, `synchronous=FULL`. Only the controller writes.

- Every connection begins in `connections`. A process killed while its file enters or leaves WAL mode leaves a
  `-journal` that only a writer can roll back: a reader takes the lock, has SQLite roll back, and then reads.
- One writer a file: a `flock` on a side file (`lock`), which a fork does not inherit, and a claim in the file itself
  (`claim`), which every transaction checks, so that deleting the lock file lets no second writer in. Our own code never
  opens such a file except through SQLite: closing a plain descriptor would drop the process's POSIX locks on it.
- While a file is written, `live_file` looks at its path ten times a second. When it was moved, removed or replaced,
  nothing more is admitted or acknowledged, interviews in flight are journaled, and the contents are completed where the
  file is now, or saved beside it.
- The log (`x.run-wal`) is brought into the file every 5 s of writing and every 16 MB. The file itself says whether more
  of it follows (`write_ahead_log`): a file whose log is gone after a kill is refused, not started over.
- A new file is written under another name and gets its own when it is whole (`making`). Files are 0600, directories
  0700 (`private`).
- A file may come from somebody else. Before its first statement every connection is hardened (`hardening`: no views,
  triggers or attached files, functions in the schema not trusted, lengths bounded, readers write temporary tables
  only), and a file whose tables are not word for word those we would have made is refused (`schema_check`); tables,
  views and plain indexes that a user added are left alone. Names from a file become SQL in one place (`quoting`). What
  decoders make of a damaged file becomes RunFileDamaged in one place (`contents`), and each decoder has a bound.
- `confirmations` keeps what this user has confirmed for each plan: one file of mode 0600 a plan in the data directory,
  replaced as a whole under a lock, holding the most that was ever confirmed. What cannot be read counts as not
  confirmed.
- At the end of a run the file leaves WAL mode, unless a reader is in the way, and can be copied as it is.

`benchmarks.kill_storm` kills processes at every moment that changes the disk, through a VFS that counts SQLite's calls.
"""
