# The parts that tests in a booted systemd share. Each such test sources this file first and then continues inside a
# container, as root. The container has an installation of the release binaries, and the sources at /opt/freshet.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/shared.sh"
if [ "${FRESHET_BOOTED:-}" != 1 ]; then
    [ "$(id -u)" = 0 ] || { echo 'only root can boot a container'; exit 77; }
    command -v systemd-nspawn >/dev/null || { echo 'no systemd-nspawn (apt-get install systemd-container)'; exit 77; }
    # An install of the release binaries, made once for all tests (Tests/System/run).
    stages=(-d "$FRESHET_STAGE")
    # stage_files DIRECTORY, if the test defines it: fills the directory that is copied over the container's root.
    if declare -F stage_files >/dev/null; then
        stage_files "$FRESHET_WORK/stage"
        stages=(-d "$FRESHET_WORK/stage")
    fi
    # extra_program=PROGRAM, if the test sets it: a program that Scripts/setup unpacks but does not install.
    if [ -n "${extra_program:-}" ] && ! command -v "$extra_program" >/dev/null; then
        unpacked=$FRESHET_SOURCE/.build/test-packages/root
        [ -e "$unpacked/usr/sbin/$extra_program" ] || [ -e "$unpacked/usr/bin/$extra_program" ] ||
            { echo "no $extra_program (make setup-test)"; exit 77; }
        stages+=(-d "$unpacked")
    fi
    bash "$FRESHET_SOURCE/Tests/System/boot-testbed" "${stages[@]}" -b "$FRESHET_SOURCE" -l "$FRESHET_WORK/console" \
        -t $((FRESHET_LIMIT - 20)) -E FRESHET_BOOTED=1 -E FRESHET_TRACED="${FRESHET_TRACED:-}" -E DOCUMENTS="${DOCUMENTS:-}" \
        -- bash "/opt/freshet/Tests/System/${0##*/}" && exit 0
    tail -n 40 "$FRESHET_WORK/console"
    exit 1
fi

unit=freshetd.service
cache=/var/cache/freshet pipelines=/etc/freshet/pipelines
origin_root=/srv/origin

fail() {
    systemctl status "$unit" --no-pager >&2 || true
    journalctl --sync
    journalctl --no-pager -o short-precise -u "$unit" >&2 || true
    tail -n 20 /srv/requests >&2 2>/dev/null || true
    explained=yes
    # This line comes last, so that the end of a long output contains it.
    echo "FAILED: $*" >&2
    exit 1
}
pipeline() { cat >"$pipelines/$1.yaml"; } # pipeline NAME: its file from standard input
property() { systemctl show --property="$1" --value "$unit"; }
content_is() { [ "$(cat "$cache/current/$1")" = "$2" ]; }
value() { freshetctl status "$1" --json | jq -r ".pipelines[0] | $2"; } # value PIPELINE FILTER
state_is() { [ "$(value "$1" .state)" = "$2" ]; }
as() { setpriv --reuid "$1" --regid "$(id -g "$1")" --init-groups -- "${@:2}"; } # as USER COMMAND…
# exits STATUS COMMAND…: fails unless the command exits with this status.
exits() {
    local wanted=$1 status=0
    shift
    "$@" >/tmp/exits 2>&1 || status=$?
    [ "$status" = "$wanted" ] || fail "status $status, not $wanted, of: $* ($(cat /tmp/exits))"
}
journal() { journalctl --sync; journalctl --no-pager -o cat -u "$unit"; }
# Fails if the journal has signs that the sandbox stopped a program, or lines of the unit that are not from the daemon,
# freshetctl or the service manager, such as warnings of a library.
journal_is_clean() {
    journalctl --sync
    if journalctl --no-pager | grep -E 'SIGSYS|status=31/SYS|[Ff]ailed to set thread priority|type=1326'; then
        fail 'the system call filter stopped a program'
    fi
    journalctl --no-pager -o json -u "$unit" | jq -r 'select((has("FRESHET_MESSAGE") or ._PID == "1"
        or (.SYSLOG_IDENTIFIER // "" | . == "freshetctl" or startswith("("))) | not) | .MESSAGE' >/tmp/strange
    [ ! -s /tmp/strange ] || fail "lines of an unknown program: $(head -n 5 /tmp/strange)"
    if journalctl --no-pager _PID=1 | grep 'freshetd\.service' | grep -iE 'unknown|ignoring|failed to parse|not supported'; then
        fail 'the service manager warns about the unit'
    fi
}

# user_manager_runs USER: the service manager of a user with lingering runs and accepts requests.
user_manager_runs() { [ "$(systemctl is-active "user@$(id -u "$1").service")" = active ]; }

# --- an origin on this machine: origin, then files in $origin_root
origin() {
    mkdir -p "$origin_root"
    systemd-run --quiet --unit=origin /opt/freshet/Scripts/origin --root "$origin_root" --log /srv/requests
    wait_until 10 'the origin to listen' bash -c 'exec 3<>/dev/tcp/127.0.0.1/8480'
}
requests() { # requests PATH [CONDITION]
    # An incomplete line does not count.
    jq -nR --arg path "$1" "[inputs | fromjson? | select(.path == \$path and (${2:-true}))] | length" /srv/requests
}

# --- a network: the container is the machine; `uplink` connects it to the name space `origin`, where the origin runs.
origin_address=198.51.100.10
uplink() { # uplink: the network, and the origin at $origin_address
    ip netns add origin
    ip -n origin link set lo up
    ip link add wan0 type veth peer name wan1 netns origin
    ip addr add 192.0.2.2/24 dev wan0
    ip -n origin addr add 192.0.2.1/24 dev wan1
    ip -n origin addr add $origin_address/32 dev lo
    ip -n origin link set wan1 up
    ip link set wan0 up
    ip route add default via 192.0.2.1
    # The kernel reports a new carrier up to a second late; the daemon must find a working network when it starts.
    wait_until 5 'the carrier' link_runs
    mkdir -p "$origin_root"
    systemd-run --quiet --unit=origin -p NetworkNamespacePath=/run/netns/origin \
        /opt/freshet/Scripts/origin --root "$origin_root" --listen 0.0.0.0 --log /srv/requests
    wait_until 10 'the origin to listen' bash -c "exec 3<>/dev/tcp/$origin_address/8480"
}
link_runs() { [ "$(ip -json link show wan0 | jq -r '.[0].operstate')" = UP ]; }
cable() { # cable in|out
    case $1 in in) ip -n origin link set wan1 up ;; out) ip -n origin link set wan1 down ;; esac
}

# --- sleep: the real logind, but a systemd-suspend.service that does not suspend the machine
resume() { freshetctl signals --json | jq -r ".signals[] | select(.name == \"resume\") | $1"; } # resume FILTER
resumes() { [ "$(resume .fired)" = "$1" ]; }
fact_is() { resume .fact | grep -q "^$1"; }
watches_logind() { [ "$(resume .unavailable)" = null ] && is_awake; }
# logind accepts no second request before the first one has ended.
is_awake() {
    [ "$(busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager \
        PreparingForSleep)" = 'b false' ]
}
suspend_does() { # suspend_does COMMAND…: the command runs instead of the suspend
    mkdir -p /etc/systemd/system/systemd-suspend.service.d
    { printf '[Service]\nExecStart=\nExecStart='; printf '"%s" ' "$@"; echo; } \
        >/etc/systemd/system/systemd-suspend.service.d/test.conf
    systemctl daemon-reload
}
