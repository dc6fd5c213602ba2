"""The same questions asked of pandas in RAM and of DuckDB on Parquet: `read_peer PARQUET WAY`.

pandas has the whole table in memory before the clock starts, DuckDB nothing; both have their libraries loaded.
"""

import sys
import time

from benchmarks.processes import peak_resident_bytes, print_figures


def pandas(path: str) -> dict[str, float]:
    import pandas as pd

    frame = pd.read_parquet(path)
    frame.columns = [str(name).rpartition(".")[2] for name in frame.columns]
    began_s = time.process_time()
    chosen = frame[frame["city"] == "Oslo"][["mood", "rating", "story"]]
    filter_s, began_s = time.process_time() - began_s, time.process_time()
    means = frame.groupby("city")["rating"].mean()
    group_s = time.process_time() - began_s
    assert len(chosen)
    assert len(means)
    return {"filter_s": filter_s, "group_s": group_s}


def duckdb(path: str) -> dict[str, float]:
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        f'create view t as select "agent.city" as city, "answer.mood" as mood, "answer.rating" as'
        f" rating, \"answer.story\" as story from '{path}'"
    )
    began_s = time.process_time()
    chosen = connection.execute("select mood, rating, story from t where city = 'Oslo'").fetchall()
    filter_s, began_s = time.process_time() - began_s, time.process_time()
    means = connection.execute("select city, avg(rating) from t group by 1").fetchall()
    group_s = time.process_time() - began_s
    assert len(chosen)
    assert len(means)
    return {"filter_s": filter_s, "group_s": group_s}


if __name__ == "__main__":
    asked = {"pandas": pandas, "duckdb": duckdb}[sys.argv[2]](sys.argv[1])
    print_figures(**asked, peak_bytes=peak_resident_bytes())
