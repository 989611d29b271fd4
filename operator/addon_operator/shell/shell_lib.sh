# shellcheck shell=bash
# The library for hooks in bash: docs/reference/hook-libraries.md. A hook sources this file, defines functions
# such as __config__ and __main__, and ends with: hook::run "$@"
# It keeps the conventions of shell-operator's library, so that hooks made for that one run with this one.

if [ -z "${BASH_VERSION:-}" ]; then
  echo "Error: this hook uses a library for bash; begin it with '#!/usr/bin/env bash'" >&2
  exit 1
fi
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  echo "Error: the library for hooks needs bash 4.4 or newer, and this is ${BASH_VERSION}" >&2
  exit 1
fi
if ! command -v jq > /dev/null; then
  echo "Error: the library for hooks needs jq, which is not in PATH; install it" >&2
  exit 1
fi

set -Eeuo pipefail
shopt -s inherit_errexit

# Whichever way it was named: the other files are beside this one.
_hook_library="$(readlink -f -- "${BASH_SOURCE[0]}")"
_hook_library="${_hook_library%/*}/frameworks/shell"

shopt -s globstar nullglob
for _hook_file in "${_hook_library}"/**/*.sh; do
  # shellcheck source=/dev/null
  source "${_hook_file}"
done
shopt -u globstar nullglob
shopt -s failglob
unset _hook_file

trap hook::_trace ERR
