#!/usr/bin/python3
"""Checks the metrics in Prometheus: metrics.py SOURCES FILE PROMETHEUS, a server that scrapes the file and the daemon."""

import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

SOURCES, FILE, SERVER = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
DEADLINE = time.monotonic() + 120
errors = []


def ask(path, **parameters):
    """Returns the data of an answer, or None while the server does not answer yet."""
    query = f"{SERVER}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(query, timeout=10) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        if error.code == 503:
            return None
        sys.exit(f"{parameters}: {error.read().decode()}")
    except OSError:
        return None


def until(what, find):
    """Polls until `find` returns a result."""
    while time.monotonic() < DEADLINE:
        found = find()
        if found:
            return found
        time.sleep(0.2)
    errors.append(f"never: {what}")
    return None


def query(expression):
    return (ask("query", query=expression) or {}).get("result")


# --- the manual has each metric, with its kind, and no other

kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", FILE.read_text(), re.M))
manual = dict(re.findall(r"^\| `(freshet_\w+)` \| (\w+) \|", (SOURCES / "docs/metrics.md").read_text(), re.M))
# These metrics exist only on a machine with slow jobs.
rare = {"freshet_slow_jobs_total", "freshet_slow_job_longest_seconds"}
for name in sorted((set(kinds) ^ set(manual)) - (rare & set(manual))):
    errors.append(f"{name}: only {'written' if name in kinds else 'in docs/metrics.md'}")
for name in set(kinds) & set(manual):
    if kinds[name] != manual[name].replace("info", "gauge"):
        errors.append(f"{name}: a {kinds[name]}, but docs/metrics.md has {manual[name]}")

# --- both formats are read

for job in ("node", "openmetrics"):
    until(f"scraped: {job} ({ask('targets')})", lambda: query(f'up{{job="{job}"}} == 1'))
until("the file without an error", lambda: query("node_textfile_scrape_error == 0"))
counts = {}


def as_many_series():
    """Returns whether both formats have the same number of series."""
    for job in ("node", "openmetrics"):
        result = query(f'count({{__name__=~"freshet_.*", job="{job}"}})')
        counts[job] = int(result[0]["value"][1]) if result else 0
    return counts["node"] == counts["openmetrics"] > 0


# Some series come and go with the state of a pipeline, and the two formats are read at different times.
if not until("the same number of series in both formats", as_many_series):
    errors.append(f"the last numbers of series: {counts}")

# --- the dashboard is valid, and each panel has data

dashboard = json.loads((SOURCES / "etc/grafana/freshet.json").read_text())
panels = dashboard["panels"]
if dashboard["schemaVersion"] < 39 or dashboard["id"] is not None:
    errors.append("the dashboard is not one to be imported")
if len({panel["id"] for panel in panels}) != len(panels):
    errors.append("two panels have one id")
cells = [(x, y) for panel in panels for g in [panel["gridPos"]]
         for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])]
if len(cells) != len(set(cells)) or max(x for x, _ in cells) > 23:
    errors.append("panels overlap, or are outside the grid")
asked = 0
for panel in panels:
    for target in panel.get("targets", []):
        expression = target["expr"].replace("$__rate_interval", "30s")
        for variable in ("$instance", "$pipeline"):
            expression = expression.replace(variable, ".+")
        if "$" in expression:
            errors.append(f"{panel['title']}: an unknown variable in {expression}")
        until(f"an answer for '{panel['title']}': {expression}", lambda: query(expression))
        asked += 1

# --- all rules are evaluated, and the alerts of this test are pending or firing

rules = until("the rules", lambda: [
    rule for group in (ask("rules") or {"groups": []})["groups"] for rule in group["rules"]
    if all(rule["health"] == "ok" for rule in group["rules"])])
expected = {
    ("FreshetPipelineExpired", "old"), ("FreshetBranchesFailing", "list"),
    ("FreshetPipelineHeld", "held"), ("FreshetHooksFailing", None),
}


def alerts():
    found = {(alert["labels"]["alertname"], alert["labels"].get("pipeline"))
             for alert in (ask("alerts") or {"alerts": []})["alerts"]}
    return found if expected <= found else None


found = until("the expected alerts", alerts)
for name, pipeline in found or []:
    # A held pipeline is stale on purpose.
    if pipeline in ("url", "hooked") or name == "FreshetMetricsStale" or (name, pipeline) == ("FreshetPipelineStale", "held"):
        errors.append(f"an unexpected alert: {name} {pipeline}")
names = {rule["name"] for rule in rules or []}
listed = set(re.findall(r"^\| `(Freshet\w+)` \| (?:warning|critical|info) \|",
                        (SOURCES / "docs/metrics.md").read_text(), re.M))
if names != listed:
    errors.append(f"alerts in the rules or in docs/metrics.md alone: {names ^ listed}")

for error in errors:
    print(error)
if errors:
    sys.exit(f"FAILED: {len(errors)} errors")
print(f"# {len(kinds)} metrics, {asked} queries of the dashboard, {len(names)} alerts")
