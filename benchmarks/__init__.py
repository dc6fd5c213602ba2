"""What Headrace costs, measured beside its peer: memory, speed, growth, disk, resume, small things.

Each measure is a module with `measure(bench)`. What it measures runs in a fresh process, a program in `children/`, so
that memory and CPU are its own. Linux only: figures come from /proc and wait4.
"""
