# shellcheck shell=bash
head -c 4000 /dev/urandom | gzip >/srv/origin/download
