"""The run file of a survey: the job, the work in flight and the results in one SQLite file.

Why one file: the run file is the job. The same command goes on in it, any SQLite tool reads it, another process reads
it while it is written, and it can be sent to somebody else.

    table                                 holds
    meta boxes questions models fields    survey, identity, plan, and which kinds of values each column was seen to hold
    agents scenarios                      one JSON row each, by position
    interviews                            by ordinal: positions, status, answers a0, a1, ..., a checksum; answers beyond
                                          1000 questions share a JSON column
    details                               by ordinal: prompts, raw responses, tokens and times, msgpack under zstd
    pending                               answers of interviews in flight; bounded by the window
    failures counters runs                causes; kept counts; each run of this file
    memory_history                        memory over all runs of this file, at most 512 points (`store.history`)
    row_blocks                            only in a long file: which ordinals have a row (`row_blocks`)
    finished totals                       only in a file that keeps less, or totals (`keeping`)
    results (a view)                      answers by question name, "agent.x", "scenario.x", for any SQLite tool

How data flows through the modules:

    Job ──► stored_job: creation (once), stored_plan (n, extend) ──► tables
    executor: Row (rows) ──► RowBatch ──► Journal.commit (run_journal) ──► interviews, details, failures
              answers in flight ───────────────────────────────────────────────────────► pending
    a run begins: RunFile.open ──► finished (what has a row, what is pending) ──► stored_lists (agents and scenarios)
    a reader: Reader ──► RunHeader (header) ──► interview_queries, rows ──► row_check ──► results
                                            └─► bulk, columns of a page checked together ──► results
                                            └─► range_digests, for copies that follow the file (results.export)
    fresh=True: removal.set_aside ──► kept_names ──► a Reader of the earlier file finds it there
    everything: run_verification ──► dropping;  several files: merging

- Rows are keyed by plan ordinal, so they are appended: 1.8 us a row, where a random key would cost ten times as much.
- One COMMIT writes a group of batches (`run_journal`). It costs about a millisecond however few rows it has, so rows of
  a slow service are gathered for at most 20 ms, and for no more than a quarter of the window. A row batch is flat, as
  the INSERT takes it, and 16 rows go in one statement: what an insert costs is mostly the GIL, which apsw releases for
  each.
- Answers are plain SQL values. Values that SQLite has no type for (NaN, integers beyond 64 bits, lists, booleans beside
  numbers) are tagged JSON in a BLOB, which can never be mistaken for an answer's text. The kinds of values in each
  column are kept (`column_kinds`), because a filter may run in SQL only where that is exact.
- Details are compressed one by one (`rows`) against a dictionary made of the survey's own texts: it is there from the
  first row on, in every executor, with no training and no blocks that a trickle would leave half empty. Short ones take
  2 us at level -1; from 2 KB on, level 3 halves the letters too. They are compressed when the journal's thread is idle:
  zstd and SQLite both release the GIL, and two threads that keep taking it from each other cost more than the work.
- Every row has a checksum of 4 or 8 bytes, made where the interview is conducted (`checksums` says over what). Rows
  that are read through `Results`, or taken up by a run, are checked. A run that goes on in a file checks up to 1,000 of
  its rows first (`row_check`) and warns of damaged ones before it pays for more; a file with fewer rows than it has
  counted is refused. Rows of a long file, whose blocks are known, are counted in places.
- The plan grows, and never changes (`stored_job`): `n` adds iterations, `extend` appends to lists, ordinals stay. The
  boxes of the new plan are written last, in one transaction. A job that is refused leaves the file as it was.
- What `Job.where` leaves out stands in `meta`: the conditions, and a compressed bitmap by ordinal.
- Budgets stand in `meta` as written: there from the file's first moment, changed at the start of a run that gives
  another value, and in force for every later one. Money and tokens are counted over all runs of the file.
- A run's entry in `runs` moves its end with the commits (`run_journal`), so that a killed run's time is known; the
  memory history goes with it, with no commit of its own unless a run commits nothing for 5 s.
"""
