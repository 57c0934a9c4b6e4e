# The parts that all system tests share. lib.sh and booted.sh source this file; each has its own `fail`.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
# The trace must not mix with the standard error that a test reads.
if [ -n "${FRESHET_TRACED:-}" ]; then
    exec {BASH_XTRACEFD}>&2
    set -x
fi
# With `set -e`, a failing command ends the test without a message: print that command. `fail` and `skip` print their
# reason themselves.
explained=''
explain_exit() {
    local status=$?
    case $status in 0 | 77) return ;; esac
    [ -n "$explained" ] || echo "FAILED: status $status of: $BASH_COMMAND" >&2
}
trap explain_exit EXIT

skip() { explained=yes; echo "$*"; exit 77; }

# wait_until SECONDS WHAT COMMAND…: polls until the command succeeds, or fails with the text WHAT. The time limit is ten
# times SECONDS, because the machine runs other tests at the same time.
wait_until() {
    local - limit=$(($1 * 10)) what=$2 deadline last_output attempts_made=0
    set +x # polling would fill the trace
    shift 2
    deadline=$((EPOCHSECONDS + limit))
    until "$@" >/dev/null 2>&1; do
        if [ $EPOCHSECONDS -gt $deadline ]; then
            # The output of the last attempt: a state, a number, an error.
            last_output=$("$@" 2>&1 | tail -c 2000) || true
            fail "waited $limit s for: $what${last_output:+; output of the last attempt: $last_output}"
        fi
        # After half a second, poll less often: each attempt takes processor time.
        attempts_made=$((attempts_made + 1))
        if [ $attempts_made -lt 20 ]; then sleep 0.02; else sleep 0.1; fi
    done
}
# Tests start jq thousands of times: jq 1.6 takes 34 ms for a start, gojq 4 ms. gojq sorts the keys of objects.
jq() { gojq "$@"; }
equal() { [ "$2" = "$3" ] || fail "$1: expected '$3', got '$2'"; }

# Reads a pipe to its end, also after a match. If grep exits earlier, the writer may end with SIGPIPE, which pipefail
# reports like "not found".
grep() {
    local status=0
    command grep "$@" || status=$?
    [ ! -p /dev/stdin ] || cat >/dev/null
    return $status
}
