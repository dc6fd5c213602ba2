"""What is read back from a run file: lazy results, queries on them, export. Nothing here writes the run file.

`Results` loads nothing until it is looked at, and then a page at a time, also from another process while the run goes
on. `views` is what was asked for, as a value; `stages` reads it in flat memory; `conditions` does in SQL what SQL does
exactly and the rest row by row. `stats` reads counters alone, so it costs the same for any size. pandas and pyarrow are
imported only inside the call that exports to them (`export`).
"""
