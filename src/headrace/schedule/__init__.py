"""Decisions only: events in, commands out. No clock, no input or output, no event loop; whoever calls hands them in."""
