"""Processes held to their memory. Knows nothing of surveys or agents; usable and tested by itself."""
