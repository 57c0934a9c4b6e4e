# shellcheck shell=bash
echo '["1.2.3", "latest", "1.10.0", "1.9.9", "nightly"]' >/srv/origin/list
echo 'pages link 2' >/srv/origin/list.fault
