# shellcheck shell=bash
echo '{"keys": [{"kid": "a", "kty": "EC"}]}' >/srv/origin/jwks.json
cat >/etc/freshet/pipelines/jwks.yaml <<'YAML'
source: {url: https://id.example.com/.well-known/jwks.json}
refresh: {every: 15min}
cache: {file: jwks.json}
YAML
# As after a boot: the daemon found it there.
systemctl restart freshetd
