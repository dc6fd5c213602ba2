"""Measuring and limiting memory through the operating system: the only readers of /proc and of cgroups."""
