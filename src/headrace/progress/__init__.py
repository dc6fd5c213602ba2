"""Shows how far a run is: in words (`text`), on a terminal (`terminal_line`), in a notebook (`notebook`).

    SurveyRun.progress ──► refresh.Display (how often) ──► a canvas: terminal_line, notebook ──► text (what fits)
                                └──► pace (how fast)

A Progress is one frozen reading, made on the run's thread and read from any. A canvas that fails is given up: no run
ends because a terminal went away. On a terminal progress is drawn on the run's thread; in a notebook in the caller's,
because Jupyter sends what another thread displays to the cell that ran last.
"""
