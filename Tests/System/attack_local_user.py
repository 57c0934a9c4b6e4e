#!/usr/bin/python3
"""A hostile client: attack_local_user.py SOCKET ATTACK SECONDS; or DIRECTORY flood SECONDS."""
import itertools, json, os, socket, sys, threading, time

path, attack, span = sys.argv[1], sys.argv[2], float(sys.argv[3])
end = time.monotonic() + span
counts = {"sent": 0, "answers": 0, "closed": 0}


def call(method, **parameters):
    return json.dumps({"method": "io.freshet.Control." + method, "parameters": parameters}).encode() + b"\0"


def drain(client):
    """Reads all replies, so that the daemon never waits for this client."""
    while True:
        try:
            data = client.recv(1 << 16)
        except OSError:
            return
        if not data:
            return
        counts["answers"] += data.count(b"\0")


def flood(message, more=1):
    """Sends a message without a pause until the daemon closes the connection, then connects again."""
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


def follow(users):
    """Follows events with many user ids, as a user with a subuid range can, on new connections without end."""
    os.setgroups([])
    clients = [None] * 256
    for number in itertools.count():
        if time.monotonic() >= end:
            return
        permit = number % len(clients)
        if clients[permit]:
            clients[permit].close()
        clients[permit] = socket.socket(socket.AF_UNIX)
        try:
            os.seteuid(100_000 + number % users)
            clients[permit].connect(path)
            clients[permit].sendall(call("Monitor")[:-2] + b',"more":true}\0')
            counts["sent"] += 1
        except OSError:
            counts["closed"] += 1
        finally:
            os.seteuid(0)
        if number == 2 * len(clients):
            print("there", flush=True)


def exchange(directory):
    """Replaces files of `refresh.files` with links in a cycle, and back; in the end each link leads to a file."""
    names, count = ["own-link", "to-private", "to-index", "loop"], 0
    with open(f"{directory}/honest", "w") as file:
        file.write("again\n")
    while time.monotonic() < end:
        for name in names:
            count += 1
            os.symlink(name if count % 3 else "honest", f"{directory}/next")
            os.rename(f"{directory}/next", f"{directory}/{name}")
    for name in names:
        os.symlink("honest", f"{directory}/next")
        os.rename(f"{directory}/next", f"{directory}/{name}")
    print(f"# flood: {count} links")


if attack == "flood":
    exchange(path)
    sys.exit()
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
    # Calls that cause much work.
    "list": (31, call("List")[:-2] + b',"more":true}\0', 10),
    "matching": (31, call("List", names=["*a*b*c*d*e*f*g*"] * 60)[:-2] + b',"more":true}\0', 10),
    "recent": (31, call("RecentEvents")[:-2] + b',"more":true}\0', 10),
    "followers": (31, call("Monitor")[:-2] + b',"more":true}\0', 1),
    "members": (24, b"{" + b",".join(b'"m%d":0' % number for number in range(5_000)) + b"}\0", 1),
}
USERS = {"users": 8, "many-users": 65_536}
if attack in USERS:
    follow(USERS[attack])
    sys.exit()
connections, message, more = ATTACKS[attack]
threads = [threading.Thread(target=flood, args=(message, more)) for _ in range(connections)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(f"# {attack}: {counts['sent']} messages, {counts['answers']} answers, {counts['closed']} connections closed")
