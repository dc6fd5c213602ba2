"""Runs a survey: the run loop admits interviews, an executor conducts them, the journal commits their rows.

    run file ──rows of agents──► SurveyRun (run) ◄── next ordinals ── Admission, Cursors (pure)
       ▲                            │        ▲
       │ one COMMIT a batch         │ Chunk  │ Rows, Answers, Ended
       │ (journal thread)           ▼        │
       └───────────────────────── Executor: inline, or worker processes (workers/)
                                    └─► Interviewer (interview) ──► models

An interview holds a permit of the window (`concurrency`) from its admission until its row is committed and, where a
callback or stream listens, delivered. That one rule bounds RAM, what a crash repeats, and how far a run may be ahead of
a slow consumer.

- `contract` is what the controller and an executor say to each other; one test suite runs on every executor. Delivery
  is at least once and in order of `seq`; an event of a replaced attempt is refused by its epoch. Only the controller
  writes the store and owns the state of endpoints. A chunk lists its interviews one by one rather than as a range:
  finished ones leave holes, a plan may have grown, and every model has its own cursor.
- The window (`window`) opens from two interviews to `concurrency`, doubling with each calm reading, because nothing
  tells beforehand how large answers are; until one is seen, an interview is taken to hold 2 MB. Once some have come, it
  is never wider than what fits of that size. Finished rows that wait for the disk are bounded in bytes as well.
- Each model has a cursor of its own (`cursors`), so a model that cannot be asked stops only itself.
- `spending`: a budget bounds how many interviews may be in flight by what one has taken so far, or by the estimate
  while none has.
- `permissions`: a program's own models are permission; a run file's are claims. `Model.origin` marks a model that was
  read from a file, wherever it goes from there. Before anything reads a key, each contact of such a model must be
  allowed by name now, or be among what this user has confirmed for that plan. A run of the program's own models
  confirms them before its file is written, so that run, kill and resume never ask. A file that asks for more than was
  confirmed is asked about again. A list's part of a plan's identity is the digest that the file states: somebody who
  changes a confirmed file can change whom it asks about, not where it asks, with which key, how often or for how much.
- `session` is a run from open to close, the same for `job.run` (`standalone`: a thread of its own, the caller's side of
  it) and for `engine.run(job)` (`agents.engine.surveys`): what differs is handed in as a `SessionHost`. `run` is the
  loop inside, with `open_chunks`, `tally` and `stopping`. `api` has the four ways in, `delivery` the results on
  their way to the caller.
- An interview has one shape for each boundary that it crosses:

      plan.product        Coordinates           ordinal ◄─► position in each list: arithmetic, nothing is stored
      contract            Interview in a Chunk  controller ──► executor, as bytes: with answers that it has already
      interview           InterviewInProgress   inside an executor: its records so far
      survey.record       AnswerRecord, Detail  executor ──► file: what was asked and said, packed beside the row
      store rows          Row, RowBatch         executor ──► journal, as bytes: one finished; many, flat, for one INSERT
      store rows          BatchRow              one row out of a batch that is committed
      open_chunks         CommittedRow          the run's thread ──► the caller's: that row, its agent and scenario
      store queries       Fetched               file ──► reader: the columns of one SELECT
      results             Result                what users hold: made in the caller's thread, details when looked at

- Ctrl-C (`ctrl_c`, `delivery`): `run` and `stream` call back in the caller's thread, where Ctrl-C arrives as
  KeyboardInterrupt; no signal handler is installed, but while they wait inside `asyncio.run`, Python's own takes the
  place of asyncio's, which a blocked loop would not hear. `run_async` and `astream` do the same on the caller's loop. A
  first Ctrl-C, a closed stream and a cancelled task let interviews in flight end and stop delivering; a second stops at
  once. Everything journaled is kept. Ctrl-C is answered by a line at once; a program that does not catch `Interrupted`
  ends with its message instead of a traceback, through `sys.excepthook` where that is still Python's own. Under
  `asyncio.run` the errors stay asyncio's: `run_async`, `astream` and engines only print the lines, and a run in a
  thread of its loop looks for the key five times a second. `Interrupted` is a KeyboardInterrupt and no Exception, so
  that nothing swallows it.
"""
