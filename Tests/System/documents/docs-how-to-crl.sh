# shellcheck shell=bash
head -c 400 /dev/urandom >/srv/origin/authority.crl
echo 'header Content-Type: application/pkix-crl' >/srv/origin/authority.crl.fault
