"""Decides which agent run starts, waits, is preempted or killed: events in, commands out. Pure."""
