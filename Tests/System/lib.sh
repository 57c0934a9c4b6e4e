# The parts that all system tests share. Each test sources this file in its own name spaces.
# shellcheck shell=bash
. "$FRESHET_SOURCE/Tests/System/shared.sh"
work=$FRESHET_WORK
config=$work/etc origin_root=$work/origin
mkdir -p "$config/pipelines" "$origin_root"
export FRESHET_SOCKET=$work/runtime/io.freshet.Control
daemon_pid='' origin_pid=''
# If root starts freshetd, the process becomes the user freshet; the machine may not have this user. Tests with another
# subject start the daemon with `--user root`, so that it can read and write in the test's own directory.
if [ "$(id -u)" = 0 ] && ! getent passwd freshet >/dev/null; then
    for database in passwd group; do cp /etc/$database "$work/$database"; done
    echo 'freshet:x:963:963::/var/lib/freshet:/usr/sbin/nologin' >>"$work/passwd"
    echo 'freshet:x:963:' >>"$work/group"
    for database in passwd group; do mount --bind "$work/$database" /etc/$database; done
fi
# Other users can enter the directory, but cannot list it.
chmod 0711 "$work"

fail() {
    echo "--- status" >&2
    ctl status >&2 2>&1 || true
    echo "--- the daemon's log" >&2
    tail -n 60 "$work/log" >&2 2>/dev/null || true
    echo "--- the origin's log" >&2
    tail -n 20 "$work/requests" >&2 2>/dev/null || true
    explained=yes
    # This line comes last, so that the end of a long output contains it.
    echo "FAILED: $*" >&2
    exit 1
}

# --- the network: this name space is the machine; the name space `origin` is the rest of the network.
network() {
    mount -t tmpfs tmpfs /run
    mkdir -p /run/netns
    ip link set lo up
    ip netns add origin
    ip -n origin link set lo up
    ip link add wan0 type veth peer name wan1 netns origin
    ip addr add 192.0.2.2/24 dev wan0
    ip -n origin addr add 192.0.2.1/24 dev wan1
    ip -n origin addr add 198.51.100.10/32 dev lo
    ip -n origin link set wan1 up
    ip link set wan0 up
    wait_until 5 'carrier of wan0' link_runs
    ip route add default via 192.0.2.1
}
link_runs() { [ "$(ip -json link show wan0 | jq -r '.[0].operstate')" = UP ]; }
link_is_down() { ! link_runs; }
cable() { # cable in|out
    case $1 in in) ip -n origin link set wan1 up ;; out) ip -n origin link set wan1 down ;; esac
}

# --- the origin
origin() { # origin [COMMAND…]: with a prefix such as `ip netns exec origin`
    "$@" "$FRESHET_SOURCE/Scripts/origin" --root "$origin_root" --listen "${origin_address:-127.0.0.1}" \
        --port 8480 --log "$work/requests" 2>"$work/origin.err" &
    # shellcheck disable=SC2034  # tests stop the origin with it
    origin_pid=$!
    wait_until 10 'the origin to listen' "$@" bash -c "exec 3<>/dev/tcp/${origin_address:-127.0.0.1}/8480"
}
requests() { # requests [PATH]: the number of requests
    [ -e "$work/requests" ] || { echo 0; return; }
    # An incomplete line does not count.
    jq -nR --arg path "${1:-}" '[inputs | fromjson? | select($path == "" or .path == $path)] | length' "$work/requests"
}
last_request() { # last_request FILTER
    tail -n 1 "$work/requests" | jq -r "$1"
}
requests_reach() { [ "$(requests "${2:-}")" -ge "$1" ]; }

# --- the daemon
daemon() { # daemon [FLAG…]
    "$FRESHET_BIN/freshetd" --user root --config-dir "$config" --state-dir "$work/state" --cache-dir "$work/cache" \
        --runtime-dir "$work/runtime" "$@" </dev/null >>"$work/log" 2>&1 &
    daemon_pid=$!
    wait_until 10 'the daemon to answer' answers
}
answers() { ctl list; }
stop_daemon() {
    [ -n "$daemon_pid" ] || return 0
    kill -TERM "$daemon_pid"
    wait "$daemon_pid" || true
    daemon_pid=''
}
ctl() { "$FRESHET_BIN/freshetctl" "$@"; }
pipeline() { # pipeline NAME: its file from standard input
    cat >"$config/pipelines/$1.yaml"
}
status() { # status NAME FILTER: a value of the pipeline's status
    ctl status "$1" --json | jq -r ".pipelines[0] | $2"
}
status_is() { # status_is NAME CONDITION
    ctl status "$1" --json | jq -e ".pipelines[0] | $2"
}
# ran_since_start NAME CONDITION: the last run of the pipeline is a run of the present daemon process, not a stored one,
# and fulfils the condition.
ran_since_start() {
    ctl status --json | jq -e --arg name "$1" \
        ".daemon.since as \$since | .pipelines[] | select(.name == \$name) | .lastRun | .started >= \$since and ($2)"
}
state_is() { [ "$(status "$1" .state)" = "$2" ]; }
current() { echo "$work/cache/current/$1"; }
content_is() { [ "$(cat "$(current "$1")")" = "$2" ]; }
logged() { grep -qE -- "$1" "$work/log"; }
