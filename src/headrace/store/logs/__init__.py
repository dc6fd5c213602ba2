"""The log beside a file in WAL mode (`x.run-wal`), which after a kill is part of the file.

SQLite trusts any log that has the right name, and reads it up to the first frame that is not as it was written. So a
lost log, another file's and a damaged one would each cost journaled rows without a word.

- `write_ahead_log`: keeps the log short, and refuses a file whose log is missing, damaged or another file's.
- `log_frames`: the bytes of a log, which tell damage from what a power cut leaves.

Does not cover: connections (store.connections), or whether a live file is still at its path (store.live_file).
"""
