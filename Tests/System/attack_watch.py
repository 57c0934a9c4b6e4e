#!/usr/bin/python3
"""Asks the daemon all the time, as root, and writes how long each answer took.

    attack_watch.py SOCKET FILE      until it is ended
    attack_watch.py --judge FILE     prints the percentiles; status 1 if an answer took longer than 2 s

The time in which the daemon's loop or this program was ready to run and got no processor (the second number of
/proc/PID/schedstat) is left out, so that other work on the machine does not count as the daemon's.
"""
import socket, struct, sys, time


def starved(process):
    try:
        with open(f"/proc/{process}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0

if sys.argv[1] == "--judge":
    times = sorted(float(line) for line in open(sys.argv[2]))
    if not times:
        sys.exit("FAILED: the daemon was never asked")
    p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"# {len(times)} answers during the attacks: median {p50 * 1000:.1f} ms, 99th percentile {p99 * 1000:.0f} ms, "
          f"longest {times[-1] * 1000:.0f} ms")
    sys.exit(f"FAILED: an answer took {times[-1]:.1f} s" if times[-1] > 2 else 0)

CALL = b'{"method":"org.varlink.service.GetInfo"}\0'
with open(sys.argv[2], "w", buffering=1) as file:
    while True:
        client = socket.socket(socket.AF_UNIX)
        daemon, before = None, 0.0
        own = starved("self")
        began = time.monotonic()
        try:
            client.connect(sys.argv[1])
            daemon = struct.unpack("iII", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            before = starved(daemon)
            client.sendall(CALL)
            answer = b""
            while not answer.endswith(b"\0"):
                data = client.recv(65536)
                if not data:
                    raise OSError("no answer")
                answer += data
        except OSError:
            # A daemon that turns root away has not answered either.
            print(99, file=file)
        took = time.monotonic() - began
        if daemon:
            took -= starved(daemon) - before
        print(max(0.0, took - (starved("self") - own)), file=file)
        client.close()
        time.sleep(0.02)
