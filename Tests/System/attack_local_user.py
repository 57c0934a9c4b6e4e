#!/usr/bin/python3
"""A hostile client: attack_local_user.py SOCKET ATTACK SECONDS."""
import json, socket, sys, threading, time

path, attack, span = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.monotonic() + span
counts = {"sent": 0, "answers": 0, "closed": 0}


def call(method, **parameters):
    return json.dumps({"method": "io.freshet.Control." + method, "parameters": parameters}).encode() + b"\0"


def drain(client):
    """Reads what comes, so that the daemon never waits for this client."""
    while True:
        try:
            data = client.recv(1 << 16)
        except OSError:
            return
        if not data:
            return
        counts["answers"] += data.count(b"\0")


def flood(message, more=1):
    """One connection after the other: sends a message without a pause until the daemon closes it."""
    while time.monotonic() < end:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            client.settimeout(1)
            threading.Thread(target=drain, args=(client,), daemon=True).start()
            while time.monotonic() < end:
                client.sendall(message * more)
                counts["sent"] += more
        except OSError:
            counts["closed"] += 1
            time.sleep(0.001)
        finally:
            client.close()


PING = b'{"method":"org.varlink.service.GetInfo"}\0'
ATTACKS = {
    "batches": (3, PING, 1_000),
    "crowd": (31, PING, 100),
    "garbage": (3, b'{"method":"a.B","x":1}\0', 1_000),
    "names": (8, call("Get", name="x" * 60_000), 1),
    "patterns": (31, call("Monitor", names=["*a*b*c*d*e*f*g*"] * 2_800)[:-2] + b',"more":true}\0', 1),
    "marks": (8, call("Get", name="e" + "\u0301\u0323" * 2_500), 1),
    "raw-marks": (8, ('{"method":"io.freshet.Control.Get","parameters":{"name":"e%s"}}\0' % ("\u0301\u0323" * 15_000)).encode(), 1),
    "oneway": (31, call("Describe")[:-2] + b',"oneway":true}\0', 300),
    "contradiction": (31, call("Monitor")[:-2] + b',"oneway":true,"more":true}\0', 300),
    # Questions that are much work.
    "list": (31, call("List")[:-2] + b',"more":true}\0', 10),
    "matching": (31, call("List", names=["*a*b*c*d*e*f*g*"] * 60)[:-2] + b',"more":true}\0', 10),
    "recent": (31, call("RecentEvents")[:-2] + b',"more":true}\0', 10),
    "followers": (31, call("Monitor")[:-2] + b',"more":true}\0', 1),
    "members": (24, b"{" + b",".join(b'"m%d":0' % number for number in range(5_000)) + b"}\0", 1),
}
connections, message, more = ATTACKS[attack]
threads = [threading.Thread(target=flood, args=(message, more)) for _ in range(connections)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"# {attack}: {counts['sent']} messages, {counts['answers']} answers, {counts['closed']} connections closed")
