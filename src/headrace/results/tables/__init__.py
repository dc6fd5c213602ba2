"""Tables that are made of results: their rows are no interviews any more.

    Results.sql, tally, ... ──► TableRows: makes rows when they are read ──► Table: verbs, printing, export
                                   ▲                                           │
                                   └───────── row_verbs: other rows ◄──────────┘ filter, select, sort_by, [a:b]

table             the verbs that users call
table_rows        where rows come from, read in flat memory
row_verbs         rows filtered, with other columns, sorted, windowed
column_names      a table's columns by name, and expressions on its rows
sql_table         the rows of the user's own SQL
computed_columns  the columns that are counted and grouped: of interviews in SQL where that is exact, else out of Python
relation          such columns as SQLite sees them: equality and order
tallying          how often each value occurs; each value once
grouping          groups of rows, and what is computed of each (results.aggregates)
reshaping         a row for each question, and back
row_joins         rows joined with those of another table
"""
