# shellcheck shell=bash
echo '{"keys": [{"kid": "a", "kty": "EC"}]}' >/srv/origin/jwks.json
printf 'ads.example\ntracker.example\n' >/srv/origin/blocklist.txt
