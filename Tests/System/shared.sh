# What all tests of the system ring share; sourced by lib.sh and booted.sh, which say what `fail` shows.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
# The trace is not to stand in what the test reads of standard error.
if [ -n "${FRESHET_TRACED:-}" ]; then
    exec {BASH_XTRACEFD}>&2
    set -x
fi
# With `set -e`, a failing command ends the test without a word: name that command. `fail` and `skip` name their reason.
explained=''
explain_exit() {
    local status=$?
    case $status in 0 | 77) return ;; esac
    [ -n "$explained" ] || echo "FAILED: status $status of: $BASH_COMMAND" >&2
}
trap explain_exit EXIT

skip() { explained=yes; echo "$*"; exit 77; }

# wait_until SECONDS WHAT COMMAND…: polls until the command succeeds, or fails naming what was awaited. The seconds are
# those of a machine at rest: a busy one, which runs other tests beside this one, gets ten times as many.
wait_until() {
    local - limit=$(($1 * 10)) what=$2 deadline last_look looks_taken=0
    set +x # of a trace it would be the greater part
    shift 2
    deadline=$((EPOCHSECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        if [ $EPOCHSECONDS -gt $deadline ]; then
            # What it said the last time: a state, a number, an error.
            last_look=$("$@" 2>&1 | tail -c 2000) || true
            fail "waited $limit s for: $what${last_look:+; the last look: $last_look}"
        fi
        # After half a second, look less often: each look takes processor time from what the test waits for.
        looks_taken=$((looks_taken + 1))
        if [ $looks_taken -lt 20 ]; then sleep 0.02; else sleep 0.1; fi
    done
}
# Tests start it thousands of times: jq 1.6 takes 34 ms for a start, gojq 4 ms. gojq sorts the keys of objects.
jq() { gojq "$@"; }
equal() { [ "$2" = "$3" ] || fail "$1: expected '$3', got '$2'"; }

# Reads a pipe to its end also when it has found already: one that leaves before may end the writer by SIGPIPE, and
# pipefail would take that for "not found".
grep() {
    local status=0
    command grep "$@" || status=$?
    [ ! -p /dev/stdin ] || cat >/dev/null
    return $status
}
