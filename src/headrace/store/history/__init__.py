"""The memory history that both kinds of file keep: the table `memory_history`, written by a run and by an engine.

Does not cover: how it stays bounded (memory.bounded_history), or when it is written (store.run_file.run_journal,
agents.engine.engine_memory).
"""
