# shellcheck shell=bash
archive() { # archive BYTES FILE: an archive with a database of this size
    local directory=GeoLite2-Country_20260714 work
    work=$(mktemp -d)
    mkdir "$work/$directory"
    echo 'Copyright' >"$work/$directory/COPYRIGHT.txt"
    head -c "$1" /dev/urandom >"$work/$directory/GeoLite2-Country.mmdb"
    tar -C "$work" -czf "$2" $directory
    rm -r "$work"
}
archive 4000 /srv/origin/download
archive 5000 /srv/next-download
