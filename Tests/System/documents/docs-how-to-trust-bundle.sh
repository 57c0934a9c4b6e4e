# shellcheck shell=bash
for authority in one two three; do
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$authority" -keyout /dev/null 2>/dev/null
done >/srv/origin/bundle.pem
echo 'header Content-Type: application/x-pem-file' >/srv/origin/bundle.pem.fault
