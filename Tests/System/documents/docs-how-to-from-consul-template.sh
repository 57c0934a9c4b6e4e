# shellcheck shell=bash
# What the agent of this machine answers.
mkdir -p /srv/agent/v1/health/service
echo '[{"Service": {"Address": "192.0.2.11", "Port": 8080}}, {"Service": {"Address": "192.0.2.12", "Port": 8080}}]' \
    >/srv/agent/v1/health/service/web
systemctl stop agent 2>/dev/null || true
systemd-run --quiet --unit=agent /opt/freshet/Scripts/origin --root /srv/agent/v1/health/service --port 8500 --log /srv/agent/requests
until (exec 3<>/dev/tcp/127.0.0.1/8500) 2>/dev/null; do sleep 0.05; done
