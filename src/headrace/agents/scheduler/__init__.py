"""Decides which agent run starts, waits, is preempted or killed: `Scheduler.handle(event) -> commands`. Pure.

`events` lists every event and command in two tables. No clock, loop, disk or chance: tests play 10,000 random histories
(100,000 in CI) against a model world and print the shortest one that breaks a rule; twenty-three changed rules are each
found.

- Order (`waiting`): CRITICAL first, then by arrival, where `aging_s` of waiting is worth one level. The first in order
  starts or nobody does; only what memory keeps out is passed: a level, or for `aging_s` a run that was preempted.
  Waiting runs stand in a deque for each level: nearly all come last and leave first.
- What a kind needs is learned (`reservations`): its first run starts alone, or after 10 s of waiting for that beside
  others with a slot's memory; then at most twice as many begin within 10 s as have ended (`placing`).
- LOW runs that memory pressure keeps out are recorded as skipped (`passed_over`), once an episode, stay in line and
  start when the pressure has fallen.
- A memory reading leads to reclaiming, preempting or killing (`relief` decides which, `preemption` whom). From 85 % of
  the budget on, PSS is read before a run is stopped: forks that share memory look like many times as much.
- A crash counts for the circuit of its kind (`circuits`); running out of memory does not: such a run is tried once
  more, alone and with all the memory there is, then set aside with the reading, the step and the advice.
- A heartbeat that is asked to stop makes room for the next at once; one that ignores it is torn down, and a thread is
  waited for before its next beat (`heartbeats`).
- A survey is a tenant (`tenants`): it gets revocable credits, which bound its window.
- Hosts may be many (`host`): nothing here assumes one.
"""
