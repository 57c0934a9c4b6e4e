# shellcheck shell=bash
echo '{"blocked": ["192.0.2.0/24"], "partners": ["198.51.100.7"]}' >/srv/origin/access.json
