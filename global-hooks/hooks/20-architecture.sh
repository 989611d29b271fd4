#!/usr/bin/env bash
# Finds out, before any module runs, what kind of processor the operator's node has.
#
# A global hook shares what it finds with all modules by a patch of "global". A patch that changes nothing
# causes nothing, so the hook may write the same one every time.
set -euo pipefail

if [[ "${1:-}" == "--config" ]]; then
  cat <<'CONFIG'
configVersion: v1
beforeAll: 20
CONFIG
  exit 0
fi

# Kubernetes has its own names for them: the label kubernetes.io/arch.
case "$(uname -m)" in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture="$(uname -m)" ;;
esac

cat > "$VALUES_JSON_PATCH_PATH" <<PATCH
[{"op": "add", "path": "/global/discovery", "value": {"architecture": "$architecture"}}]
PATCH
