"""Reading a run file back: lazy results, queries on them, export. Nothing here writes the run file.

Why lazy: a file may have millions of interviews, and may still be written by another process. `Results` loads nothing
until it is looked at, and then a page at a time, each page a short read of its own, so that memory stays flat and the
writer's log can be kept short.

    Results.filter, sort_by, [a:b] ── Catalog (columns): which columns there are; names are bound to them
                  │
                  ▼
    View (reading.views): what is asked for, as a value
                  │
    looked at: OpenView (reading.stages)
                  │
                  ├─ filters: Conditions (reading.conditions) ──► SQL where it is exact, Python for the rest
                  ├─ order: a temporary table of ordinals on disk, which is then read in its order
                  └─ pages of rows, checked ──► Result (result), or values of columns (columns)
                                                    └─► Tabular (tabular): export
    Results.sql, tally, group_by, join ──► Table (tables): rows that are no interviews, with verbs of their own
    Results.plot ──► Plot (plots): a chart of counts;  Results.aggregate ──► totals that the run has added up (totals)

`Results` has the methods that users call, and each hands over to the folder of its subject. Arguments of verbs that
tables have too are read in verb_arguments.

- A filter runs in SQL only where that gives exactly Python's answer, which depends on the kinds of values in the column
  at this moment: they are read with every page, since a run that goes on may add one.
- Prompts, comments, responses and tokens are in an interview's detail, which is unpacked only where a column out of it
  (columns.question_parts) is named.
- `stats` reads counters alone, so it costs the same for any size.
- Exports are written under another name and replace the target when they are whole. pandas and pyarrow are imported
  only inside the call that exports to them.
- A row that is damaged is an error with its ordinal, never a value.
"""
