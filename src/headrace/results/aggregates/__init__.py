"""The functions of aggregates: `mean(answer.rating)` over a group of rows, and over a run while it goes on.

    a user's text ──► Aggregation (aggregation): a function and its expression
                          │
        ┌─────────────────┼───────────────────────────────┐
        ▼                 ▼                               ▼
    aggregates_in_sql   function_states                 ordered_values
    SQLite's own sums,  values are added one by one,    median, quantile, nunique: the values of a
    where exact         the state has a bounded size    group in order, each once with its count

Two uses: `group_by(...).agg(...)` (tables.grouping) has all of them, `aggregate=` of a run (totals) has those with a
state of bounded size, which it writes into the run file and takes up from there. Both give the same value of the same
rows: None and NaN are left out, and so are conditions on them (expressions.known_truth), numbers are added exactly
(exact_sums) and rounded once, at the end, so that neither the order of rows nor a kill shows in a result.
"""
