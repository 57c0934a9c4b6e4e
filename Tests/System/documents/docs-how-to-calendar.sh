# shellcheck shell=bash
cat >/srv/origin/events <<'JSON'
[{"id": 1, "rev": 1, "location": "R1", "summary": "One", "start": "2", "end": "3"}, {"id": 2, "rev": 2, "status": "cancelled"},
 {"id": 3, "rev": 3, "location": "R2", "summary": "Two", "start": "1", "end": "2"},
 {"id": 4, "rev": 4, "location": "R3", "summary": "Gone", "start": "4", "end": "5"}]
JSON
echo 'pages sync 2' >/srv/origin/events.fault
