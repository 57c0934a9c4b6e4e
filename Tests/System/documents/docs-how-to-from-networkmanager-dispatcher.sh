# shellcheck shell=bash
echo '{"flags": []}' >/srv/origin/all
