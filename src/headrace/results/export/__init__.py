"""Results as files, data frames and lists. Heavy libraries are imported only inside the call that needs them.

frames       pandas and Parquet
text_export  CSV and JSON lines
listing      plain Python lists, and lists of agents and scenarios
markup       Markdown and HTML
workbook, sqlite_export  an Excel workbook; an SQLite file
replacing    a file is written whole under another name, then renamed
"""
