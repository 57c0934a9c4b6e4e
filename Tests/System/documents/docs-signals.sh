# shellcheck shell=bash
echo '[]' >/srv/origin/news.json
