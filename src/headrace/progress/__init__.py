"""Shows how far a run is: in words (`text`), on a terminal (`terminal_line`), in a notebook (`notebook`).

`pace` turns readings into a speed; `refresh` decides how often to draw. On a terminal progress is drawn on the engine's
thread; in a notebook in the caller's, because Jupyter sends what another thread displays to the cell that ran last.
"""
