"""The engine file of agent runs: its tables (runs, steps, checkpoints, messages, blobs, events) and its journal.

A group of statements (`runs`, `steps`, `notes`) is one COMMIT, made before the steps in it return to their agents. A
replaced attempt is refused by its epoch inside the SQL statement itself. Values above a bound lie beside their row, as
blobs.
"""
