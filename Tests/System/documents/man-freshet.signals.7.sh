# shellcheck shell=bash
echo '{}' >/srv/origin/daily.json
