# shellcheck shell=bash
echo '{"keys": [{"kid": "a"}]}' >/srv/origin/jwks.json
