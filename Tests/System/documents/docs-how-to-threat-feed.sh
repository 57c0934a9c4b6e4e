# shellcheck shell=bash
jq -nc '[range(5) | {id: (. + 1), pattern: "p\(.)", revoked: (. == 2)}]' >/srv/origin/indicators
echo 'pages last-key 2' >/srv/origin/indicators.fault
