"""Rows that are too many for memory, in a temporary SQLite file that goes when it is closed.

scratch_table  rows of Python values, kept in order, sorted

A scratch file is no file of ours that lasts: it has no journal, is never synced, and no other process sees it.
"""
