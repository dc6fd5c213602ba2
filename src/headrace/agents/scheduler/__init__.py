"""Decides which agent run starts, waits, is preempted or killed: `Scheduler.handle(event) -> commands`. Pure.

Why pure: these rules interact (priorities, memory, children, side effects, time), and no set of examples covers that.
Without clock, loop, disk or random numbers, tests can play 10,000 random histories (100,000 in CI) against a model
world, in which hosts come, go, lie and fall silent, and print the shortest one that breaks a rule; more than eighty
changed rules are each found.

    event ──► scheduler.Scheduler ──► lifecycle: submission, steps, ends ──┐
                                  ├─► host_changes: joining, leaving, lost ┤
                                  ├─► relief: a memory reading ────────────┼──► placing.dispatch: what starts now
                                  ├─► heartbeats: what is due              │
                                  └─► hosts.survey_permits: surveys ───────┘──► commands

    scheduler_state   all data: hosts, runs, queue, circuits, reservations, heartbeats
    scheduled_runs    one run; one slot in use: a run and its children      run_queue    runs that wait, in lines, each
                                                                                         an ordered_line
    circuits          kinds that fail, and the runs held back               hosts/       slots and memory of a host

- Order (`run_queue`): CRITICAL first, then by arrival, where `aging_s` of waiting is worth one level. The first run
  starts or none does; only runs that memory keeps out are passed: a level, or for `aging_s` one that pressure stopped.
- A run that lacks a slot or memory has lower ones make room (`making_room`): at their next step, for CRITICAL work
  after the grace period. It does so with the priority of the highest run that waits behind it.
- What a kind needs is learned from runs that end, are parked or go on (`hosts.reservations`). Where little is known, a
  run starts with a slot's memory; by an estimate at most twice as many within 10 s as were seen (`hosts.needs`).
- A run that needs more than others leave waits aside: others pass it for `passed_over_s`, then it has its turn. One
  that no host can hold even beside nothing else is passed by all, and given up after `gives_up_after_s`.
- A child runs in its parent's slot, and starts at once or together with its parent (`child_runs`); an
  isolated child has a slot of its own.
- A slot whose runs all wait for models, programs or isolated children is free for another to compute; one whose wait is
  over goes on ahead of new starts (`waiting_slots`).
- LOW runs that memory pressure keeps out are recorded as skipped (`skipped_runs`), once an episode, stay in the queue
  and start when the pressure has fallen.
- A memory reading leads to reclaiming, preempting or killing (`relief` decides which, `preemption` whom). From 85 % of
  the budget on, PSS is read before a run is stopped: forks that share memory look like many times as much.
- After each attempt `exits` decides: the run ends, starts again, or is parked. A crash counts for the circuit of its
  kind; running out of memory does not: such a run is tried once more, with more memory, then set aside with the
  reading, the step and the advice. A run whose limit was below what it was owed comes back: others had that memory.
  Ends of the warden count against no run, but for one that computed alone.
- Where workers are held to limits, a reading tells what can be lent to them, and no start is promised more
  (`hosts.host_budget`). One that is nearly full with nothing left to lend has a lower one stop (`relief`).
- A heartbeat that is stopped makes room for the next at once; one that ignores it is torn down, and a thread is waited
  for before its next call (`heartbeats`).
- A survey gets revocable permits, which bound its window (`hosts`): beside runs at least an eighth of them.
- Hosts may be a thousand, and one is no special case. A run starts on the calmest host, of these where most memory is
  free. One that fits on none yet claims a host that could hold it: none behind it starts there, elsewhere they may.
- Hosts join, leave, fall silent, are lost, and may say what is not so: that changes nothing on others (`host_changes`).
- An event looks at the host that it is about and a few more (`hosts.host_index`), so that its cost grows neither with
  hosts nor with runs: `./scripts/bench scheduler_hosts`. `events` lists every event and command in two tables.
"""
