"""A daemon under valgrind(1), with an origin on loopback: for Scripts/order and Benchmarks/instructions."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PIPELINES = 10
LIMIT = 120  # seconds, for the start and for each command
ANSWER_LIMIT = 10  # seconds


def has_user(number):
    """Whether the user exists in this user name space."""
    ranges = [[int(word) for word in line.split()] for line in Path("/proc/self/uid_map").read_text().splitlines()]
    return any(first <= number < first + count for first, _, count in ranges)


class Origin(SimpleHTTPRequestHandler):
    """A file server: an unchanged file is answered with 304."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        super().do_GET()
        self.server.answers += 1


class TracedDaemon:
    """Traces the instructions of freshetd from its start to its end, in a directory of its own.

    `freshetd` has a copy of the program, and `output` the trace, after the end.
    """

    def __init__(self, programs, *options, more=""):
        """Starts the daemon of a directory with programs; the options are those of callgrind.

        `more` is the configuration of one more pipeline, in which {origin} is the origin's URL.
        """
        for tool in ("valgrind", "nm"):
            if shutil.which(tool) is None:
                sys.exit(f"{sys.argv[0]}: {tool} is not installed; install valgrind and binutils")
        self.programs = programs
        self.directory = Path(tempfile.mkdtemp(prefix="freshet-trace-"))
        self.output = self.directory / "state/callgrind"
        self.socket = self.directory / "run/control"
        owner = 65534 if os.geteuid() == 0 and has_user(65534) else None  # freshetd does no work as root
        for name in ("config/pipelines", "state", "cache", "run", "content"):
            (self.directory / name).mkdir(parents=True)
        if owner is not None:
            for name in (".", "state", "cache", "run"):
                os.chown(self.directory / name, owner, owner)
        content = str(self.directory / "content")
        self.origin = ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Origin(*a, directory=content))
        self.origin.answers = 0
        threading.Thread(target=self.origin.serve_forever, daemon=True).start()
        for number in range(PIPELINES):
            self._configure(number)
        if more:
            origin = f"http://127.0.0.1:{self.origin.server_port}"
            (self.directory / "config/pipelines/more.yaml").write_text(more.replace("{origin}", origin))
        # A copy, because the user may not be allowed to open the directory of the sources.
        self.freshetd = Path(shutil.copy(programs / "freshetd", self.directory))
        with open(self.directory / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["valgrind", "--quiet", "--tool=callgrind", "--demangle=no", "--compress-strings=no",
                 "--compress-pos=no", f"--callgrind-out-file={self.output}", *options, self.freshetd,
                 "--config-dir", self.directory / "config", "--state-dir", self.directory / "state",
                 "--cache-dir", self.directory / "cache", "--runtime-dir", self.directory / "run",
                 "--socket", self.socket, *(["--user", "root"] if owner is None and os.geteuid() == 0 else [])],
                user=owner, group=owner, extra_groups=None if owner is None else [],
                stdout=subprocess.DEVNULL, stderr=log)

    def _configure(self, number):
        content = self.directory / "content" / f"{number}.json"
        content.write_text(f'{{"number": {number}}}\n')
        os.utime(content, (0, 0))  # an age at which the daemon relies on Last-Modified
        (self.directory / "config/pipelines" / f"feed-{number}.yaml").write_text(
            f"source: {{url: 'http://127.0.0.1:{self.origin.server_port}/{number}.json'}}\n"
            f"cache: {{file: feed-{number}.json}}\n"
            "refresh: {every: 1h, on: [start, network, resume, reload]}\n")

    def __enter__(self):
        deadline = time.monotonic() + LIMIT
        while not self.socket.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                error = (self.directory / "log").read_text()
                self.__exit__()
                sys.exit(f"{sys.argv[0]}: freshetd does not start:\n{error}")
            time.sleep(0.05)
        return self

    def control(self, *arguments):
        """Runs freshetctl."""
        result = subprocess.run([self.programs / "freshetctl", "--socket", self.socket, *arguments], timeout=LIMIT,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if result.returncode != 0:
            sys.exit(f"{sys.argv[0]}: freshetctl {' '.join(arguments)}: {result.stderr}")

    def await_answers(self, count):
        """Waits until the origin has answered so many requests since the start. Returns whether it has."""
        deadline = time.monotonic() + ANSWER_LIMIT
        while self.origin.answers < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.origin.answers >= count

    def stop(self):
        """Ends the daemon, which writes the trace."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=LIMIT)

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.origin.shutdown()
        shutil.rmtree(self.directory)
