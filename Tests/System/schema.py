#!/usr/bin/python3
"""Compares the JSON Schemas of the configuration with the checks of the daemon: schema.py SOURCES PROGRAMS WORK."""

import json
import re
import subprocess
import sys
from pathlib import Path

import jsonschema
import yaml

SOURCES, PROGRAMS, WORK = (Path(argument) for argument in sys.argv[1:4])


class Loader(yaml.CSafeLoader):
    """The core schema of YAML 1.2, as in editors, with the parser of Freshet: `on` is a name, `0640` a number."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("null", r"^(?:null|Null|NULL|~|)$", ["n", "N", "~", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)


def integer(loader, node):
    return int(loader.construct_scalar(node))


def mapping(loader, node):
    """Names are text, as in JSON."""
    return {str(key.value): loader.construct_object(value, deep=True) for key, value in node.value}


Loader.add_constructor("tag:yaml.org,2002:int", integer)
Loader.add_constructor("tag:yaml.org,2002:map", mapping)

errors = []
validators = {}
for kind in ("pipeline", "pipeline-drop-in", "hook", "hook-drop-in", "freshet", "freshet-drop-in"):
    schema = json.loads((SOURCES / f"etc/schema/{kind}.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(schema)
    validators[kind] = jsonschema.Draft7Validator(schema)


def complaints(kind, document):
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message[:200]}"
            for error in validators[kind].iter_errors(document)]


def expect(condition, message):
    if not condition:
        errors.append(message)


# --- every shipped file, and every block of the documents

def kind_of(document):
    keys = set(document) if isinstance(document, dict) else {None}
    if keys and keys <= set(validators["freshet"].schema["properties"]):
        # Both schemas have this key, with different keys below it.
        own = validators["freshet"].schema["properties"]["cache"]["properties"]
        if set(document.get("cache", {})) <= set(own):
            return "freshet"
    if "on-change-of" in keys:
        return "hook"
    if keys and keys <= set(validators["pipeline"].schema["properties"]):
        return "pipeline"
    return None


files = blocks = 0
for path in sorted((SOURCES / "etc").rglob("*.yaml")):
    document = yaml.load(path.read_text(), Loader) or {}
    kind = ("freshet" if path.name == "freshet.yaml"
            else "freshet-drop-in" if path.parent.name == "freshet.d"
            else "hook" if path.parent.name == "hooks"
            else "pipeline-drop-in" if path.parent.name.endswith(".yaml.d") else "pipeline")
    for complaint in complaints(kind, document):
        expect(False, f"{path.relative_to(SOURCES)}: {complaint}")
    line = f"# yaml-language-server: $schema=/usr/share/freshet/schema/{kind}.schema.json\n"
    expect(path.read_text().startswith(line), f"{path.relative_to(SOURCES)} does not begin with the line for editors")
    files += 1
for path in sorted([SOURCES / "README.md", *(SOURCES / "docs").rglob("*.md")]):
    for block in re.findall(r"^ *```ya?ml\n(.*?)^ *```", path.read_text(), re.M | re.S):
        document = yaml.load(block, Loader)
        kind = kind_of(document)
        if kind is None:
            continue
        if kind == "pipeline":
            # Each block is valid as a part of a file.
            for complaint in complaints("pipeline-drop-in", document):
                expect(False, f"{path.relative_to(SOURCES)}: as a drop-in: {complaint}\n{block}")
        # A drop-in may remove keys, and a part of a file lacks the other parts.
        document = {key: {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value
                    for key, value in document.items()}
        if kind == "pipeline":
            document.setdefault("cache", {}).setdefault("file", "x")
            if not {"source", "sources"} & set(document):
                document["source"] = {"url": "https://a.example/b"}
        for complaint in complaints(kind, document):
            expect(False, f"{path.relative_to(SOURCES)}: {complaint}\n{block}")
        blocks += 1
expect(files >= 16, f"only {files} files")
expect(blocks >= 50, f"only {blocks} blocks of the documents")


# --- single lines, which the daemon and the schema both accept or both reject

URL = "source: {url: https://a.example/b}"
CACHE = "cache: {file: a}"
OTHER = "source: {file: /a}"


def whole(lines):
    """Returns a pipeline of these lines, with the required keys that they lack."""
    text = "\n".join(lines) if isinstance(lines, list) else lines
    if not re.search("^sources?:", text, re.M):
        text += "\n" + URL
    if not re.search("^cache:", text, re.M):
        text += "\n" + CACHE
    return text + "\n"


GOOD = [
    "format: 1", "description: 2024", "description: Keys of the provider",
    "refresh: {every: 15min}", "refresh: {every: 20}", "refresh: {every: 1.5}", "refresh: {every: '1h 30s'}",
    "refresh: {every: daily}", "refresh: {every: hourly UTC}", "refresh: {at: daily}",
    "refresh: {at: ['Mon..Fri 06:30', '*-*-01 03:00 UTC', '*:0/15']}", "refresh: {at: Mon *-05~07/1}",
    "refresh: {every: 1h30s}", "refresh: {every: infinity}", "refresh: {quiet: 0, at-most: 500ms}",
    "refresh: {every: 1 M}", "refresh: {every: '1 30'}", "refresh: {on: []}", "refresh: {on: start}",
    "refresh: {on: [network, resume, foreground]}", "refresh: {on: metered, metered: wait}",
    "source: {urls: [https://a.example/b, https://c.example/b], order: fastest}",
    "source: {urls: [http://a.example/b, http://c.example/b], headers: {Accept: text/csv}, redirects: none}",
    "refresh: {metered: allow}", "refresh: {when-running: ignore}", "refresh: {power: {on-battery: wait}}", "refresh: {files: /a}", "refresh: {files: [/a, /b/c]}",
    "refresh: {needs-network: false}", "refresh: {needs-network: 2001:db8::1}",
    "refresh: {needs-network: 192.0.2.1}", "refresh: {needs-network: {probe: http://a/204, status: 204}}",
    "refresh: {dbus: {sender: org.example.A}}", "refresh: {dbus: [{interface: org.example.A, member: B}]}",
    "refresh: {budget: 20/day}", "refresh: {retry: {from: 5s}, when-running: restart, honour-origin: true}",
    "check: {type: application/json, min-bytes: 0, max-bytes: 1500}", "check: {max-bytes: 1.5 GiB}",
    "check: {max-bytes: 5 B, min-bytes: 1}", "check: {type: [text/csv, text/plain]}", "check: {shrink: 0%}",
    "check: {format: pem, min-items: 2}", "check: {made-at: .a, made-within: 2d}",
    "check: {sha256: https://a.example/sums}", "check: {sha256: {url: https://a.example/sums, name: a/b}}",
    "check: {minisign: RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3}",
    "check: {minisign: {key-file: /etc/key.pub}}", "check: {exec: [/bin/true, 1, true], timeout: 1min}",
    "cache: {file: a, mode: '0640', keep: 9, group: 33, max-age: 1d, withdraw: true}", "cache: {file: 2024}",
    "cache: {file: a, mode: '400'}", "cache: {file: a, files: {b.json: .b}}", "cache: {file: a, key: .}",
    "cache: {file: a, key: .meta.name, format: json}", "cache: {file: a, max-age: infinity}",
    "on-change: {exec: [/usr/bin/true]}", "on-change: [{reload-unit: nginx.service, timeout: 5s}]",
    "on-change: {exec: [/a], splay: 1min, limit: {group: a-b_1, at-once: 4}}", "on-change: {exec: [/a], limit: {group: a}}",
    "parameters: {a: {default: ''}}", "parameters: {a: {default: 20, pattern: '[0-9]+', quiet: 1s}}",
    "parameters: {a_b-c: {default: en, choices: [en, de]}}",
    OTHER, "source: {exec: [/bin/uname, -r]}", "source: {url: 'HTTPS://[2001:db8::1]:8443/a?b=c'}",
    "source: {url: https://a.example}", "source: {url: https://a.example/b, transform: .a}",
    "source: {url: https://a.example/b, credential: token}",
    "source: {url: https://a.example/b, credential: {name: token, as: basic}}",
    "source: {url: https://a.example/b, credential: {name: token, header: X-Key}}",
    "source: {url: https://a.example/b, credential-file: /run/secrets/token}",
    "source: {url: https://a.example/b, credential: {file: /run/secrets/token, as: basic}}",
    "source: {url: https://a.example/b, credential: "
    "{oauth2: {token-url: https://id.example/token, client-id: freshet, secret: client, scope: read write}}}",
    "source: {url: https://a.example/b, credential: "
    "{oauth2: {token-url: 'http://localhost:8080/token', client-id: a b, secret-file: /run/secrets/client}}}",
    "source: {url: https://a.example/b, headers: {Accept: '*/*', X-Key: {credential: key}, X-Number: 5}}",
    "source: {url: https://a.example/b, method: POST, body: a, content-type: text/plain; charset=utf-8}",
    "source: {url: https://a.example/b, method: POST}",
    "source: {url: https://a.example/b, unpack: gzip}", "source: {file: /a, unpack: bzip2}",
    "source: {url: https://a.example/b, unpack: 'tar:a_*/b c.mmdb'}", "source: {exec: [/a], unpack: zip:./a}",
    "source: {url: https://a.example/b, each: {as: a, url: https://a.example/c, unpack: xz}}",
    "source: {url: http://docker/a, unix-socket: /run/docker.sock}",
    "source: {url: https://a.example/b, proxy: none}", "source: {url: https://a.example/b, proxy: 'http://p.example:3128'}",
    "check: {sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855}",
    "source: {url: https://a.example/b, client-certificate: c, client-key: k, certificate-authority: /etc/ca}",
    "source: {url: https://a.example/b, pages: {next: link}}",
    "source: {url: https://a.example/b, pages: {next: {url: .next}, load: 2, max: 5, same-origin: false}}",
    "source: {url: https://a.example/b, pages: {next: {cursor: .c, parameter: c, more: .more}}}",
    "source: {url: https://a.example/b, pages: {next: {last-key: .id, parameter: a, size: 5, size-parameter: n}}}",
    "source: {url: https://a.example/b, pages: {next: {offset: o, size: 5, total: .n, past-end: 404}}}",
    "source: {url: https://a.example/b, pages: {next: {page: p, first: 0}}}",
    "source: {url: https://a.example/b, pages: "
    "{next: link, key: .id, load: all, sync-token: {token: .t, parameter: t, deleted: .gone}}}",
    "source: {url: https://a.example/b, each: {as: t, url: 'https://a.example/{t.id}', on-error: null}}",
    "source: {url: https://a.example/b, each: {as: t, url: '{t.url}', on-error: 'null'}}",
    "source: {url: https://a.example/b, each: {as: t, exec: [/bin/echo, '{t}'], publish: progressive}}",
    ["source: {url: https://a.example/b, transform: .a, each: {as: t, file: /a}}", "transform: ."],
    ["sources: {a: {url: https://a.example/b}, b: {file: /b}}", "combine: .a + .b", "transform: .x"],
    "transform: {jq: .a}",
]

# Rejected by both.
BAD = [
    "refresh: {evry: 1min}", "every: 1min", "splay: 1min", "format: 2", "description: ''\nsource: ~",
    "refresh: {every: fortnightly}", "refresh: {at: {time: daily}}", "refresh: {at: ''}",
    "refresh: {every: soon}", "refresh: {every: -1}", "refresh: {every: 5 parsecs}", "refresh: {every: 1min!}",
    "refresh: {quiet: infinity}", "refresh: {on: [reboot]}", "refresh: {on: operator}", "refresh: {files: a}",
    "refresh: {files: [/a/]}", "refresh: {needs-network: maybe}", "refresh: {needs-network: {status: 204}}",
    "refresh: {dbus: {member: A}}", "refresh: {dbus: {interface: org.a.B, path: /a, path-namespace: /}}",
    "refresh: {budget: 20/week}", "refresh: {budget: 20}", "refresh: {honour-origin: yes}",
    "source: {urls: [https://a.example/b]}", "source: {urls: [https://a.example/b, https://a.example/b]}",
    "source: {urls: [https://a.example/b, /c], order: fastest}", "source: {url: https://a.example/b, order: listed}",
    "source: {url: https://a.example/b, urls: [https://c.example/b, https://d.example/b]}",
    "source: {urls: [https://a.example/b, https://c.example/b], order: random}",
    "source: {urls: [https://a.example/b, https://c.example/b], unix-socket: /run/a}",
    "refresh: {power: wait}", "refresh: {power: {on-battery: true}}", "refresh: {power: {on-mains: wait}}",
    "refresh: {metered: true}", "refresh: {metered: [wait]}", "refresh: {when-running: stop}", "refresh: {after: a b}", "refresh: {retry: 5s}", "refresh: [every]",
    "check: {type: json}", "check: {type: []}", "check: {max-bytes: 5 MB}", "check: {max-bytes: 1.5}",
    "check: {shrink: 50}", "check: {shrink: 100%}", "check: {min-items: 0}", "check: {format: yaml}",
    "check: {format: pem, jq: .}", "check: {format: gzip, min-items: 2}", "check: {made-within: 2d}",
    "source: {url: https://a.example/b, credential: token, credential-file: /a}",
    "source: {url: https://a.example/b, credential-file: a}", "source: {file: /b, credential-file: /a}",
    "source: {url: https://a.example/b, credential: {name: token, file: /a}}",
    "source: {url: https://a.example/b, credential: {as: basic}}",
    "source: {url: https://a.example/b, credential: {oauth2: {token-url: https://id.example/t, secret: s}}}",
    "source: {url: https://a.example/b, credential: {oauth2: {token-url: https://id.example/t, client-id: a}}}",
    "source: {url: https://a.example/b, credential: "
    "{as: bearer, oauth2: {token-url: https://id.example/t, client-id: a, secret: s}}}",
    "source: {url: https://a.example/b, credential: "
    "{oauth2: {token-url: https://id.example/t, client-id: a, secret: s, secret-file: /s}}}",
    "check: {sha256: e3b0c44298fc1c14}", "source: {url: https://a.example/b, proxy: direct}",
    "source: {url: https://a.example/b, proxy: 'https://p.example'}", "source: {file: /b, proxy: none}",
    "source: {url: https://a.example/b, proxy: 'http://user:pass@p.example'}",
    "source: {url: https://a.example/b, proxy: 'http://p.example/path'}",
    "check: {timeout: 2s}", "check: {sha256: {name: a}}", "check: {minisign: secret}",
    "check: {minisign: {url: https://a.example/b}}", "check: {exec: /bin/true}", "check: {exec: []}",
    "check: {jq: ' '}", "check: {jq: }",
    "cache: {mode: '0640'}", "cache: {file: a/b}", "cache: {file: .a}", "cache: {file: a, mode: 0640}",
    "cache: {file: a, mode: '0240'}", "cache: {file: a, mode: '4755'}", "cache: {file: a, keep: 0}",
    "cache: {file: a, keep: many}", "cache: {file: a, withdraw: true}", "cache: {file: a, files: {}}",
    "cache: {file: a, files: {b: .b}, key: .id}", "cache: {file: a, files: {b: .b}, format: text}",
    "cache: {file: a, key: id}", "cache: {file: a, files: [b]}", "cache: a",
    "on-change: []", "on-change: {exec: [true]}", "on-change: {timeout: 5s}", "on-change: {reload-unit: nginx}",
    "on-change: {exec: [/a], reload-unit: a.service}", "on-change: {exec: [/a], limit: {at-once: 1}}",
    "on-change: {exec: [/a], limit: {group: a, at-once: 5}}", "on-change: {exec: [/a], limit: {group: 'a b'}}",
    "on-change: {exec: [/a], limit: restarts}",
    "parameters: {a: {}}", "parameters: {1a: {default: x}}", "parameters: {a: x}",
    "parameters: {a: {default: x, choices: [x], pattern: x}}", "parameters: {a: {default: x, choices: []}}",
    "source: {}", "source: {url: https://a.example/b, file: /a}", "source: {file: a}", "source: {file: /a/}",
    "source: {url: a.example}", "source: {url: ftp://a.example/b}", "source: {url: 'https://u:p@a.example/b'}",
    "source: {url: 'https://a.example/b#c'}", "source: {url: 'https://a.example/b c'}", "source: {url: https://}",
    "source: {url: 'https://{a}.example/b'}",
    "source: {exec: /bin/uname -r}", "source: {exec: [uname]}", "source: {pipeline: ../a}",
    "source: {file: /a, headers: {Accept: a}}", "source: {exec: [/a], credential: a}",
    "source: {file: /a, pages: {next: link}}",
    "source: {url: https://a.example/b, headers: {'X Y': a}}",
    "source: {url: https://a.example/b, headers: {X: {credentials: a}}}",
    "source: {url: https://a.example/b, credential: {as: basic}}",
    "source: {url: https://a.example/b, credential: {name: a, as: header}}",
    "source: {url: https://a.example/b, credential: {name: a, as: basic, header: X}}",
    "source: {url: https://a.example/b, unpack: gz}", "source: {url: https://a.example/b, unpack: tar}",
    "source: {url: https://a.example/b, unpack: 'tar:'}", "source: {url: https://a.example/b, unpack: 'zip:a/'}",
    "source: {url: https://a.example/b, unpack: gzip, pages: {next: link}}",
    "source: {url: https://a.example/b, method: PUT}", "source: {url: https://a.example/b, body: a}",
    "source: {url: https://a.example/b, content-type: text/plain}",
    "source: {url: https://a.example/b, method: POST, body: a, content-type: text}",
    "source: {url: https://a.example/b, client-key: k}", "source: {url: https://a.example/b, format: text, pages: {next: link}}",
    "source: {url: https://a.example/b, pages: {}}", "source: {url: https://a.example/b, pages: {next: {}}}",
    "source: {url: https://a.example/b, pages: {next: after}}",
    "source: {url: https://a.example/b, pages: {next: {cursor: .c}}}",
    "source: {url: https://a.example/b, pages: {next: {cursor: .c, offset: o, parameter: c}}}",
    "source: {url: https://a.example/b, pages: {next: {url: .n, parameter: c}}}",
    "source: {url: https://a.example/b, pages: {next: {page: p, more: .m}}}",
    "source: {url: https://a.example/b, pages: {next: {cursor: .c, parameter: c, size: 5}}}",
    "source: {url: https://a.example/b, pages: {next: {offset: o, first: 1}}}",
    "source: {url: https://a.example/b, pages: {next: {last-key: .i, parameter: a, total: .n}}}",
    "source: {url: https://a.example/b, pages: {next: {last-key: .i, parameter: a, past-end: 404}}}",
    "source: {url: https://a.example/b, pages: {next: {offset: o, size-parameter: n}}}",
    "source: {url: https://a.example/b, pages: {next: {page: p, past-end: 200}}}",
    "source: {url: https://a.example/b, pages: {next: {page: '?p='}}}",
    "source: {url: https://a.example/b, pages: {next: link, load: some}}",
    "source: {url: https://a.example/b, pages: {next: link, sync-token: {token: .t, parameter: t}}}",
    "source: {url: https://a.example/b, pages: {next: link, key: .i, load: 2, sync-token: {token: .t, parameter: t}}}",
    "source: {url: https://a.example/b, pages: {next: link, key: .i, sync-token: {token: .t}}}",
    "source: {url: https://a.example/b, each: {url: https://a.example/c}}",
    "source: {url: https://a.example/b, each: {as: 1, url: https://a.example/c}}",
    "source: {url: https://a.example/b, each: {as: t, url: https://a.example/c, on-error: stop}}",
    "source: {url: https://a.example/b, each: {as: t, url: https://a.example/c, concurrency: 65}}",
    "source: {url: https://a.example/b, each: {as: t}}",
    "source: {url: https://a.example/b, each: {as: t, url: https://a.example/c, publish: progressive, "
    "each: {as: u, url: https://a.example/d}}}",
    ["source: {url: https://a.example/b, transform: .a}", "transform: ."],
    ["source: {url: https://a.example/b, transform: .a}", "transform: {jq: .}"],
    "transform: {}", "transform: [.a]", "transform: {jq: .a, escape: json}", "transform: {template: /a}",
    "transform: {template: /a, escape: xml}", "transform: {template: a/, escape: json}",
    "transform: {template: ~/a, escape: json}", "transform: {tempalte: /a, escape: json}",
    ["sources: {a: {file: /a}}"], ["sources: {}", "combine: ."], ["combine: .a"],
    ["sources: {a: {file: /a}}", "combine: .", URL], ["sources: {1: {file: /a}}", "combine: ."],
]

# Rejected only by the daemon: the check needs several values, or something outside the file.
BEYOND = [
    "transform: {template: /nonexistent/a, escape: json}", "transform: {template: nonexistent, jq: .a, escape: nginx}",
    "refresh: {quiet: 1min, at-most: 1s}", "refresh: {every: 10ms}", "refresh: {at: 25:00}", "refresh: {at: 15min}",
    "refresh: {at: '*-02-30'}", "refresh: {at: '*:*:0.5'}", "refresh: {every: 1min, fresh-for: 2min}",
    "refresh: {after: nobody}", "check: {min-bytes: 2M, max-bytes: 1M}", "check: {jq: '.['}",
    "parameters: {a: {default: x, choices: [y]}}", "parameters: {a: {default: x, pattern: '['}}",
    "source: {url: http://a.example/b, credential: token}", "source: {url: 'https://a.example/{nobody}'}",
    "source: {url: https://a.example:99999/}", "refresh: {needs-network: 300.1.1.1}",
]

# Rejected only by the schema, as the manual says.
STRICTER = ["cache: {file: a, keep: '5'}", "cache: {file: a, files: {b: .b}, keep: '5'}"]

DAEMON_GOOD = [
    "", "splay: 5min", "splay: 0", "concurrency: 16\norigin-concurrency: 4", "network-target: 192.0.2.1",
    "network-probe: http://probe.example/204", "cache: {max-total: 4G, min-free: 10%}", "cache: {max-total: infinity}",
    "cache: {min-free: 512M}", "format: 1", "memory: {max: 64M}",
]
DAEMON_BAD = [
    "every: 5min", "splay: soon", "concurrency: 0", "concurrency: 5000", "network-target: router",
    "network-probe: probe.example", "cache: {max-total: much}", "cache: {min-free: 100%}", "cache: {file: a}",
    "cache: 4G", "memory: 1G", "memory: {max: infinity}", "network-probe: 'http://u@probe.example/'",
]
DAEMON_DROP_IN_GOOD = ["splay: null", "cache: null", "cache: {min-free: null}", "network-probe: null\nconcurrency: 3"]
DAEMON_DROP_IN_BAD = ["format: null", "every: null", "cache: {min-fee: null}", "cache: [null]"]


# --- drop-ins for this file

UNDER = """\
parameters: {p: {default: x}}
source: {url: https://a.example/b, headers: {Accept: text/plain}, pages: {next: link, max: 5}}
refresh: {every: 15min, random-delay: 1min, retry: {from: 5s}, dbus: {interface: org.example.A}}
check: {exec: [/bin/true], timeout: 5s, min-bytes: 5}
cache: {file: a, max-age: 1d}
on-change: {exec: [/usr/bin/true]}
"""

DROP_IN_GOOD = [
    "", "format: 1", "description: null", "refresh: {random-delay: null}", "refresh: null", "refresh: {on: [network]}",
    "refresh: {retry: {to: 1h}}", "refresh: {retry: {from: null}}", "refresh: {dbus: {member: B}}", "refresh: {dbus: null}",
    "refresh: {dbus: {interface: null, sender: org.example.A}}", "refresh: {dbus: [{sender: org.example.A}]}",
    "refresh: {needs-network: {probe: http://a/204}}", "source: {url: https://b.example/}",
    "source: {headers: {Accept: null, X: y}}", "source: {headers: {X: {credential: a}}}",
    "source: {pages: {max: 9}}", "source: {pages: {next: {cursor: .c, parameter: c}}}", "source: {pages: null}",
    "source: {url: null, headers: null, pages: null, file: /a}",
    "source: {each: {as: t, url: 'https://a.example/{t.id}'}}",
    "source: null\nsources: {a: {file: /a}, b: null}\ncombine: .a",
    "check: {min-bytes: null, jq: .}", "check: {exec: null, timeout: null}", "check: {timeout: 9s}",
    "cache: {withdraw: true}", "cache: {max-age: null, keep: 9}", "cache: {files: {a.json: .a}}",
    "on-change: {timeout: 9s}", "on-change: {exec: null, reload-unit: nginx.service}", "on-change: null",
    "on-change: [{reload-unit: nginx.service}]",
    "parameters: {p: {pattern: '[a-z]+'}}", "parameters: {p: null, q: {default: y}}", "transform: .a",
    "transform: {jq: .a}",
]
DROP_IN_BAD = [
    "format: 2", "format: null", "splay: 5min", "refresh: {evry: 1min}", "refresh: {every: soon}", "refresh: [every]",
    "refresh: {retry: {form: 5s}}", "refresh: {dbus: {membre: B}}", "refresh: {dbus: [{member: B}]}",
    "source: {url: b.example}", "source: {headers: {'X Y': z}}", "source: {headers: {X: {credentials: a}}}",
    "source: {pages: {max: many}}", "source: {pages: {next: {curser: .c}}}",
    "source: {each: {as: 1, url: https://a.example/c}}", "check: {exec: []}", "check: {min-bytes: few}",
    "cache: {keep: 0}", "cache: {files: {a/b: .a}}", "cache: a", "on-change: [{timeout: 9s}]", "on-change: []",
    "on-change: {exec: true}", "parameters: {p: {defualt: y}}", "parameters: {1p: {default: y}}",
]
# Rejected only by the daemon, because the error is in the combined configuration.
DROP_IN_BEYOND = [
    "source: {file: /a}", "source: null", "cache: {file: null}", "cache: {max-age: null, withdraw: true}",
    "check: {exec: null}", "on-change: {reload-unit: nginx.service}", "parameters: {q: {pattern: a}}", "combine: .a",
    "refresh: {dbus: {interface: null}}", "source: {each: {as: t}}",
]


HOOK = "exec: [/a]"
HOOK_GOOD = [
    "on-change-of: a\n" + HOOK, "on-change-of: [a, b]\nreload-unit: nginx.service",
    "format: 1\ndescription: 7\non-change-of: [a]\nexec: [/a, 1, true]\nquiet: 0\nat-most: 1h\ntimeout: 1h\nsplay: 5min\n"
    "limit: {group: g, at-once: 4}",
]
HOOK_BAD = [
    "on-change-of: []\n" + HOOK, HOOK, "on-change-of: a", "on-change-of: a\nexec: [a]", "on-change-of: {a: b}\n" + HOOK,
    "on-change-of: a\nexec: [/a]\nreload-unit: a.service", "on-change-of: a/b\n" + HOOK, "on-change-of: a\nquiet: never\n" + HOOK,
    "on-change-of: a\nlimit: {group: g, at-once: 5}\n" + HOOK, "on-change-of: a\nsource: {file: /a}\n" + HOOK,
    "on-change-of: a\nformat: 2\n" + HOOK, "on-change-of: a\nlimit: {}\n" + HOOK,
]
# Rejected only by the daemon: the schema does not compare values, or does not know the other files.
HOOK_BEYOND = [
    "on-change-of: [a, a]\n" + HOOK, "on-change-of: c\n" + HOOK, "on-change-of: a\nquiet: 5s\nat-most: 1s\n" + HOOK,
    "on-change-of: a\nquiet: 2h\n" + HOOK,
]
HOOK_DROP_IN_GOOD = ["on-change-of: b", "quiet: null", "limit: null", "reload-unit: a.service\nexec: null", "{}"]
HOOK_DROP_IN_BAD = ["on-change-of: []", "quiet: x", "exc: [/a]", "limit: {at-once: 9}"]


def rejected(directory):
    """Returns the files below a directory in which the daemon finds errors."""
    answer = subprocess.run(
        [PROGRAMS / "freshetd", "--check", "--config-dir", directory], capture_output=True, text=True, check=False)
    found = set(re.findall(r"^(\S+?):\d+:\d+: error:", answer.stdout + answer.stderr, re.M))
    return {Path(path).name if path.startswith("/") else path.rsplit("/", 1)[-1] for path in found}


def check_pipelines():
    directory = WORK / "pipelines-of-cases"
    (directory / "pipelines").mkdir(parents=True)
    cases = {}
    for group, verdicts in [
        (GOOD, (True, True)), (BAD, (False, False)), (BEYOND, (False, True)), (STRICTER, (True, False))
    ]:
        for lines in group:
            name = f"c{len(cases):03}"
            text = whole(lines).replace("file: a}", f"file: {name}}}").replace("file: a,", f"file: {name},")
            cases[name] = (text, verdicts)
            (directory / "pipelines" / f"{name}.yaml").write_text(text)
    found = rejected(directory)
    for name, (text, (daemon, schema)) in cases.items():
        expect((f"{name}.yaml" not in found) == daemon, f"the daemon {'refuses' if daemon else 'takes'}:\n{text}")
        said = complaints("pipeline", yaml.load(text, Loader))
        expect((said == []) == schema, f"the schema {'refuses' if schema else 'takes'}:\n{text}{said}")
    return len(cases)


def check_drop_ins():
    directory = WORK / "drop-ins-of-cases"
    (directory / "pipelines").mkdir(parents=True)
    (directory / "pipelines/untouched.yaml").write_text(UNDER)
    cases = {}
    for group, verdicts in [
        (DROP_IN_GOOD, (True, True)), (DROP_IN_BAD, (False, False)), (DROP_IN_BEYOND, (False, True))
    ]:
        for text in group:
            name = f"d{len(cases):03}"
            cases[name] = (text, verdicts)
            pipeline = directory / "pipelines" / f"{name}.yaml"
            pipeline.write_text(UNDER.replace("file: a,", f"file: {name},"))
            drop_in = pipeline.with_suffix(".yaml.d") / pipeline.name
            drop_in.parent.mkdir()
            drop_in.write_text(text + "\n")
    found = rejected(directory)
    expect("untouched.yaml" not in found, f"the daemon refuses the file without a drop-in:\n{UNDER}")
    for name, (text, (daemon, schema)) in cases.items():
        expect((f"{name}.yaml" not in found) == daemon, f"the daemon {'refuses' if daemon else 'takes'} as a drop-in: {text}")
        said = complaints("pipeline-drop-in", yaml.load(text, Loader) or {})
        expect((said == []) == schema, f"the schema {'refuses' if schema else 'takes'} as a drop-in: {text} {said}")
    # Every valid pipeline is also valid as a drop-in.
    for lines in GOOD + BEYOND:
        said = complaints("pipeline-drop-in", yaml.load(whole(lines), Loader))
        expect(said == [], f"the schema refuses as a drop-in:\n{whole(lines)}{said}")
    return len(cases)


def check_daemon():
    for index, (text, good) in enumerate([(t, True) for t in DAEMON_GOOD] + [(t, False) for t in DAEMON_BAD]):
        directory = WORK / f"daemon{index}"
        directory.mkdir()
        (directory / "freshet.yaml").write_text(text + "\n")
        expect(("freshet.yaml" not in rejected(directory)) == good, f"the daemon {'refuses' if good else 'takes'}: {text}")
        said = complaints("freshet", yaml.load(text, Loader) or {})
        expect((said == []) == good, f"the schema {'refuses' if good else 'takes'}: {text} {said}")


def check_daemon_drop_ins():
    under = "splay: 5min\nnetwork-probe: http://probe.example/204\ncache: {max-total: 4G, min-free: 10%}\n"
    cases = [(text, True) for text in DAEMON_GOOD + DAEMON_DROP_IN_GOOD]
    cases += [(text, False) for text in DAEMON_BAD + DAEMON_DROP_IN_BAD]
    for index, (text, good) in enumerate(cases):
        directory = WORK / f"daemon-drop-in{index}"
        (directory / "freshet.d").mkdir(parents=True)
        (directory / "freshet.yaml").write_text(under)
        (directory / "freshet.d/part.yaml").write_text(text + "\n")
        expect((rejected(directory) == set()) == good, f"the daemon {'refuses' if good else 'takes'} as a drop-in: {text}")
        said = complaints("freshet-drop-in", yaml.load(text, Loader) or {})
        expect((said == []) == good, f"the schema {'refuses' if good else 'takes'} as a drop-in: {text} {said}")


def check_hooks():
    directory = WORK / "hooks-of-cases"
    for name in ("a", "b"):
        pipeline = directory / "pipelines" / f"{name}.yaml"
        pipeline.parent.mkdir(parents=True, exist_ok=True)
        pipeline.write_text(f"source: {{file: /etc/hosts}}\ncache: {{file: {name}}}\n")
    hooks = directory / "hooks"
    hooks.mkdir()
    cases = {}
    for group, verdicts in [(HOOK_GOOD, (True, True)), (HOOK_BAD, (False, False)), (HOOK_BEYOND, (False, True))]:
        for text in group:
            name = f"h{len(cases):03}.yaml"
            # The limits of a group have to be equal in all files.
            text = text.replace("group: g", f"group: g{len(cases)}")
            cases[name] = ("hook", text, verdicts)
            (hooks / name).write_text(text + "\n")
    for group, verdicts in [(HOOK_DROP_IN_GOOD, (True, True)), (HOOK_DROP_IN_BAD, (False, False))]:
        for text in group:
            name = f"d{len(cases):03}.yaml"
            cases[name] = ("hook-drop-in", text, verdicts)
            (hooks / name).write_text("on-change-of: a\nexec: [/a]\nlimit: {group: other}\n")
            drop_in = hooks / f"{name}.d" / name
            drop_in.parent.mkdir()
            drop_in.write_text(text + "\n")
    found = rejected(directory)
    for name, (kind, text, (daemon, schema)) in cases.items():
        expect((name not in found) == daemon, f"the daemon {'refuses' if daemon else 'takes'} as a {kind}:\n{text}")
        said = complaints(kind, yaml.load(text, Loader) or {})
        expect((said == []) == schema, f"the schema {'refuses' if schema else 'takes'} as a {kind}:\n{text}\n{said}")
    return len(cases)


count = check_pipelines()
hooks = check_hooks()
drop_ins = check_drop_ins()
check_daemon()
check_daemon_drop_ins()
for error in errors:
    print(error)
if errors:
    sys.exit(f"FAILED: {len(errors)} errors")
print(f"# {files} files, {blocks} blocks of the documents, {count} pipelines, {drop_ins} drop-ins and {hooks} hooks line by line")
