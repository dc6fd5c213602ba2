"""Tables that are made of results: their rows are no interviews any more.

sql_table  the rows of the user's own SQL, and what tables that SQLite makes have in common
tallying   how often each value occurs
"""
