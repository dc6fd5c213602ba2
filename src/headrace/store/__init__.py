"""The files that last: run files and engine files, opened, locked, checked, committed and closed in the same way.

Why files: work is a sequence of journaled steps, and anything may be dropped from memory and picked up from the
journal. So the file must be right whatever happens to the process, to the file or to the disk: a kill at any moment, a
second writer, a moved file, a full disk, a flipped bit, a file that somebody else has made.

    whole_files                copy, compact, verify: either kind
        │
    run_file/   engine_file/   what is in them: tables, reads, writes. They do not know each other
        │            │               history/        how memory went, in both kinds
    live_file                  a file while it is written       writer_thread   where it is written
        │                                                       verification    what a check has found
        ├─ lock                one writer: a flock beside the file
        ├─ claim               one writer: a note in the file, checked by every commit
        ├─ logs/               rows that are not in the file itself yet
        └─ making              a new file gets its name when it is whole; kept_names: what earlier ones are called
    connections                every connection begins here
        ├─ formats             which kind of file it is; schema_check: are its tables ours
        ├─ hardening           what SQLite may do on it
        └─ disk_errors         SQLite's errors in words; contents: decoders' errors in words

A file's life (`live_file`), the same for both kinds:

    opening: lock ──► roll back a killed process's transaction ──► make it where missing ──► check it, reading only
    LiveFile: WAL mode ──► claim ──► upgrade an older format ──► transactions ──► claim removed, WAL mode left

- SQLite through apsw: its own current SQLite, WAL mode, `synchronous=FULL`. Only the controller writes.
- Group commit without a timer (`writer_thread`): whatever was gathered while one COMMIT ran makes the next one. A
  survey and an engine commit through the same class; an event is acknowledged, and a result handed on, only after its
  COMMIT.
- Every connection begins in `connections`. A process killed while its file enters or leaves WAL mode leaves a
  `-journal` that only a writer can roll back: a reader takes the lock, has SQLite roll back, and then reads.
- One writer a file: a `flock` on a side file, which a fork does not inherit, and a claim in the file itself, which
  every transaction checks, so that deleting the lock file lets no second writer in. Our own code never opens such a
  file except through SQLite: closing a plain descriptor would drop the process's POSIX locks on it.
- While a file is written, its path is looked at ten times a second. When the file was moved, removed or replaced,
  nothing more is admitted or acknowledged, interviews in flight are journaled, and the contents are completed where the
  file is now, or saved beside it.
- The log (`x.run-wal`) is brought into the file every 5 s of writing and every 16 MB. The file itself says whether more
  of it follows: a file whose log is gone or damaged after a kill is refused, not started over.
- A new file is written under another name and gets its own when it is whole. Files are 0600, directories 0700
  (`private`). At the end the file leaves WAL mode, unless a reader is in the way, and can be copied as it is.
- A file may come from somebody else. Before its first statement every connection is hardened: no views, triggers or
  attached files, functions in the schema not trusted, lengths bounded, readers write temporary tables only. A file
  whose tables are not word for word those that we would have made is refused; tables, views and plain indexes that a
  user added are left alone. Names from a file become SQL in one place (`quoting`). A decoder's error becomes
  RunFileDamaged in one place (`contents`), and each decoder has a bound.
- Files of earlier versions open: `upgrade` adds the columns that they lack, and tests/data has some of each.

Beside the files: `home` is where they live without a path; `confirmations` keeps what this user has confirmed for each
plan, one file of mode 0600 a plan in the data directory, replaced as a whole under a lock, holding the most that was
ever confirmed; a record that cannot be read counts as not confirmed. `benchmarks.kill_storm` kills processes at every
moment that changes the disk, through a VFS that counts SQLite's calls.
"""
