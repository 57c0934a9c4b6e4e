# The parts that the tests with a network manager share, after booted.sh: a cable whose near end has no address yet, the
# origin at its far end, and the daemon's facts about it.
# shellcheck shell=bash
# shellcheck disable=SC2154  # booted.sh sets them
unconfigured_uplink() {
    ip netns add origin
    ip -n origin link set lo up
    ip link add wan0 type veth peer name wan1 netns origin
    ip -n origin addr add 192.0.2.1/24 dev wan1
    ip -n origin addr add "$origin_address/32" dev lo
    ip -n origin link set wan1 up
    mkdir -p "$origin_root"
    systemd-run --quiet --unit=origin -p NetworkNamespacePath=/run/netns/origin \
        /opt/freshet/Scripts/origin --root "$origin_root" --listen 0.0.0.0 --log /srv/requests
    wait_until 10 'the origin to listen' ip netns exec origin bash -c "exec 3<>/dev/tcp/$origin_address/8480"
}
row() { # row FILTER: the row of the origin's address in `freshetctl signals`
    freshetctl signals --json | jq -r --arg name "network $origin_address" ".signals[] | select(.name == \$name) | $1"
}
fact() { row .fact; }
fired() { row .fired; }
fact_is() { [ "$(fact)" = "$1" ]; }
fact_starts() { [[ "$(fact)" = "$1"* ]]; }
has_no_address() { [ -z "$(ip -4 -o addr show wan0)" ]; }
is_configured() { networkctl --no-pager list wan0 | grep -q configured; }
