"""The page: run files and engine files in a browser, read and steered by a process of its own (`headrace view`).

    browser ──HTTP──► server (aiohttp) ── access: host, origin, token ──► an operation
                                                                            │  in one of a few threads, 1 s of reading
                          run file, engine file ◄── read, page by page ─────┤
                          the holder's socket   ◄── steer ──────────────────┘

The page has nothing that a run needs: it reads files as any other reader does and asks a run through its socket. Its
load, memory and death cost a run nothing.

An operation is one thing that can be asked: its parameters and its reply are structs, and its function takes one and
gives the other. The JSON API under /api/v1 and its OpenAPI document are made from the operations, and the HTML pages
are templates filled with their replies. A reply is bounded by its type: pages of rows, some dozen bars, texts that are
cut; what was cut says so.

    shown_files   which files there are to see; a request names one by its id, never by a path
    access        who may come in: the token, its cookie, Host and Origin, the headers of every response
    operations    what an operation is, and the errors it may end with
    reads         the threads that operations run in
    page_cursors  places in long lists, as texts that are sent back
    cells         values on their way out: cut, and without a model's words unasked
    table_query   which interviews, in which order, with which columns
    shown_texts   figures in words; run_paces, kept_lines: what is kept between two looks at a file
    engine_pictures  an engine's memory line and a run's steps, from replies
    html_pages    templates, and what they may call
    openapi       the document of the API; metrics: figures for Prometheus
    page_server   routes and limits, from start to end
    exported_page a run as one file, to hand on
    api/          the operations, one module a subject
    live/         live updates by server-sent events
    pages/        the HTML pages, one module a subject
    downloads/    what is filtered as a file: CSV, JSON lines, Parquet
    templates/    HTML for people who read without scripts
    assets/       the style sheet and our own small modules for what lives

Everything that comes from a file or a service is text: templates escape it, pictures escape it (charts.svg_parts), and
no page runs a script that is not in assets/.
"""
