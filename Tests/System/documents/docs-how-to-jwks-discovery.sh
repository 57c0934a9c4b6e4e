# shellcheck shell=bash
echo '{"issuer": "https://id.example.com", "jwks_uri": "https://keys.example.com/keys.json"}' >/srv/origin/openid-configuration
echo '{"keys": [{"kid": "2026-10", "kty": "RSA"}, {"kid": "2026-11", "kty": "EC"}]}' >/srv/origin/keys.json
