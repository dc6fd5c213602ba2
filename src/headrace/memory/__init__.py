"""Memory: the budget in bytes (`budget`), how much of it is used (`gauge`), and the pressure level (`governor`).

    memory/measure ──► gauge: readings of one budget ──► governor: the pressure level ──► interviews.window
                       (the whole process tree)                                          agents.scheduler

A budget has one gauge and one governor. A survey by itself has its own (`governed.OwnMemory`); one inside an engine is
handed the engine's readings and level (`agents.engine.engine_memory`), so that both show the same figure for one tree.

- `memory=` becomes a budget in bytes when a run starts, and counts for less while the host has less left. The tree is
  read ten times a second, twenty times in an engine, and more often while a survey's window is not fully open.
- The levels are percentages of the budget (`limits.MemoryLimits`): at 70 % (high) the window halves with each reading,
  down to an eighth; at 85 % (preempting) one interview at a time goes on; at 95 % (emergency) the lowest work is ended.
  Each level is left only after 2 s below its lower line: one reading under the line is noise. Where a budget is on top
  (`"+512MB"`, the default) of a process that already holds 60 % of the sum, they are percentages of what is on top.
- When the level rises, `reclaiming` drops SQLite's pages and compiled templates, collects garbage and hands free heap
  back: all of large blocks, about half of small objects, as measured. The owner of the budget calls it, once for all.
- Without workers this is best effort: replies that arrive together can outrun any reading, and CPython does not give
  back what it keeps for small objects. Hard limits need processes (`workers`).
- `collector` makes Python's garbage collector run less often while calls are in flight.

Does not cover: how a survey's window follows the level (`interviews.window`), or who is preempted
(`agents.scheduler.preemption`).
"""
