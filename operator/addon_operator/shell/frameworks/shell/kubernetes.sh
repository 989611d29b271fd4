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
  local operation="$1" more='{}' object
  shift
  while [[ "${1:-}" == --* ]]; do
    case "$1" in
      --force) more="$(jq -c '.force = true' <<< "${more}")" ;;
      --field-manager | --subresource)
        more="$(kubernetes::_with "${more}" "$1" "${2:-}")"
        shift
        ;;
      *) hook::fail "kubernetes:: functions for objects do not know the option $1" ;;
    esac
    shift
  done
  object="${1-$(cat)}"
  # shellcheck disable=SC2016
  jq -nc --arg operation "${operation}" --arg object "${object}" --argjson more "${more}" \
    '{$operation, object: (try ($object | fromjson) catch $object)} + $more' >> "${KUBERNETES_PATCH_PATH}"
}

kubernetes::_target() {
  local operation="$1" field="$2" more='{}'
  shift 2
  while [[ "${1:-}" == --* ]]; do
    case "$1" in
      --ignore-missing) more="$(jq -c '.ignoreMissingObject = true' <<< "${more}")" ;;
      --ignore-hook-error) more="$(jq -c '.ignoreHookError = true' <<< "${more}")" ;;
      --api-version | --subresource)
        more="$(kubernetes::_with "${more}" "$1" "${2:-}")"
        shift
        ;;
      *) hook::fail "kubernetes:: functions for patches do not know the option $1" ;;
    esac
    shift
  done
  local wanted=2
  [[ -z "${field}" ]] || wanted=3
  (($# == wanted)) && [[ "$2" == ?*/?* ]] ||
    hook::fail "a kubernetes:: function for ${operation} takes a namespace, KIND/NAME${field:+ and a patch}: $*"
  # shellcheck disable=SC2016
  jq -nc --arg operation "${operation}" --arg namespace "$1" --arg kind "${2%%/*}" --arg name "${2#*/}" \
    --arg field "${field}" --arg patch "${3-}" --argjson more "${more}" '
      {$operation, $kind, $name}
      + (if $namespace == "" then {} else {$namespace} end)
      + (if $field == "" then {} else
          {($field): (if $field == "jqFilter" then $patch else (try ($patch | fromjson) catch $patch) end)} end)
      + $more' >> "${KUBERNETES_PATCH_PATH}"
}

# Arguments: DOCUMENT --some-option VALUE
kubernetes::_with() {
  # shellcheck disable=SC2016
  jq -c --arg option "$2" --arg value "$3" '
    {"--field-manager": "fieldManager", "--subresource": "subresource", "--api-version": "apiVersion"}[$option] as $key
    | .[$key] = $value' <<< "$1"
}
