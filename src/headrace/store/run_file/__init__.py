"""The run file of a survey: its tables, its journal, and reading it back.

    table                                 holds
    meta boxes questions models fields    survey, identity, plan, and which kinds of values each column was seen to hold
    agents scenarios                      one JSON row each, by position
    interviews                            by ordinal: positions, status, answers a0, a1, ..., a checksum; answers beyond
                                          1000 questions share a JSON column
    details                               by ordinal: prompts, raw responses, tokens and times, msgpack under zstd
    pending                               answers of interviews in flight; bounded by the window
    failures counters runs                causes; kept counts; each run of this file
    results (a view)                      answers by question name, "agent.x", "scenario.x", for any SQLite tool

- Group commit (`run_journal`): whatever came while the last COMMIT ran makes the next batch. A batch costs about a
  millisecond however few rows it has, so rows of a slow service are gathered for at most 20 ms, and for no more than a
  quarter of the window.
- Answers are plain SQL values. What SQLite has no type for (NaN, integers beyond 64 bits, lists, booleans beside
  numbers) is tagged JSON in a BLOB, which can never be mistaken for an answer's text.
- Details are compressed one by one (`rows`) against a dictionary made of the survey's own texts: it is there from the
  first row on, in every executor, with no training and no blocks that a trickle would leave half empty. Short ones take
  2 us at level -1; from 2 KB on, level 3 halves the letters too. They are compressed when the journal's thread is idle:
  zstd and SQLite both give up Python's lock, and two threads that keep taking it from each other cost more than the
  work.
- Every row has a checksum of 4 or 8 bytes, made where the interview is conducted (`checksums` says of what). Rows that
  are read through `Results`, or taken up by a run, are checked. A run that goes on in a file looks at up to 1,000 of
  its rows first (`row_check`) and warns of damaged ones before it pays for more; a file with fewer rows than it has
  counted is refused.
- Budgets stand in `meta` as written (`kept_budgets`): there from the file's first moment, changed at the start of a run
  that gives another value, and in force for every later one. Money and tokens are counted over all runs of the file.
- A job that is refused leaves the file as it was.
"""
