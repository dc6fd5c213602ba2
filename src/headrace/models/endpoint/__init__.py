"""Decides whether a call may go to a model's endpoint now, from how the earlier calls ended. Pure: no clock, no I/O.

- `concurrency`: how many calls may be in flight; it grows while throughput does. `rates`: calls and tokens a minute,
  given or learned from replies.
- Three incidents hold every call back until one probe succeeds: busy (429), failing (the breaker), away (never
  reached). A call that was in flight when an incident began belongs to it: two hundred calls that fail together are one
  incident.
- A 429 pauses the whole endpoint (`pause`) for as long as the service asks, else for a doubling time; it is no failure
  and costs no attempt. A network that is away is probed every 2 to 30 s, costs no attempt, and the progress line says
  since when.
- A refused key, name or quota closes the endpoint: calls are refused until it is reopened, or a probe is answered; one
  goes out after 30 s, doubling to half an hour.
- `call_line`: which call is next, by priority, with aging. While calls of HIGH or above come, lower ones leave them a
  part of concurrency and rates.
- `retry`: how often one question is tried, and how long between.

`endpoint` puts them together: `ask` gives Go, Wait or Closed; `ended` takes how the call ended.
"""
