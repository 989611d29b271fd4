#!/usr/bin/env bash
# Detects the processor architecture of the operator's node, before any module runs.
#
# To share a value with all modules, a global hook writes a patch of "global". A patch that changes nothing triggers
# nothing, so the hook may write the same patch every time.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
beforeAll: 20
CONFIG
  exit 0
fi

# Kubernetes has its own names for architectures: the label kubernetes.io/arch.
case "$(uname -m)" in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture="$(uname -m)" ;;
esac

cat > "$VALUES_JSON_PATCH_PATH" <<PATCH
[{"op": "add", "path": "/global/discovery", "value": {"architecture": "$architecture"}}]
PATCH
