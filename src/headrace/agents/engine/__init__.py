"""The engine: the loop where scheduler, store and executors of agent runs meet, and the handle users hold."""
