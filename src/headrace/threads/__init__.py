"""Event loops in threads of their own, calls between them, and noticing that a loop is stuck.

The engine's loop has a thread of its own, always (`loop_thread`), so `run()` works in a script and in a notebook. Calls
between the caller's loop and the engine's cross in batches (`crossing`). When a loop is stuck (`stuck_loop`), a timer
of the kernel writes the thread's stack to a file, in C, while it is stuck (`traceback_timer`); the file outlives the
process.
"""
