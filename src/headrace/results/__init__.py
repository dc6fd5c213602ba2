"""What is read back from a run file: lazy results, queries on them, export. Nothing here writes the run file."""
