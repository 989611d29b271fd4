# shellcheck shell=bash
# Changes of Kubernetes objects, which the operator makes when the hook has ended well: "Kubernetes patches" of
# docs/reference/hooks.md. An OBJECT is JSON or YAML, and is read from standard input if it is not given.

# Creates an object; the hook fails if it exists. Argument: [OBJECT]
kubernetes::create() {
  kubernetes::_object Create "$@"
}

# Creates an object, or replaces it as a whole if it exists. Argument: [--subresource NAME] [OBJECT]
kubernetes::create_or_update() {
  kubernetes::_object CreateOrUpdate "$@"
}

# Creates an object unless it exists. Argument: [OBJECT]
kubernetes::create_if_not_exists() {
  kubernetes::_object CreateIfNotExists "$@"
}

# Server-side apply. Arguments: [--force] [--field-manager NAME] [--subresource NAME] [OBJECT]
kubernetes::apply() {
  kubernetes::_object Apply "$@"
}

# JSON merge patch. Arguments: [options of the target] NAMESPACE KIND/NAME PATCH
kubernetes::merge_patch() {
  kubernetes::_target MergePatch mergePatch "$@"
}

# JSON patch. Arguments: [options of the target] NAMESPACE KIND/NAME PATCH
kubernetes::json_patch() {
  kubernetes::_target JSONPatch jsonPatch "$@"
}

# Replaces an object by what a jq expression makes of it. Arguments: [options of the target] NAMESPACE KIND/NAME JQ
kubernetes::jq_patch() {
  kubernetes::_target JQPatch jqFilter "$@"
}

# Deletes an object and what belongs to it, and waits until it is gone.
# Arguments: [options of the target] NAMESPACE KIND/NAME
kubernetes::delete() {
  kubernetes::_target Delete "" "$@"
}

# Deletes an object; what belongs to it follows in its own time. Arguments: [options of the target] NAMESPACE KIND/NAME
kubernetes::delete_in_background() {
  kubernetes::_target DeleteInBackground "" "$@"
}

# Deletes an object; what belongs to it stays. Arguments: [options of the target] NAMESPACE KIND/NAME
kubernetes::delete_non_cascading() {
  kubernetes::_target DeleteNonCascading "" "$@"
}

# Names of the Go operator's library. Objects are read from standard input.
kubernetes::create_json() {
  kubernetes::create_if_not_exists
}

kubernetes::create_yaml() {
  kubernetes::create_if_not_exists
}

kubernetes::replace_json() {
  kubernetes::create_or_update
}

kubernetes::replace_yaml() {
  kubernetes::create_or_update
}

kubernetes::patch_jq() {
  kubernetes::jq_patch "$@"
}

kubernetes::_object() {
  local -a fields=(--arg operation "$1")
  shift
  while [[ "${1:-}" == --* ]]; do
    case "$1" in
      --force) fields+=(--argjson force true) ;;
      --field-manager) fields+=(--arg fieldManager "${2:-}") && shift ;;
      --subresource) fields+=(--arg subresource "${2:-}") && shift ;;
      *) hook::fail "kubernetes:: functions for objects do not know the option $1" ;;
    esac
    shift
  done
  kubernetes::_note object "${fields[@]}" <<< "${1-$(cat)}"
}

kubernetes::_target() {
  local -a fields=(--arg operation "$1")
  local field="$2"
  shift 2
  while [[ "${1:-}" == --* ]]; do
    case "$1" in
      --ignore-missing) fields+=(--argjson ignoreMissingObject true) ;;
      --ignore-hook-error) fields+=(--argjson ignoreHookError true) ;;
      --api-version) fields+=(--arg apiVersion "${2:-}") && shift ;;
      --subresource) fields+=(--arg subresource "${2:-}") && shift ;;
      *) hook::fail "kubernetes:: functions for patches do not know the option $1" ;;
    esac
    shift
  done
  local wanted=2
  [[ -z "${field}" ]] || wanted=3
  (($# == wanted)) && [[ "$2" == ?*/?* ]] ||
    hook::fail "a kubernetes:: function for ${fields[2]} takes a namespace, KIND/NAME${field:+ and a patch}: $*"
  [[ -z "$1" ]] || fields+=(--arg namespace "$1")
  kubernetes::_note "${field}" --arg kind "${2%%/*}" --arg name "${2#*/}" "${fields[@]}" <<< "${3-}"
}

# Writes an operation down. Its largest field, JSON or another text, is read from standard input, since arguments of a
# program must not be larger than 128 KiB. Arguments: the name of that field if there is one, others as options of jq
kubernetes::_note() {
  # shellcheck disable=SC2016
  jq -Rsc --arg _large "$1" "${@:2}" '
    rtrimstr("\n") as $text | $ARGS.named | del(._large)
    | if $_large == "" then .
      else .[$_large] = ($text | if $_large == "jqFilter" then . else (try fromjson catch $text) end) end
  ' >> "${KUBERNETES_PATCH_PATH:?${_hook_unset}}"
}
