# The parts that the tests of the fleet share: nats-server with the users of docs/fleet.md, and members, each a daemon.
# shellcheck shell=bash
. "$FRESHET_SOURCE/Tests/System/lib.sh"
server=$FRESHET_SOURCE/.build/test-nats/bin/nats-server
[ -x "$server" ] || skip 'no nats-server (Scripts/setup test)'
ip link set lo up
# Members with a number below `fetchers` fetch, the others follow.
members=5 fetchers=2 nats_address=127.0.0.1 port=42222 nats_pid=''
# What tests may change before they write the configuration of the server or of a member.
url=http://$nats_address:$port refresh='{on: [start], every: 1h, fresh-for: 0, needs-network: false}' fleet='' nats_options=''
pids=()

fail() { # with the logs of members and servers instead of those of a single daemon
    tail -n 20 "$work"/*/log "$work"/*.log >&2 || true
    explained=yes
    echo "FAILED: $*" >&2
    exit 1
}

# keys NAME…: makes NAME.nk with the seed, and NAME.pub with the public key.
keys() {
    local name
    for name in "$@"; do ctl fleet key --new --seed "$work/$name.nk" >"$work/$name.pub"; done
}
accounts() { # accounts OPTION…: the accounts of the documentation, with keys that are made at the first call
    local role
    for role in admin fetch follow operator site; do [ -e "$work/$role.pub" ] || keys $role; done
    ctl fleet accounts "$@"
}
# user ROLE…: the arguments for these roles.
user() { for role in "$@"; do echo "$role=$(<"$work/$role.pub")"; done; }
users() { # the accounts of a fleet without sites
    accounts >/dev/null 2>&1 || true
    # shellcheck disable=SC2046  # one argument for each role
    accounts $(user admin fetch follow operator)
}
nats_configuration() {
    echo "host: $nats_address"
    echo "port: $port"
    echo "jetstream { store_dir: \"$work/nats\" }"
    echo "$nats_options"
    users
}
nats_started() { ! kill -0 "$nats_pid" || (exec 3<>"/dev/tcp/$nats_address/$1"); } # nats_started PORT: or has failed
nats() { # nats [NAME [PORT]]: starts the server with the configuration NAME.conf
    "$server" -c "$work/${1:-nats}.conf" 2>>"$work/${1:-nats}.log" &
    nats_pid=$!
    wait_until 10 'nats-server to listen' nats_started "${2:-$port}"
    kill -0 "$nats_pid" || fail 'nats-server has ended'
}
end_nats() { # end_nats [SIGNAL]
    kill "-${1:-KILL}" "$nats_pid"
    wait "$nats_pid" 2>/dev/null || true
}
# stored: the last sequence numbers of the bucket of contents and of that of heads; for servers whose options include the
# monitor.
# shellcheck disable=SC2034  # tests add it to `nats_options`
monitor='http: "127.0.0.1:8222"'
stored() {
    curl -s 'http://127.0.0.1:8222/jsz?streams=1' | jq -r '[.account_details[].stream_detail[] |
        {(.name): .state}] | add | "\(.KV_FT_body.last_seq) \(.KV_FT_head.last_seq)"'
}
# change_network: members connect again soon, because the route to 198.51.100.10 has another source. Otherwise a server
# that was restarted several times would be tried after a time that doubles each time.
network_source=2
change_network() {
    ip link show change0 >/dev/null 2>&1 || {
        ip link add change0 type veth peer name change1
        ip addr add 192.0.2.2/24 dev change0
        ip addr add 192.0.2.3/24 dev change0
        ip link set change1 up
        ip link set change0 up
    }
    network_source=$((5 - network_source))
    ip route replace 198.51.100.10 via 192.0.2.1 dev change0 src 192.0.2.$network_source
}
authority() { # authority NAME: NAME.pem and NAME.key
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -keyout "$work/$1.key" \
        -out "$work/$1.pem" -subj "/CN=$1" 2>/dev/null
}
server_certificate() { # server_certificate AUTHORITY ADDRESS: server.pem and server.key
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/server.key" -subj /CN=server 2>/dev/null |
        openssl x509 -req -CA "$work/$1.pem" -CAkey "$work/$1.key" -CAcreateserial -days 30 \
            -extfile <(echo "subjectAltName=IP:$2") -out "$work/server.pem" 2>/dev/null
}
set_up() { # set_up [NUMBER]: creates the buckets, with the configuration of a member
    ctl fleet setup --yes --seed "$work/admin.nk" --config-dir "$work/${1:-0}/etc" >"$work/setup" 2>&1 ||
        fail "$(<"$work/setup")"
    grep -q created "$work/setup" || fail "no bucket was created: $(<"$work/setup")"
}

# --- the members
configure() { # configure NUMBER [KEY]: the files of a member
    local own=$work/$1 role=follow
    [ "$1" -ge $fetchers ] || role=fetch
    mkdir -p "$own/etc/pipelines" "$own/credentials"
    cp "$work/${2:-$role}.nk" "$own/credentials/fleet"
    cat >"$own/etc/freshet.yaml" <<YAML
fleet:
  name: test
  servers: [$url]
  credential: fleet
  role: $role
  machine: m$1
  publishers: [$(<"$work/fetch.pub")]
  spread: 1s
$fleet
YAML
    cat >"$own/etc/pipelines/a.yaml" <<YAML
source: {url: "http://${origin_address:-127.0.0.1}:8480/a.txt"}
refresh: $refresh
cache: {file: a.txt}
fleet: {share: copy, grace: 2s}
YAML
    # It never runs. The daemon follows the network for it, and no change of the network cancels runs of the other.
    cat >"$own/etc/pipelines/network.yaml" <<'YAML'
source: {url: "http://127.0.0.1:8480/none"}
refresh: {on: [], needs-network: 198.51.100.10}
cache: {file: none.txt}
YAML
}
start_member() { # start_member NUMBER [COMMAND…]: with a prefix such as `ip netns exec m1`
    local own=$work/$1
    CREDENTIALS_DIRECTORY=$own/credentials "${@:2}" "$FRESHET_BIN/freshetd" --user root --config-dir "$own/etc" \
        --state-dir "$own/state" --cache-dir "$own/cache" --runtime-dir "$own/runtime" </dev/null >>"$own/log" 2>&1 &
    pids[$1]=$!
}
end_member() { # end_member NUMBER: with SIGKILL
    kill -KILL "${pids[$1]}"
    wait "${pids[$1]}" 2>/dev/null || true
}
each() { # each COMMAND…: with the number of each member as the last argument
    local i
    for ((i = 0; i < members; i++)); do "$@" "$i" || return; done
}
stop_members() {
    local i
    for ((i = 0; i < members; i++)); do
        kill -TERM "${pids[$i]}"
        wait "${pids[$i]}" || fail "member $i ended with $?"
    done
    ! grep -qE 'FATAL|kept the daemon busy for [0-9]{3}' "$work"/*/log || fail 'see the log'
}
refresh() { member "$1" refresh a >"$work/refresh" 2>&1 || fail "$(<"$work/refresh")"; } # refresh NUMBER
member() { # member NUMBER ARGUMENT…: freshetctl
    FRESHET_SOCKET=$work/$1/runtime/io.freshet.Control ctl "${@:2}"
}
obstacle() { # obstacle NUMBER: why the fleet cannot be used
    member "$1" signals --json | jq -r '.signals[] | select(.name == "fleet") | .unavailable // ""'
}
obstacle_is() { obstacle "$1" | grep -qE -- "$2"; } # obstacle_is NUMBER PATTERN
no_obstacle() { [ -z "$(obstacle "$1")" ]; }
member_logged() { grep -qE -- "$2" "$work/$1/log"; } # member_logged NUMBER PATTERN

# --- the content: its first line is a number, and its last line is the digest of all before it.
put() { # put NUMBER [BYTES]
    local digest
    { echo "$1"; head -c "$((${2:-300} * 3 / 4))" /dev/urandom | base64 -w 80; } >"$work/version"
    digest=$(sha256sum <"$work/version")
    echo "${digest%% *}" >>"$work/version"
    mv "$work/version" "$origin_root/a.txt"
}
copy() { head -n 1 "$work/$1/cache/current/a.txt" 2>/dev/null; } # copy NUMBER: the number of the member's content
has() { [ "$(copy "$2")" = "$1" ]; } # has CONTENT MEMBER
all_have() { each has "$1" || { each copy; return 1; }; } # all_have CONTENT
# watch_copies: a reader reads the copies of all members all the time, with a low priority. It writes why a copy is not
# what it should be.
watch_copies() {
    nice -n 19 python3 - "$work" $members <<'PY' &
import hashlib, os, sys, time
work, members = sys.argv[1], int(sys.argv[2])
newest, reads, errors = [0] * members, 0, []
while not os.path.exists(work + "/reader.stop"):
    for i in range(members):
        try:
            with open(f"{work}/{i}/cache/current/a.txt", "rb") as file:
                text = file.read()
        except FileNotFoundError:
            if newest[i]:
                errors.append(f"member {i} has lost its copy {newest[i]}")
            continue
        reads += 1
        body, _, digest = text.rstrip(b"\n").rpartition(b"\n")
        if hashlib.sha256(body + b"\n").hexdigest().encode() != digest:
            errors.append(f"the copy of member {i} is torn; the last whole one was {newest[i]}")
            continue
        number = int(text.partition(b"\n")[0])
        if number < newest[i]:
            errors.append(f"member {i} went back from {newest[i]} to {number}")
        newest[i] = max(newest[i], number)
    if len(errors) > 20:
        break
    time.sleep(0.05)
with open(work + "/reader", "w") as file:
    print(reads, *errors, sep="\n", file=file)
PY
    reader_pid=$!
}
end_watch() { # fails if a copy was torn, older than before, or missing
    touch "$work/reader.stop"
    wait "$reader_pid"
    [ "$(wc -l <"$work/reader")" = 1 ] || fail "$(tail -n +2 "$work/reader")"
    echo "# $(<"$work/reader") reads, all whole and none older than the one before"
}
