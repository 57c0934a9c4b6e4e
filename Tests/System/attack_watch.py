#!/usr/bin/python3
"""Calls the daemon all the time, as root, and writes the duration of each call.

    attack_watch.py SOCKET FILE [ping|list]    until it is ended; a ping unless named
    attack_watch.py --judge FILE [TITLE]       prints the percentiles; status 1 if an answer took longer than 2 s

The time in which the daemon's event loop or this program was ready to run but had no processor (the second number of
/proc/PID/schedstat) is subtracted, so that other work on the machine does not count.
"""
import os, signal, socket, struct, sys, time


def starved(process):
    try:
        with open(f"/proc/{process}/schedstat") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0

if sys.argv[1] == "--judge":
    times = sorted(float(line) for line in open(sys.argv[2]))
    if not times:
        sys.exit("FAILED: no call was made")
    title = sys.argv[3] if len(sys.argv) > 3 else "answers during the attacks"
    shares = ", ".join(f"{share}th percentile {times[len(times) * share // 100] * 1000:.1f} ms" for share in (50, 90, 99))
    print(f"# {len(times)} {title}: {shares}, longest {times[-1] * 1000:.0f} ms")
    sys.exit(f"FAILED: an answer took {times[-1]:.1f} s" if times[-1] > 2 else 0)

CALL = {
    "ping": b'{"method":"org.varlink.service.GetInfo"}\0',
    "list": b'{"method":"io.freshet.Control.List","parameters":{},"more":true}\0',
}[sys.argv[3] if len(sys.argv) > 3 else "ping"]


def ends(answer):
    """Returns whether the last message is complete, and no more messages follow."""
    return answer.endswith(b"\0") and b'"continues":true' not in answer[answer[:-1].rfind(b"\0") + 1:]


client, daemon, before, own, began = None, None, 0.0, 0.0, time.monotonic()


def took():
    waited = starved("self") - own + (starved(daemon) - before if daemon else 0)
    return max(0.0, time.monotonic() - began - waited)


signal.signal(signal.SIGTERM, lambda *_: sys.exit())
is_waiting = False
with open(sys.argv[2], "w", buffering=1) as file:
    try:
        while True:
            client = socket.socket(socket.AF_UNIX)
            daemon, before = None, 0.0
            own = starved("self")
            began = time.monotonic()
            is_waiting = True
            try:
                client.connect(sys.argv[1])
                daemon = struct.unpack("iII", client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
                before = starved(daemon)
                client.sendall(CALL)
                answer = b""
                while not ends(answer):
                    data = client.recv(1 << 20)
                    if not data:
                        raise OSError("no answer")
                    answer += data
            except OSError:
                # A closed connection counts as no answer.
                print(99, file=file)
            time_taken = took()
            is_waiting = False
            print(time_taken, file=file)
            client.close()
            time.sleep(0.02)
    finally:
        # A pending call counts with the time until now.
        if is_waiting:
            print(took(), file=file)
