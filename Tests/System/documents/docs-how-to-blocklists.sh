# shellcheck shell=bash
printf '%s\n' '# hosts' '0.0.0.0 ads.example' '0.0.0.0 tracker.example # seen' >/srv/origin/hosts
echo 'header Content-Type: text/plain' >/srv/origin/hosts.fault
printf 'bad.example\r\nads.example' >/srv/origin/malware.txt
