# The parts that the tests of reachability share, after lib.sh: a second uplink, and the daemon's facts about its
# targets.
# shellcheck shell=bash

# Another path to the origin, over wan2: 198.18.0.2/24, with the router 198.18.0.1.
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

# The daemon queries the kernel once more a tenth of a second after each change. It is idle if it has read all netlink
# messages, sleeps, and has no timer that expires within 0.2 s.
wait_for_idle() { wait_until 10 'the daemon to become idle' is_idle; }
# shellcheck disable=SC2154  # lib.sh sets it
is_idle() {
    all_read && [ "$(cut -d ' ' -f 3 "/proc/$daemon_pid/stat")" = S ] &&
        cat /proc/"$daemon_pid"/fdinfo/* | awk '
            /^clockid:/ {boot = $2 == 7}
            /^ticks:/ {ticks = $2}
            boot && /^it_value:/ {gsub(/[(,)]/, ""); if (ticks > 0 || $2 == 0 && $3 > 0 && $3 < 2e8) busy = 1; boot = 0}
            END {exit busy}'
}
unread() { awk 'NR > 1 && $2 == 0 {sum += $5} END {print sum + 0}' /proc/net/netlink; }
all_read() { [ "$(unread)" = 0 ]; }

# becomes TARGET FACT: waits for the fact; `network` fires once for each change to a reachable fact.
firings=0
becomes() {
    wait_until 5 "$1 to be '$2'" fact_is "$1" "$2"
    case $2 in reachable*) firings=$((firings + 1)) ;; esac
    wait_until 5 "$1 to have fired $firings times" fired_is "$1" $firings
}
# stays TARGET FACT: the daemon has processed all earlier changes, and they did not change the fact.
stays() {
    synchronize
    equal "the fact of $1" "$(fact "$1")" "$2"
    equal "firings of $1" "$(fired "$1")" $firings
}

# Two pipelines: `elsewhere` watches the default path, `marked` watches the address $marker. synchronize changes the
# route to $marker and waits for the new fact: by then the daemon has read all earlier messages of the kernel.
marker=198.51.100.77 mark=prohibit
watch_targets() {
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
synchronize() {
    if [ $mark = prohibit ]; then mark=unreachable; else mark=prohibit; fi
    ip route replace $mark $marker/32
    wait_until 5 'the fact of the marker' fact_is "network $marker" "not reachable: the route is of type $mark"
}
