"""Live updates: counters and a cursor by server-sent events, never rows.

    a page, a program ──GET──► event_stream ──► LiveWatch ──once a second──► a reading, in a thread for these
                                   ▲              │
                                   └── changed ◄──┘  the latest reading of each part, with its number

One task reads what is watched, however many watch it, and only while somebody does. A client is told which parts have
changed since the number it has seen; the number is the event's id, which a browser sends when it comes again
(Last-Event-ID). Nothing is kept for a client: one that reads slowly gets the latest reading when it is ready for it,
and what came between was never made into bytes for it.

    watches        what is watched, and the latest reading of each
    streams        the streams there are: the list, a run, an engine, an agent run
    event_stream   one client over HTTP
"""
