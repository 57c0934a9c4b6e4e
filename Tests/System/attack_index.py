#!/usr/bin/python3
"""Damages the index of a stopped daemon, starts the daemon again, and checks the result.

    attack_index.py BIN WORK SEED PART…     BIN has freshetd and freshetctl

Parts: numbers (every integer column at its extremes), types, schema (bytes of the first page), truncated, zeroed, log (the
write-ahead log and the shared memory beside the index), stray (not a database), foreign (a directory in place of a file, and
so on). The environment variable COUNT limits the number of damages for each part; the seed selects them.
"""
import collections, concurrent.futures, hashlib, json, os, random, shutil, signal, socket, sqlite3, subprocess, sys, time

BIN, WORK, SEED = sys.argv[1], sys.argv[2], int(sys.argv[3])
PARTS = sys.argv[4:] or ["numbers", "types", "schema", "truncated", "zeroed", "log", "stray", "foreign"]
COUNT = int(os.environ.get("COUNT", "30"))
LIMIT = 60  # seconds, of a busy machine
EXTREMES = [-(1 << 63), -1, 0, 1, (1 << 31) - 1, (1 << 63) - 1]
CONTENT = {"one.txt": b"two\n", "live.txt": b"three\n", "several/a": b"a", "several/b.txt": b"b"}
DAMAGED = ("is damaged", "are damaged")


class Daemon:
    def __init__(self, root):
        self.root, self.log = root, open(f"{root}/log", "wb")
        self.socket = f"{root}/runtime/io.freshet.Control"
        self.process = subprocess.Popen(
            [f"{BIN}/freshetd", "--config-dir", f"{root}/etc", "--state-dir", f"{root}/state", "--cache-dir",
             f"{root}/cache", "--runtime-dir", f"{root}/runtime"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def wait_until_ready(self):
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                return f"ended with status {self.process.returncode}"
            if "ready" in self.lines():
                return None
            time.sleep(0.01)
        return "not ready in time"

    def ask(self, *words):
        return subprocess.run([f"{BIN}/freshetctl", *words], capture_output=True, timeout=LIMIT,
                              env={**os.environ, "FRESHET_SOCKET": self.socket})

    def lines(self):
        return open(f"{self.root}/log", errors="replace").read()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "killed"


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)


def configure(root):
    for name, more in [("one", "on-change: {exec: [/bin/false]}"), ("live", "")]:
        write(f"{root}/etc/pipelines/{name}.yaml",
              f"source: {{file: {root}/origin/{name}.txt}}\nrefresh: {{on: [start], fresh-for: 0, min-interval: 0}}\n"
              f"cache: {{file: {name}.txt}}\n{more}\n")
    write(f"{root}/etc/pipelines/several.yaml",
          f"source: {{file: {root}/origin/several.json}}\nrefresh: {{on: [start], fresh-for: 0, min-interval: 0}}\n"
          "cache: {file: several, files: {a: .a, b.txt: .b}}\n")


def prepare():
    """Makes a daemon's directories with a row in each table; without its sources, lost content cannot be fetched again."""
    root = f"{WORK}/pristine"
    configure(root)
    write(f"{root}/origin/one.txt", "one\n")
    write(f"{root}/origin/live.txt", "one\n")
    write(f"{root}/origin/several.json", '{"a": "a", "b": "b"}')
    daemon = Daemon(root)
    problem = daemon.wait_until_ready()
    if problem:
        sys.exit(f"FAILED: the first start: {problem}\n{daemon.lines()}")
    for _ in range(2):
        for name in ["one", "live", "several"]:
            daemon.ask("refresh", "--wait", name)
        write(f"{root}/origin/one.txt", "two\n")
        write(f"{root}/origin/live.txt", "three\n")
    lost = missing(root)
    daemon.stop()
    if lost:
        sys.exit(f"FAILED: there is no {lost}\n{daemon.lines()}")
    shutil.rmtree(f"{root}/origin")
    with sqlite3.connect(f"{root}/state/index.sqlite") as index:
        now, row = time.time_ns(), index.execute("SELECT id FROM pipelines WHERE name = 'one'").fetchone()[0]
        digest = hashlib.sha256(b"rejected").digest()
        write(f"{root}/cache/generations/one/rejected-{digest.hex()}", "rejected")
        for sql, values in [
            ("INSERT INTO rejected VALUES (?, ?, 8, ?, 'short', 0, ?, 'u', 'e', 'm')", (row, digest, now, now)),
            ("INSERT INTO requests VALUES (?, ?, ?, 3)", (row, now, now)),
            ("INSERT INTO parts VALUES (?, '', 'b', 'e', 'm', x'5b5d')", (row,)),
            ("INSERT INTO pages VALUES (?, '', 2, 'n', 't', x'5b5d')", (row,)),
            ("INSERT INTO parameters VALUES (?, 'p', 'v')", (row,)),
            ("INSERT INTO accepted VALUES (?, ?)", (row, digest)),
            ("INSERT INTO validators VALUES (1, ?, 'u', ?, 'e', 'm')", (row, digest)),
            ("UPDATE pipelines SET pin_number = NULL, retry_after = NULL, expires = NULL WHERE id = ?", (row,)),
        ]:
            index.execute(sql, values)
    index.close()
    return root


def missing(root):
    for name, content in CONTENT.items():
        try:
            if open(f"{root}/cache/current/{name}", "rb").read() != content:
                return name
        except OSError:
            return name
    return None


def tables(index):
    return [name for name, in index.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")]


def numbers(path):
    index = sqlite3.connect(path)
    for table in tables(index):
        for column in index.execute(f"PRAGMA table_info({table})").fetchall():
            if column[2] == "INTEGER":
                for value in EXTREMES:
                    yield f"{table}.{column[1]} = {value}", lambda path, t=table, c=column[1], v=value: execute(
                        path, f"UPDATE OR IGNORE {t} SET {c} = ?", v)
    index.close()


def types(path):
    index = sqlite3.connect(path)
    for table in tables(index):
        for column in index.execute(f"PRAGMA table_info({table})").fetchall():
            for value in [None, "text", b"\xff\0", float("inf"), 1e300, "x" * 100000, "a\r\nb: c/../" + "\u0301" * 40]:
                yield f"{table}.{column[1]} is {str(value)[:20]!r}", lambda path, t=table, c=column[1], v=value: retype(
                    path, f"UPDATE OR IGNORE {t} SET {c} = ?", v)
    index.close()


def execute(path, sql, value):
    with sqlite3.connect(path) as index:
        index.execute(sql, (value,))
    index.close()


def retype(path, sql, value):
    """Stores a value of another type, as a damaged disk may: the rules of the table are disabled meanwhile."""
    index = sqlite3.connect(path, isolation_level=None)
    rules = index.execute("SELECT rowid, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    index.execute("PRAGMA writable_schema = ON")
    for row, text in rules:
        loose = text.replace("STRICT, ", "").replace(" STRICT", "").replace("INTEGER", "ANY").replace("TEXT", "ANY")
        loose = loose.replace("NOT NULL", "").replace("ANY PRIMARY KEY", "INTEGER PRIMARY KEY").replace("BLOB", "ANY")
        index.execute("UPDATE sqlite_schema SET sql = ? WHERE rowid = ?", (loose, row))
    index.close()
    index = sqlite3.connect(path, isolation_level=None)
    try:
        index.execute(sql, (value,))
    except sqlite3.Error:
        pass  # the row number is always an integer
    index.execute("PRAGMA writable_schema = ON")
    for row, text in rules:
        index.execute("UPDATE sqlite_schema SET sql = ? WHERE rowid = ?", (text, row))
    index.close()


def flip(path, offset, mask):
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ mask]))


def schema(path):
    """The first page, and the other pages with the text of the schema."""
    content = open(path, "rb").read()
    for start in range(0, len(content), 4096):
        page = content[start : start + 4096]
        if start and b"CREATE TABLE" not in page:
            continue
        for offset in (offset for offset in range(4096) if page[offset] or offset < 128):
            for mask in [0x01, 0x80, 0xFF]:
                yield (f"page {start // 4096 + 1}, byte {offset} ^ {mask:#x}",
                       lambda path, o=start + offset, m=mask: flip(path, o, m))


def truncated(path):
    size = os.path.getsize(path)
    for length in [*range(0, 128), *range(128, size, 97), *range(4096, size, 4096), size - 1]:
        yield f"{length} bytes", lambda path, n=length: os.truncate(path, n)


def zeroed(path):
    for page in range(os.path.getsize(path) // 4096):
        def zero(path, page=page):
            with open(path, "r+b") as file:
                file.seek(page * 4096)
                file.write(bytes(4096))
        yield f"page {page + 1} is zero", zero
        for mask in [0x01, 0xFF]:
            for offset in range(0, 4096, 61):
                yield (f"page {page + 1}, byte {offset} ^ {mask:#x}",
                       lambda path, o=page * 4096 + offset, m=mask: flip(path, o, m))


def log(path):
    for suffix in ["-wal", "-shm"]:
        for size in [0, 1, 31, 32, 33, 4096, 100000]:
            yield f"{suffix} has {size} random bytes", lambda path, s=suffix, n=size: open(path + s, "wb").write(
                random.Random(n).randbytes(n))


def stray(path):
    for name, content in [("empty", b""), ("text", b"hello\n" * 3000), ("zeroes", bytes(8192)),
                          ("noise", random.Random(1).randbytes(1 << 16))]:
        yield name, lambda path, c=content: open(path, "wb").write(c)
    yield "no table", drop


def foreign(path):
    for name in ["index.sqlite", "index.sqlite-wal", "index.sqlite-shm", "index.sqlite-journal", "index.sqlite.damaged",
                 "lock"]:
        for kind in ["directory", "FIFO", "link"]:
            yield f"{name} is a {kind}", lambda path, n=name, k=kind: replace(f"{os.path.dirname(path)}/{n}", k)
    for name in ["checks", "hooks"]:
        for kind in ["file", "FIFO", "link"]:
            yield f"{name} is a {kind}", lambda path, n=name, k=kind: replace(f"{os.path.dirname(path)}/{n}", k)


def replace(path, kind):
    if os.path.isdir(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
    if kind == "directory":
        write(f"{path}/theirs", "theirs\n")
    elif kind == "FIFO":
        os.mkfifo(path)
    elif kind == "link":
        os.symlink("/dev/zero", path)
    else:
        write(path, "theirs\n")


def drop(path):
    with sqlite3.connect(path) as index:
        index.execute("DROP TABLE runs")
    index.close()


def attack(number, part, name, damage, pristine):
    root = f"{WORK}/{number}"
    subprocess.run(["cp", "-a", pristine, root], check=True)
    configure(root)
    damage(f"{root}/state/index.sqlite")
    daemon = Daemon(root)
    errors = []
    problem = daemon.wait_until_ready()
    if problem:
        errors.append(problem)
    else:
        lost = missing(root)
        answer = daemon.ask("status", "--json")
        try:
            copies = {one["name"] for one in json.loads(answer.stdout)["pipelines"] if one.get("generation")}
            if copies != {"one", "live", "several"}:
                errors.append(f"the status has copies of {' '.join(sorted(copies)) or 'none'}")
        except (ValueError, KeyError, TypeError):
            errors.append(f"no status: {answer.stderr.decode(errors='replace')[:200]}")
        daemon.ask("history", "one")
        write(f"{root}/origin/live.txt", "four\n")
        daemon.ask("refresh", "--wait", "live")
        if open(f"{root}/cache/current/live.txt").read() != "four\n":
            errors.append("nothing new is published")
        if daemon.process.poll() is not None:
            errors.append(f"ended with status {daemon.process.returncode} while it ran")
        if lost:
            errors.append(f"{lost} is lost")
    status = daemon.stop()
    if status != 0 and not problem:
        errors.append(f"stopped with {status}")
    text = daemon.lines()
    messages = [line for line in text.splitlines() if "index.sqlite" in line and any(word in line for word in DAMAGED)]
    aside = [entry for entry in os.listdir(f"{root}/state") if ".damaged" in entry and ".stray-" not in entry]
    if len(messages) > 1:
        errors.append(f"{len(messages)} lines name the index")
    if aside and not any(".damaged" in line for line in messages):
        errors.append("set aside without a message")
    if part == "stray" and name != "empty" and not aside:
        errors.append("not set aside")
    if part == "foreign":
        if not [entry for entry in os.listdir(f"{root}/state") if ".stray-" in entry]:
            errors.append("not moved aside")
        if len([line for line in text.splitlines() if ".stray-" in line]) != 1:
            errors.append("not named in one line")
    result = (part, name, errors, bool(messages), bool(aside), text)
    if not errors:
        shutil.rmtree(root)
    return result


pristine = prepare()
path = f"{pristine}/state/index.sqlite"
chosen = []
for part in PARTS:
    all_of_it = list(globals()[part](path))
    # Each part has its own random sequence, so that a single part gives the same result as all together.
    chosen += [(part, *one) for one in random.Random(f"{SEED} {part}").sample(all_of_it, min(COUNT, len(all_of_it)))]
# Damages that have found errors are always tried.
if "numbers" in PARTS:
    wanted = ["hooks.attempts = 9223372036854775807", "pages.count = -1", "pipelines.is_set = -1",
              "pipelines.last_number = 9223372036854775807", "rejected.rejected_at = 9223372036854775807",
              "requests.count = 9223372036854775807", "generations.size = 9223372036854775807"]
    chosen += [("numbers", *one) for one in numbers(path) if one[0] in wanted]
workers = max(2, os.cpu_count() or 2)
with concurrent.futures.ThreadPoolExecutor(workers) as pool:
    results = list(pool.map(lambda one: attack(one[0], *one[1], pristine), enumerate(chosen)))
bad = [result for result in results if result[2]]
for part, name, errors, _, _, text in bad[: int(os.environ.get("SHOW", "10"))]:
    print(f"{part}: {name}: {'; '.join(errors)}")
    print("\n".join("    " + line for line in text.splitlines()[-8:]))
by_part = collections.Counter(result[0] for result in results)
print(f"# {len(results)} damaged indexes: {sum(r[4] for r in results)} set aside, {sum(r[3] and not r[4] for r in results)} "
      f"repaired, {sum(not r[3] for r in results)} served as they were")
if bad:
    counts = collections.Counter(result[0] for result in bad)
    sys.exit("FAILED: " + ", ".join(f"{counts[part]} of {by_part[part]} {part}" for part in by_part if counts[part]))
