# shellcheck shell=bash disable=SC2016
echo '{"redirects": [{"path": "/old", "target": "https://www.example.com/new"}, {"path": "/cost", "target": "/$5"},
    {"path": "/shop", "target": "https://shop.example.com/"}]}' >/srv/origin/redirects.json
