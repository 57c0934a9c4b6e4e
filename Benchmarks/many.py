"""What `volume` and `scale` share: an nginx with many small files, and the programs that request them."""
import json, os, pathlib, shutil, socket, subprocess, tempfile, time
from measure import BINARIES, Daemon, until

ORIGIN = "http://127.0.0.1:8480"


class Bed:
    """A directory, an nginx, and the daemons of one run."""

    def __init__(self, options):
        self.options = options
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="freshet-many."))
        self.root = self.work / "root"
        (self.root / "items").mkdir(parents=True)
        self.most = max(options.counts)
        # A validator of a file that changed in the same second is not used, so the files are older.
        hour_ago = time.time() - 3600
        for number in range(self.most):
            item = self.root / "items" / f"{number}.json"
            item.write_text(json.dumps({"id": number, "text": "x" * 200}))
            os.utime(item, (hour_ago, hour_ago))
        for count in {10, *options.counts}:
            (self.root / f"list-{count}.json").write_text(json.dumps(list(range(count))))
            pages = self.root / f"pages-{count}"
            pages.mkdir()
            for number in range(count):
                page = {"items": [number] * 10}
                if number + 1 < count:
                    page["next"] = f"{number + 1}.json"
                (pages / f"{number}.json").write_text(json.dumps(page))
        self.work.chmod(0o755)
        configuration = self.work / "nginx.conf"
        configuration.write_text(f"""
            daemon off; pid {self.work}/nginx.pid; error_log {self.work}/nginx.err; worker_processes 1;
            {"user root;" if self.is_root else ""}
            events {{ worker_connections 1024; }}
            http {{ access_log off; keepalive_requests 1000000; types {{ application/json json; }}
                client_body_temp_path {self.work}/n1; proxy_temp_path {self.work}/n2; fastcgi_temp_path {self.work}/n3;
                uwsgi_temp_path {self.work}/n4; scgi_temp_path {self.work}/n5;
                server {{ listen 127.0.0.1:8480 backlog=1024; root {self.root}; }} }}""")
        self.nginx = subprocess.Popen(["nginx", "-c", configuration], stderr=subprocess.DEVNULL)
        until(lambda: self.reaches(8480))

    @property
    def is_root(self):
        return os.getuid() == 0

    @staticmethod
    def reaches(port):
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    def close(self):
        self.nginx.terminate()
        self.nginx.wait()
        shutil.rmtree(self.work)


def daemon_of(bed, name, pipelines, binaries=BINARIES):
    return Daemon(bed.work / name, pipelines,
                  f"concurrency: {bed.options.concurrency}\norigin-concurrency: {bed.options.concurrency}\n",
                  binaries=binaries)


def curl_subject(bed, count):
    folder = bed.work / "curl"
    script = "next\n".join(
        f'url = "{ORIGIN}/items/{number}.json"\netag-compare = "{folder}/{number}.etag"\n'
        f'etag-save = "{folder}/{number}.etag"\noutput = "{folder}/{number}.json"\nsilent\n' for number in range(count))

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "config").write_text(script)

    def ask():
        subprocess.run(["curl", "--parallel", "--parallel-max", str(bed.options.concurrency), "--config",
                        folder / "config"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    return prepare, ask, lambda: None


def freshet_subject(bed, name, pipelines, *words, binaries=BINARIES):
    daemon = []

    def prepare():
        daemon[:] = [daemon_of(bed, name, pipelines, binaries)]

    return prepare, lambda: daemon[0].control("refresh", *words, "--wait"), lambda: daemon[0].stop()


def single(number):
    return (f"p{number}", f"source: {{url: '{ORIGIN}/items/{number}.json'}}\n"
            f"refresh: {{on: []}}\ncache: {{file: p{number}.json, keep: 1}}\n")


def branches(count, concurrency):
    return ("tree", f"source:\n  url: {ORIGIN}/list-{count}.json\n"
            f"  each: {{as: item, concurrency: {min(64, concurrency)}, url: '{ORIGIN}/items/{{item}}.json'}}\n"
            "refresh: {on: [], deadline: 1h}\ncache: {file: tree.json, keep: 1}\n")
