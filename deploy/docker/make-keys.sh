#!/bin/sh
# Makes the keys of deploy/compose.yaml in its volumes, once: users, permissions and TLS of "pserver auth init", and the
# token that guards the metrics. Each service gets a volume with its own keys only. Runs in the image, as root.
set -eu

auth=/etc/pserver/auth
# auth.json is written last: without it, an earlier start was interrupted.
if [ ! -e "$auth/auth.json" ]; then
  pserver auth init "$auth" --force --job "$PSERVER_JOB" --trainer trainer-1 \
    --name broker-1 --name broker-2 --name broker-3
fi
token=/keys/metrics/token
if [ ! -s "$token" ]; then openssl rand -hex 32 >"$token"; fi

cp "$auth/host.nk" "$auth/answers.nk" "$auth/ca.pem" "$token" /keys/host/
cp "$auth/trainers/trainer-1.nk" "$auth/ca.pem" /keys/trainer/
chown -R 10001:10001 "$auth" /keys/host /keys/trainer
# Prometheus runs as another user, and is the only one that mounts this volume.
chmod 0444 "$token"
