"""Many rows read at a time. A call into Python for each row costs more than SQLite takes to find it.

block_counts     the interview at a place, found by the counts of blocks of ordinals
column_pages     interviews as columns, some hundred rows at a time, their checksums compared in one go
assumed_columns  columns that are the same in all rows: not read, and still checked
details_ahead    prompts and responses, read with those that are likely to be asked for next

Rows are accepted only where they are as expected. The rest is read row by row, by `interview_queries`, `row_check` and
`details`, which say what is wrong.
"""
