"""Agent runs: durable async functions whose steps are journaled, run beside surveys and heartbeats in one budget.

    submit ──► engine file (SQLite): runs, steps, checkpoints, messages, blobs
                 │                                   ▲ one COMMIT a batch, before a step returns
                 ▼                                   │
          scheduler: handle(event) -> commands ──────┤   pure: queue, governor, breaker, heartbeats, tenants
                 │ Start, Preempt, Kill, Park        │ StepStarting, StepRaised, StepDone, Checkpoint, Ended
                 ▼                                   │
          executor of agent runs ────────────────────┘   inline_agents, or worker processes (workers/)

- A step returns when the batch that holds its result is committed, and it returns the decoded journal copy. A replaced
  attempt is refused by its epoch. A step with side effects has its start made durable first; when it is cut short, it
  waits for `run.resolve`. While one is in flight, several at once in `gather`, a preemption waits for it: neither grace
  period nor parking ends the attempt, only an emergency, a timeout or cancelling.
- What a run needs from outside (a message, a model's reply, a child's result, a program) is an event, answered by `put`
  when the answer is journaled: the same for every executor, and models' limits, breaker and money stay with the
  controller. A large result does not travel with a run: it is fetched when its step is reached.
- A parked run (`ctx.sleep`, `ctx.receive`), or one that waits beyond the queue, is on disk only. A child has its
  parent's slot; one that runs out of memory is tried again together with its parent, alone.
- Each step is journaled with its mark (`step_marks`: digests of function and arguments, 3 us), which a replay compares
  (`replay`). Code counts rather than source: a file may be edited while a process still runs the old one.
- Once an attempt was told to stop, what its function makes of that is neither a result nor a failure.
- A kind is a name (`task`): a function defined anew takes its place, one that only captured something else is refused.
- What agents keep (`kept_values`) may be bytes. A timeout counts executed seconds, over parking.
- Waits follow `steady_clock`: the wall clock's time when the file was made, going on evenly from there, suspended time
  included. Deadlines on disk are times of that clock, so setting the wall clock moves none of them. The file notes the
  boot and how far the two clocks are apart: a restart within the boot goes on exactly, after a reboot by the wall
  clock.
"""
