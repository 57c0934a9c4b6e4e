# shellcheck shell=bash
printf 'deny 192.0.2.7;\n' >/srv/origin/blocklist.conf
