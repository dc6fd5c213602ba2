"""A plan is the lazy product of agents, scenarios, models and iterations. Nothing here grows with the job.

    Survey + lists of agents, scenarios, models ──► Job ──► identity: digests that a run file is compared with
                                                     │
                                                     ├─► product: ordinal <-> (iteration, agent, scenario, model)
                                                     └─► portion: the ordinals that this run does; bitmap: those done

Why: a job of a million interviews must not build one of them before it is asked. An interview is therefore an ordinal,
and arithmetic (`product`) turns the ordinal into positions in four lists.

- A plan is a row of boxes. The first box is the whole product as it was first run; every growth (more iterations,
  agents or scenarios) appends the box of its new combinations, so an ordinal never moves. Within a box the iteration is
  the slowest digit and the model the fastest, so that the first few interviews meet every model.
- Finished interviews are a bitmap by ordinal (`bitmap`), packed in blocks: 0.4 MB for 10^9 that are done in order.
- `Job.where` leaves combinations out (`left_out`): a bitmap by ordinal too, evaluated once and kept in the run file.
- A plan's identity (`identity`) is one digest each for survey, agents, scenarios and models. A function in a model's
  parameters counts by its name and source, not by what it has captured; it is never stored as code and never looked up
  by what a file says. A model's price, limits and timeouts are not part of the identity. `differences` puts two
  identities that differ into words.
- A list (`lists`) is any iterable, consumed once into memory up to 4 MB and into a temporary file beyond; or a file
  that is read as a stream (`sources`); or what verbs make of another list, when it is asked for (`rows`).
- `Job` (`job`) describes the run: `estimate` says beforehand what it will take, `mapping` makes a survey of `Job.map`:
  a row is a scenario, the one agent has no traits, the prompt is sent as it is written, and each property of the answer
  is a question that is derived from that answer and never asked.

Does not cover: running a job. `Job.run` imports `interviews.api` inside the method: one of the four imports that
point up.
"""
