# What the tests of reachability share besides lib.sh: a second uplink, and what the daemon says of its targets.
# shellcheck shell=bash

# Another way to the world, over wan2: 198.18.0.2/24, with the router 198.18.0.1.
second_uplink() {
    ip link add wan2 type veth peer name wan3 netns origin
    ip addr add 198.18.0.2/24 dev wan2
    ip -n origin addr add 198.18.0.1/24 dev wan3
    ip -n origin link set wan3 up
    ip link set wan2 up
    wait_until 5 'carrier of wan2' runs wan2
}
runs() { [ "$(ip -json link show "$1" | jq -r '.[0].operstate')" = UP ]; }

# --- the row of a target in `freshetctl signals`: `network`, or `network ADDRESS`
row() { # row TARGET FILTER
    ctl signals --json | jq -r --arg name "$1" ".signals[] | select(.name == \$name) | $2"
}
fact() { row "$1" .fact; }
fired() { row "$1" .fired; }
fact_is() { [ "$(fact "$1")" = "$2" ]; }
fired_is() { [ "$(fired "$1")" = "$2" ]; }

# Some time after each change (a tenth of a second) the kernel is asked once more. The daemon has come to rest when all is
# read that the kernel said, it sleeps, and its timer is not set for so soon.
rests() { wait_until 10 'the daemon to come to rest' rested; }
# shellcheck disable=SC2154  # lib.sh sets it
rested() {
    all_read && [ "$(cut -d ' ' -f 3 "/proc/$daemon_pid/stat")" = S ] &&
        cat /proc/"$daemon_pid"/fdinfo/* | awk '
            /^clockid:/ {boot = $2 == 7}
            /^ticks:/ {ticks = $2}
            boot && /^it_value:/ {gsub(/[(,)]/, ""); if (ticks > 0 || $2 == 0 && $3 > 0 && $3 < 2e8) busy = 1; boot = 0}
            END {exit busy}'
}
unread() { awk 'NR > 1 && $2 == 0 {sum += $5} END {print sum + 0}' /proc/net/netlink; }
all_read() { [ "$(unread)" = 0 ]; }

# comes_to TARGET FACT: waits for the fact; each time that a path came, `network` has fired once more.
firings=0
comes_to() {
    wait_until 5 "$1 to be '$2'" fact_is "$1" "$2"
    case $2 in reachable*) firings=$((firings + 1)) ;; esac
    wait_until 5 "$1 to have fired $firings times" fired_is "$1" $firings
}
# stays TARGET FACT: all that was done until now has been heard, and changed nothing.
stays() {
    heard
    equal "the fact of $1" "$(fact "$1")" "$2"
    equal "firings of $1" "$(fired "$1")" $firings
}

# Two pipelines: one for whatever is elsewhere, and one for a target of its own. That one is moved, and its change
# awaited: what the kernel said before has been read then.
marker=198.51.100.77 mark=prohibit
watched() {
    pipeline elsewhere <<'YAML'
source: {exec: [/bin/true]}
refresh: {on: [network], needs-network: true}
check: {min-bytes: 0}
cache: {file: elsewhere.txt}
YAML
    pipeline marked <<YAML
source: {exec: [/bin/true]}
refresh: {on: [], needs-network: $marker}
check: {min-bytes: 0}
cache: {file: marked.txt}
YAML
}
heard() {
    if [ $mark = prohibit ]; then mark=unreachable; else mark=prohibit; fi
    ip route replace $mark $marker/32
    wait_until 5 'the marker to be heard' fact_is "network $marker" "not reachable: the route is of type $mark"
}
