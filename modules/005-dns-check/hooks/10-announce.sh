#!/usr/bin/env bash
# Says once, when the module starts, what it is for.
#
# A hook is any executable file. The operator first calls it with --config and reads from its output when it
# wants to be called; all other calls are work. What it prints then goes to the operator's log.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
onStartup: 10
CONFIG
  exit 0
fi

echo "The names listed in dnsCheck.names are looked up whenever this module runs."
