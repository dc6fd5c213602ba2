"""Rows that are too many for memory, in a temporary SQLite file that goes when it is closed.

scratch_table  rows of Python values, kept in order, sorted

A scratch file is no file of ours that lasts: it has no journal, is never synced, and no other process sees it.
Its memory is bounded: a small page cache, sorting in files. The clock of the read that made it ends it in time.
"""
