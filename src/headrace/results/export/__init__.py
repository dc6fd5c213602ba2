"""Results as files, data frames and lists. Heavy libraries are imported only inside the call that needs them.

column_source    what every export reads: columns, batch by batch
column_shapes    which values a column holds: whole numbers, texts, lists of these; joined over batches
arrow_batches    columns as Arrow record batches, tables and polars frames
parquet_files    Parquet
pandas_frames    pandas
parquet_parts    a directory of Parquet files that follows a run file; part_manifest lists them, duckdb_views asks them
text_export      CSV and JSON lines
markup           Markdown and HTML
workbook, sqlite_export  an Excel workbook; an SQLite file
listing          plain Python lists, and lists of agents and scenarios
export_targets   where an export may be written; plain_files.replacing writes it whole
export_progress  a progress line for an export that takes long, at a terminal
"""
