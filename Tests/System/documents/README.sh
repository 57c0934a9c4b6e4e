# shellcheck shell=bash
echo '{"keys": [{"kid": "2026-10", "kty": "EC"}]}' >/srv/origin/jwks.json
