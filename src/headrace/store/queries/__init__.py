"""Limits on queries, so that one that runs away ends: by its time limit, by Ctrl-C, or by the memory it takes.

query_clock   how long a query may work until its next rows are there
query_limits  what a user's own SQL may hold and call: lengths, depths, functions, memory
foreign_tables  rows of SQLite files that are the user's own
query_thread  runs a user's own SQL in a thread of its own, so that it can be interrupted whatever it computes

    our own queries   bounded steps; SQLite's progress handler asks the clock, and lets a Ctrl-C in
    a user's own SQL  a step may take seconds; the caller waits beside it, and interrupts SQLite from there
"""
