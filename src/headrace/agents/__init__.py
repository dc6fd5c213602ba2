"""Agent runs: durable async functions whose steps are journaled, run beside surveys and heartbeats in one budget.

Why: an agent runs for minutes or hours, and its process may die at any moment. A run is therefore a sequence of steps
whose results are in a file: a crash, a preemption, an out-of-memory kill and a restart all mean "start the function
again, and let it take the journaled steps from the file". One mechanism serves them all, and the memory of any run can
be taken back whenever something more important needs it.

    submit ──► engine file (SQLite): runs, steps, checkpoints, messages, blobs
                 │                                   ▲ one COMMIT a batch, before a step returns
                 ▼                                   │
          scheduler: handle(event) -> commands ──────┤   pure: queue, memory, circuits, heartbeats, survey permits
                 │ StartRun, PreemptRun, KillRun     │ StepStarting, StepRaised, StepDone, Checkpoint, RunEnded
                 ▼                                   │
          executor of agent runs ────────────────────┘   inline_agents, or worker processes (workers/)
                 └── AgentContext (`ctx`) ── AgentLink ── outbox

Steps
- A step returns when the batch that holds its result is committed, and it returns the decoded journal copy. Events of
  an attempt that was replaced are refused by its epoch.
- A step with side effects has its start made durable first. Where it is cut short, the run is undecided and waits for
  `run.resolve`. While side effects are in flight, several at once in `gather`, a preemption waits for them: only an
  emergency, a timeout or cancelling ends the attempt (`stopping`).
- Each step is journaled with its mark (`step_marks`: digests of function and arguments, 3 us), which a replay compares
  (`replay`). Code counts rather than source: a file may be edited while a process still runs the old one.
- What a run emitted before a journaled step is not sent again when it is called from its beginning (`emits`).
- What a run asks for from outside (a message, a model's reply, a child's result, a program) is an event, answered by
  `put` once the answer is journaled: the same for every executor, and models' limits, breaker and money stay with the
  controller. A large result does not travel with a run: it is fetched when its step is reached.
- A call to a model outlives its attempt (`calls_in_flight`): its reply is for the run. So a run that only waits for
  models or children is stopped at once, and nothing is lost or paid for twice.
- While all runs of a slot wait for models, programs or children (`slot_turns`), another run may compute in their place.
  Their answers are journaled at once and held until the slot has its turn again.

Runs
- A parked run (`ctx.sleep`, `ctx.receive`), or one that waits beyond the queue, is on disk only. A child has its
  parent's slot; one that runs out of memory is started again together with its parent, and more memory. An isolated
  child has a slot and a worker of its own: its parent finds it again by its key, after whatever happened to either.
- Once an attempt was made to stop, what its function makes of that is neither a result nor a failure.
- A kind is a name (`task`): a function defined anew takes its place, one that only captured something else is refused.
- Values that agents keep (`kept_values`) may be bytes. A timeout counts executed seconds, across parking.
- Waits follow `steady_clock`: the wall clock's time when the file was made, going on evenly from there, suspended time
  included. Deadlines on disk are times of that clock, so setting the wall clock moves none of them. The file notes the
  boot and how far the two clocks are apart: a restart within the boot goes on exactly, after a reboot by the wall
  clock.

One run in several shapes: each stands at a boundary, and holds only what that side needs.

    shape                                   boundary    what it is
    Run, RunStatus, RunEnd (engine)         user        the handle; the state shown; how it ended, for those who wait
    LiveRun (engine)                        engine RAM  from submission, or return from disk, to its end or parking
    RunRow, StoredStep (store)              disk        rows of the engine file
    Submitted, StartRun, ParkRun, EndRun    scheduler   events and commands: plain values, which tests replay
    ScheduledRun, Slot (scheduler)          scheduler   a run until it ends; a slot in use by a run and its children
    RunShown (scheduler)                    user        what runs in each slot, for a snapshot
    AgentRun, RunEnded (contract)           wire        one attempt with the journal so far; how it ended
    _Attempt, _AgentSlot (workers)          processes   an attempt and its worker, on the controller's side
    AgentContext, AgentLink, AttemptStop,   executor    an attempt inside the process that runs it
      RunActivity

How something ended is one enum everywhere (headrace.exit_causes); a run's state on disk (RunState) has the same values
for the final ones.
"""
