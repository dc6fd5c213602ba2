"""The engine file of agent runs: what an engine needs to go on after a kill, in one SQLite file.

    table           holds                                                       read and written by
    runs            one row a run: key, kind, arguments, state, epoch, result   runs
    steps           results of finished steps, started side effects, marks      steps
    checkpoints     each run's last state                                       steps
    messages        sent and not yet received                                   steps
    blobs           values above 256 KB, which lie beside their row             engine_values
    surveys         surveys that the engine ran: run file, plan, state          engine_surveys
    usage events    model usage in all; the latest 10,000 events                notes
    memory_history  memory while engines had the file, at most 512 points       store.history
    meta            the file's token, the warden's pid, the clock, kinds' sizes notes

How data flows:

    engine's loop ── file.runs, file.steps, file.notes: reads, typed and checked ──► reading connection
          │
          └─ writes.runs, writes.steps, writes.notes: statements ──► EngineWriter gathers them ──► EngineFile.commit

- A statement is a value (SQL and bindings), made on the loop and committed in a group, in order, by the writer's
  thread. A step returns to its agent only after the COMMIT that has its result.
- A replaced attempt writes nothing: its epoch is compared with the run's inside the statement itself, so that a late
  event of a killed worker cannot overwrite its successor.
- A step's first result stays. A side effect is journaled before it starts: one that has started and not finished is
  undecided after a crash, and the run's caller decides.
- A value from the file is converted to its type and range before use (`engine_values`): a forged file can be refused,
  and cannot make an engine count, wait or run on. Names of kinds in it never make code run.
- Rows have no checksums: verifying one reads every value and counts it as unchecked (`engine_verification`).
"""
