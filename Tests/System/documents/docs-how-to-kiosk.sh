# shellcheck shell=bash
echo '{"topics": [{"id": "comedy", "title": "Comedy"}, {"id": "news", "title": "News"}]}' >/srv/origin/topics
echo '["a", "b", "c"]' >/srv/origin/media
echo 'pages link 2' >/srv/origin/media.fault
