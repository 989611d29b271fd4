#!/usr/bin/env bash
# Logs once, when the module starts, what the module is for.
#
# A hook is any executable file. The operator first calls it with --config, and the hook prints when it wants to
# run. All other calls are runs. Their output goes to the operator's log.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
onStartup: 10
CONFIG
  exit 0
fi

echo "The names listed in dnsCheck.names are looked up whenever this module runs."
