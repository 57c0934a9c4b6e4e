#!/usr/bin/python3
"""Measures the memory of a process and its descendants until the process ends: peak_memory.py PID FILE.

The file has the peak of the sum of proportional shares (PSS), in KiB.
"""
import os, sys, time


def descendants(process):
    yield process
    try:
        for thread in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{thread}/children") as file:
                for child in file.read().split():
                    yield from descendants(child)
    except OSError:
        pass


def command(process):
    with open(f"/proc/{process}/cmdline") as file:
        return file.read()


def share(process):
    try:
        # Before execve, a child has the memory of its parent, which would count twice.
        if process != sys.argv[1] and command(process) == OWN:
            return 0
        with open(f"/proc/{process}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, ProcessLookupError):
        return 0


OWN = command(sys.argv[1])
peak = 0
while os.path.exists(f"/proc/{sys.argv[1]}"):
    now = sum(share(process) for process in descendants(sys.argv[1]))
    if now > peak:
        peak = now
        with open(sys.argv[2] + ".new", "w") as file:
            print(peak, file=file)
        os.rename(sys.argv[2] + ".new", sys.argv[2])
    time.sleep(0.02)
