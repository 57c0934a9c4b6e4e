# shellcheck shell=bash
echo '{"flags": [{"name": "new-cart", "enabled": true}, {"name": "beta", "enabled": false}]}' >/srv/origin/flags
echo 'header Content-Type: application/json' >/srv/origin/flags.fault
