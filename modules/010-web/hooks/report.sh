#!/usr/bin/env bash
# Logs how to open the page after Helm has run.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
afterHelm: 10
CONFIG
  exit 0
fi

# bash cannot read JSON; python3 does it in one line.
title="$(python3 -c 'import json, sys; print(json.load(sys.stdin)["web"]["title"])' < "$VALUES_PATH")"
echo "'$title' is served by the service 'web': kubectl port-forward service/web 8080:80"
