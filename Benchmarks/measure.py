"""What the benchmarks in Python share: a freshetd of their own, turns, tables."""
import json, os, pathlib, shutil, socket, statistics, subprocess, sys, time

HERE = pathlib.Path(__file__).resolve().parent
BINARIES = pathlib.Path(os.environ.get("FRESHET_BIN", HERE.parent / ".build/release")).resolve()


class Daemon:
    """freshetd with a configuration of its own; `ready` is how long READY took, in seconds."""

    def __init__(self, folder, pipelines, settings="", prefix=(), binaries=BINARIES):
        self.folder = folder
        self.binaries = binaries
        self.prefix = prefix
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "etc/pipelines").mkdir(parents=True)
        (self.folder / "etc/freshet.yaml").write_text(settings)
        for pipeline, text in pipelines:
            (self.folder / "etc/pipelines" / f"{pipeline}.yaml").write_text(text)
        self.start()

    def start(self):
        address = str(self.folder / "notify")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listener.bind(address)
        begun = time.monotonic()
        self.process = subprocess.Popen(
            [*self.prefix, self.binaries / "freshetd", "--config-dir", self.folder / "etc", "--state-dir",
             self.folder / "state", "--cache-dir", self.folder / "cache", "--runtime-dir", self.folder / "runtime",
             # Root's daemon would become the user of the service, whom not every machine has.
             *(["--user", "root"] if os.geteuid() == 0 else [])],
            env={**os.environ, "NOTIFY_SOCKET": address}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(self.folder / "log", "a"))
        while b"READY=1" not in listener.recv(4096):
            pass
        self.ready = time.monotonic() - begun
        os.unlink(address)
        self.notifications = listener  # it goes on writing to it

    @property
    def socket(self):
        return self.folder / "runtime/io.freshet.Control"

    def control(self, *words):
        subprocess.run([self.binaries / "freshetctl", "--socket", self.socket, *words],
                       check=True, stdout=subprocess.DEVNULL)

    def current(self, name):
        return self.folder / "cache/current" / name

    def memory(self, key):
        with open(f"/proc/{self.process.pid}/smaps_rollup") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(key + ":"))

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Connection:
    """A Varlink connection to a daemon that is kept: a call on it starts no process."""

    def __init__(self, daemon):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(daemon.socket))

    def call(self, method, **parameters):
        call = {"method": f"io.freshet.Control.{method}", "parameters": parameters}
        self.socket.sendall(json.dumps(call).encode() + b"\0")
        parts = []
        while not (parts and parts[-1].endswith(b"\0")):
            parts.append(self.socket.recv(1 << 20))
            if not parts[-1]:
                sys.exit(f"bench: {method}: the daemon hung up")
        reply = json.loads(b"".join(parts)[:-1])
        if "error" in reply:
            sys.exit(f"bench: {method}: {reply}")
        return reply["parameters"]

    def refresh(self, *names):
        """Waits for a run of each, or of all, in which a new generation is committed."""
        asked = {"names": list(names)} if names else {"all": True}
        for result in self.call("Refresh", wait=True, **asked)["results"]:
            if result.get("outcome") != "changed":
                sys.exit(f"bench: a refresh that changed nothing: {result}")

    def close(self):
        self.socket.close()


def until(condition, pause=0.01):
    while not condition():
        time.sleep(pause)


def timed(action):
    begun = time.monotonic()
    action()
    return time.monotonic() - begun


def turns(names, rounds):
    """Each name once a round, another one first each time: what disturbs the machine for a while disturbs all."""
    names = list(names)
    for number in range(rounds):
        yield from names[number % len(names):] + names[:number % len(names)]


def figures(values, digits=3):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f})"


def ratio(values, others):
    """The median of the ratios of those that were measured in one round."""
    return f"{statistics.median(a / b for a, b in zip(values, others)):.2f}"


def table(title, head, rows):
    print(f"\n{title}\n\n| | {' | '.join(head)} |\n| --- |{' ---: |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    sys.stdout.flush()


def lives(make, rounds, then=None):
    """What a daemon that `make` makes costs when it starts on nothing, when all have run, and when it starts again;
    `then` may measure one thing more of that one. Lists of a figure for each round, by name, and of what it returned."""
    columns = {name: [] for name in (
        "first READY, s", "READY, all have copies, s", "own memory, MiB", "after all have run, MiB")}
    first, again, own, after = columns.values()
    more = []
    for _ in range(rounds):
        daemon = make()
        first.append(daemon.ready)
        own.append(daemon.memory("Private_Dirty") / 1024)
        daemon.control("refresh", "--all", "--wait")
        after.append(daemon.memory("Private_Dirty") / 1024)
        daemon.stop()
        daemon.start()
        again.append(daemon.ready)
        if then:
            more.append(then(daemon))
        daemon.stop()
    return columns, more


def life_cells(columns):
    return [figures(values) if name.endswith(", s") else f"{statistics.median(values):.1f}"
            for name, values in columns.items()]


def enter(tools, *more):
    """Runs this program again in name spaces of its own, with which all that it starts ends."""
    if os.environ.get("FRESHET_BENCH_INNER") == "1":
        return
    for tool in ("unshare", *tools):
        if not shutil.which(tool):
            sys.exit(f"bench: nothing measured: there is no '{tool}'")
    spaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *more]
    if os.getuid() != 0:
        spaces += ["--user", "--map-root-user"]
    os.environ["FRESHET_BENCH_INNER"] = "1"
    os.execvp("unshare", [*spaces, sys.executable, *sys.argv])


def headline(options, *more):
    with open("/proc/loadavg") as file:
        print(", ".join((f"{os.cpu_count()} processors", f"load {file.read().split()[0]} before", *more,
                         f"{options.rounds} rounds; medians, in brackets the least; ratios are medians of pairs")))
