"""SQL that runs away, and a program that asks such queries: `python -m tests.results.runaway city.run` prints how many
megabytes they took.
"""

import resource
import sys

FOREVER = "with recursive r(n) as (select 1 union all select n + 1 from r) "
LONG, SOUGHT = (f"replace(hex(zeroblob({size})), '0', 'a')" for size in (7_000_000, 3_000_000))
# SQLite may take seconds for one step of the fourth.
ENDLESS = [
    FOREVER + "select count(*) from r",
    FOREVER + "select n from r",
    FOREVER + "select n from r order by n desc",
    FOREVER + "select sum(length(hex(randomblob(7000000)))) from r",
    FOREVER + "select n from r union select -n from r",
    FOREVER + "select sum(n) over (order by n desc) from r",
    FOREVER + "select count(distinct hex(randomblob(1000))) from r",
    FOREVER + "select json_group_array(n) from r",
    "select count(*) from self a, self b, self c, self d, self e, self f",
]
GREEDY = [
    "select zeroblob(1000000000)",
    "select " + ", ".join(["zeroblob(15000000)"] * 1_000),
    "select " + ", ".join(["hex(randomblob(7000000))"] * 200),
    "select printf('%.*c', 1000000000, 'x')",
    "select replace(replace(hex(zeroblob(1000)), '0', hex(zeroblob(1000))), '0', hex(zeroblob(1000)))",
    FOREVER + "select group_concat(hex(randomblob(1000000))) from r",
    FOREVER + "select hex(randomblob(5000000)) from r limit 60",
    FOREVER + "select median(n) from r where n < 1000000",
]


def _peak_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    from headrace import HeadraceError, Results

    with Results.open(sys.argv[1]) as results:
        len(results.sql("select 1"))
        before = _peak_mb()
        for query in GREEDY:
            try:
                for _ in results.sql(query, timeout_s=1.5):
                    pass
            except HeadraceError:
                pass
    print(_peak_mb() - before)
