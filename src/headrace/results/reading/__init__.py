"""Reading the interviews of a view, page by page, in flat memory.

views           what is asked for, as a value: filters, order, a window
scopes          the interviews that one run was asked for, as SQL
conditions      filters, split into SQL where that is exact and Python for the rest
file_view       a view of one file with the columns that were chosen, added and renamed
stages          pages of rows, checked; an order is a temporary table of ordinals on disk
bulk_reading    batches of columns, read and checked a page at a time where all is as expected; else stages reads rows
keyset_search   the next few interviews behind a place, within a time: a page of a table
closed_between  batches in the order of the plan, with the file closed between two
joining         several files read as one: `results + other`
view_windows    slices, places from the end and the last few, of one view or several
chosen_columns  names, rows, batches and kinds of the chosen columns, of one view or several
ordinal_ranges  a file's answers and fields by ranges of ordinals, for its Parquet parts and DuckDB

A page is some hundred interviews that are read at one moment; a batch is columns of one or several pages, as exports
take them. Sources of rows that are no interviews are in `tables`.
"""
