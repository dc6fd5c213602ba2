"""What Headrace costs, measured beside its peer: memory, speed, growth, disk, resume, small things.

Each measure is a module with `measure(bench)`, run in an order by __main__; what it measures runs in a fresh process,
a program in `children/`. Linux only: figures come from /proc and wait4.
"""
