# shellcheck shell=bash
# Pipelines with a past: generations 1 to 7 of `jwks` and `topics`, and what else the page speaks of.
cd /etc/freshet/pipelines || return
cat >jwks.yaml <<'YAML'
source: {url: https://id.example.com/.well-known/jwks.json}
refresh: {every: 15min, fresh-for: 0, quiet: 100ms}
cache: {file: jwks.json, keep: 2}
YAML
cat >topics.yaml <<'YAML'
source: {url: https://api.example.com/topics.json}
refresh: {on: []}
cache: {file: topics.json, keep: 2}
YAML
cat >old-rates.yaml <<'YAML'
source: {url: https://www.example.com/old-rates.json}
refresh: {on: []}
cache: {file: old-rates.json, keep: 5}
YAML
cat >homepage.yaml <<'YAML'
parameters:
  language: {default: en, choices: [en, de, fr]}
  query: {default: "", quiet: 100ms}
source:
  url: https://api.example.com/catalogue?lang={language}&q={query}
  each:
    as: topic
    key: .id
    url: https://api.example.com/{topic.id}-media
    pages: {next: link, items: ., load: 1}
    transform: '{id: $topic.id, media: .}'
refresh: {on: [start]}
cache: {file: homepage.json}
YAML
cd /srv/origin || return
echo '[{"id": "comedy"}, {"id": "news"}]' >catalogue
echo '["a", "b", "c", "d", "e"]' >comedy-media
echo '["f"]' >news-media
for name in comedy news; do echo 'pages link 2' >$name-media.fault; done
topic() { printf '{"id":"%s","title":"%s"}' "$1" "$2"; }
for number in 1 2 3 4 5 6; do
    echo '{"keys": [{"kid": "1"}, {"kid": "'"$number"'"}], "issued": '"$number"'}' >jwks.json
    echo "[$number]" >topics.json
    echo "[$number]" >old-rates.json
    if [ $number = 6 ]; then
        echo "[$(topic opera Opera),$(topic news New),$(topic film Film),$(topic jazz Jazz)]" >topics.json
        sed -i '/^\[6\]$/s/.*/[5]/' old-rates.json
    fi
    [ $number != 1 ] || freshetctl reload
    freshetctl refresh jwks topics old-rates --wait
done
echo "[$(topic jazz Jazz),$(topic news News),$(topic film Film),$(topic blues Blues)]" >topics.json
freshetctl refresh topics --wait
freshetctl refresh homepage --wait
echo '{"keys": [{"kid": "1"}, {"kid": "7"}], "issued": 7}' >jwks.json
freshetctl signals fire network
until [ "$(freshetctl show jwks -p generation.number --value)" = 7 ]; do sleep 0.05; done
cd || return
