"""Totals: what a run adds up of its results as they are committed, and what is read back of it at any moment.

    aggregate={"mean": "mean(answer.rating)"}, group_by="agent.city" ──► WrittenTotals ──► the run file's meta
                                                                               │
    committed rows ── on the journal's thread, inside the commit ──► RunningTotals: a group, its functions' states
                                                                               │ those that changed
                                                                               ▼
    results.aggregate() ◄── TotalRows ◄── states ◄────────────────── the run file's table `totals`

- Added is each interview that has all its answers, once. One that failed is added when a retry has brought its answers:
  nothing ever has to be taken out again, which no minimum and no function of a user could do.
- The state of a function has a bounded size, whatever it has seen (aggregates.function_states), and so has the number
  of groups: totals are flat where the rows are not kept. A median or a number of different values needs every value.
- States are JSON (tagged, as answers are); nothing in a file is executed. A user's own aggregator encodes itself.
- A user's own aggregator (`aggregator`) is an object with `add`, `encode`, `decode`; the file knows its class's name.
"""
