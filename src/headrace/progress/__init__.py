"""How far a run is: in words, on a terminal, in a notebook."""
