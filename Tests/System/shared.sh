# What all tests of the system ring share; sourced by lib.sh and booted.sh, which say what `fail` shows.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
# The trace of a test that is run again: it is not to stand in what the test reads of standard error.
if [ -n "${FRESHET_TRACED:-}" ]; then
    exec {BASH_XTRACEFD}>&2
    set -x
fi

# wait_until SECONDS WHAT COMMAND…: polls until the command succeeds, or fails naming what was awaited. The seconds are
# those of a machine at rest: a busy one, which runs other tests beside this one, gets four times as many.
wait_until() {
    local - limit=$(($1 * 4)) what=$2 deadline
    set +x # of a trace it would be the greater part
    shift 2
    deadline=$(($(date +%s%N) + limit * 1000000000))
    until "$@" >/dev/null 2>&1; do
        [ "$(date +%s%N)" -lt $deadline ] || fail "waited $limit s for: $what"
        sleep 0.02
    done
}
equal() { [ "$2" = "$3" ] || fail "$1: expected '$3', got '$2'"; }

# Reads a pipe to its end also when it has found already: one that leaves before may end the writer by SIGPIPE, and
# pipefail would take that for "not found".
grep() {
    local status=0
    command grep "$@" || status=$?
    [ ! -p /dev/stdin ] || cat >/dev/null
    return $status
}
