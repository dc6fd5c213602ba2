"""A table of an SQLite file is a list."""

import sqlite3

from edsl import ScenarioList

with sqlite3.connect("people.db") as made:
    made.execute("create table people(name text, age integer)")
    made.execute("insert into people values ('Ada', 36), ('Bob', null)")
made.close()

value = [dict(row) for row in ScenarioList.from_source("sqlite", "people.db", "people", ["name", "age"])]
