# shellcheck shell=bash
# Values: reading them as they were when the hook started, and changing them. All functions take --config first, for
# the values of the operator's ConfigMap; a path is written as someModule.other-key.0."key.with.dots".

# Arguments: [--config] those of jq
values::jq() {
  local file="${VALUES_PATH:?${_hook_unset}}"
  while [[ "${1-x}" == "--config" || -z "${1-x}" ]]; do
    [[ -z "$1" ]] || file="${CONFIG_VALUES_PATH:?${_hook_unset}}"
    shift
  done
  jq "$@" "${file}"
}

# Prints the value at a path, null if there is none. Arguments: [--config] [--required] [--default TEXT] PATH
values::get() {
  local -a config=()
  local required=no default="null" expression
  while [[ "${1:-}" == --* ]]; do
    case "$1" in
      --config) config=(--config) ;;
      --required) required=yes ;;
      --default)
        default="${2:-}"
        shift
        ;;
      *) hook::fail "values::get does not know the option $1" ;;
    esac
    shift
  done
  expression="$(context::_convert_user_path_to_jq_path "${1:-}")"
  # shellcheck disable=SC2016
  [[ "${default}" == null ]] || expression="(${expression}) | if . == null then \$default else . end"
  # shellcheck disable=SC2016
  [[ "${required}" == no ]] || expression="if $(context::_has "${1:-}") then ${expression} else ${_context_failed} end"
  values::jq "${config[@]}" -r --arg default "${default}" --arg reason "there is no value ${1:-}; set it" \
    "${expression}"
}

# Whether there is a key at a path, be it null. Arguments: [--config] PATH
values::has() {
  local -a config=()
  values::_take_config "$@"
  set -- "${@:1 + ${#config[@]}}"
  values::jq "${config[@]}" -e "$(context::_has "${1:-}")" > /dev/null
}

# Puts a value at a path; mappings on the way there are made. A value that is JSON is taken as such, any other as a
# text; with --string it is a text in any case. A number in the path of a list inserts before that place, and - adds at
# the end. Arguments: [--config] [--string] PATH VALUE
values::set() {
  local -a config=()
  local kind=json
  while [[ "${1:-}" == --* ]]; do
    case "$1" in
      --config) config=(--config) ;;
      --string) kind=string ;;
      *) hook::fail "values::set does not know the option $1" ;;
    esac
    shift
  done
  (($# == 2)) || hook::fail "values::set takes a path and a value, and got $# arguments: ${1:-}"
  values::_json_patch "${config[@]}" add "$(context::_pointer "$1")" "$2" "${kind}"
}

# Removes the value at a path; fine if there is none. Arguments: [--config] PATH
values::unset() {
  local -a config=()
  values::_take_config "$@"
  set -- "${@:1 + ${#config[@]}}"
  values::_json_patch "${config[@]}" remove "$(context::_pointer "${1:-}")"
}

# Fails unless the ConfigMap has a value. Argument: PATH
values::require_in_config() {
  if ! values::has --config "$1"; then
    echo "Error: $1 is not set; set it in the operator's ConfigMap" >&2
    return 1
  fi
}

# Whether the list at a path has a text. Arguments: [--config] PATH TEXT
values::array_has() {
  local -a config=()
  values::_take_config "$@"
  set -- "${@:1 + ${#config[@]}}"
  # shellcheck disable=SC2016
  values::jq "${config[@]}" -e --arg item "$2" \
    "$(context::_convert_user_path_to_jq_path "$1")"' | type == "array" and index($item) != null' > /dev/null
}

# Arguments: [--config] PATH
values::is_true() {
  values::_is true "$@"
}

# Arguments: [--config] PATH
values::is_false() {
  values::_is false "$@"
}

# Prints the first value that is there. Arguments: [--config] PATH...
values::get_first_defined() {
  local -a config=()
  local expression='("" | halt_error(1))' number path
  values::_take_config "$@"
  set -- "${@:1 + ${#config[@]}}"
  for ((number = $#; number > 0; number--)); do
    path="$(context::_convert_user_path_to_jq_path "${!number}")"
    expression="if $(context::_has "${!number}") then ${path} else ${expression} end"
  done
  values::jq "${config[@]}" -r "${expression}"
}

# Replaces the row of a list that has the same value of a key, or adds it. Arguments: [--config] PATH KEY ROW
values::store::replace_row_by_key() {
  values::_row replace_row "$@"
}

# Removes the row of a list that has the same value of a key as ROW. Arguments: [--config] PATH KEY ROW
values::store::unset_row_by_key() {
  values::_row remove_row "$@"
}

values::_row() {
  local operation="$1"
  shift
  local -a config=()
  values::_take_config "$@"
  set -- "${@:1 + ${#config[@]}}"
  values::_json_patch "${config[@]}" "${operation}" "$(context::_pointer "$1")" "$3" json "$2"
}

values::_is() {
  local wanted="$1"
  shift
  local -a config=()
  values::_take_config "$@"
  set -- "${@:1 + ${#config[@]}}"
  values::jq "${config[@]}" -e "$(context::_convert_user_path_to_jq_path "${1:-}") == ${wanted}" > /dev/null
}

# Puts --config into the array of that name of the caller, if it is the first argument.
values::_take_config() {
  [[ "${1:-}" != "--config" ]] || config=(--config)
}

# Adds to the patch what makes a change. Arguments: [--config] CHANGE POINTER [VALUE [json|string [KEY]]]
values::_json_patch() {
  local -a config=()
  values::_take_config "$@"
  set -- "${@:1 + ${#config[@]}}"
  local file="${VALUES_JSON_PATCH_PATH:?${_hook_unset}}"
  ((${#config[@]} == 0)) || file="${CONFIG_VALUES_JSON_PATCH_PATH:?${_hook_unset}}"
  local operations
  operations="$(values::_state "${config[@]}" --arg op "$1" --arg path "$2" \
    --rawfile value <(printf %s "${3-}") --arg kind "${4:-json}" --arg key "${5-}" "${_values_operations}")"
  [[ -z "${operations}" ]] || echo "${operations}" >> "${file}"
}

# Runs jq on the values as the patch so far makes them. Arguments: [--config] options of jq, expression
values::_state() {
  local values="${VALUES_PATH:?${_hook_unset}}" patch="${VALUES_JSON_PATCH_PATH:?${_hook_unset}}"
  if [[ "$1" == "--config" ]]; then
    values="${CONFIG_VALUES_PATH:?${_hook_unset}}" patch="${CONFIG_VALUES_JSON_PATCH_PATH:?${_hook_unset}}"
    shift
  fi
  local expression="${*: -1}"
  # Somebody who tries the hook may have it written to a terminal or a pipe, which cannot be read.
  [[ -f "${patch}" && ("${patch}" != /dev/* || "${patch}" == /dev/shm/*) ]] || patch=/dev/null
  jq -c --slurpfile patch "${patch}" "${@:1:$#-1}" "${_values_state} ${expression}" "${values}"
}

# shellcheck disable=SC2016
_values_state='
  def tokens: split("/")[1:] | map(gsub("~1"; "/") | gsub("~0"; "~"));
  def place($key): if type != "array" then $key elif $key == "-" then length else ($key | tonumber? // -1) end;
  def there($key): type == "object" and has($key) or type == "array" and (place($key) as $at | $at >= 0 and has($at));
  def lookup($keys): reduce $keys[] as $key (.; if there($key) then .[place($key)] else null end);
  def path_of($keys):
    reduce $keys[] as $key ({at: [], in: .}; (.in | place($key)) as $place
      | .in = (.in | if there($key) then .[$place] else null end) | .at += [$place]) | .at;
  def applied($operation): ($operation.path | tokens) as $keys | lookup($keys[:-1]) as $parent | path_of($keys) as $at
    | if $operation.op == "remove" then delpaths([$at])
      elif $operation.op == "add" and ($parent | type) == "array" then
        setpath($at[:-1]; $parent[:$at[-1]] + [$operation.value] + $parent[$at[-1]:])
      elif $operation.op == "add" or $operation.op == "replace" then setpath($at; $operation.value)
      else . end;
  reduce ($patch | flatten[]) as $operation (.; applied($operation)) |
'
# Nothing for what is not there to be removed; the outermost mapping that is missing for what is to be put.
# A section always exists for the operator, even one that the file does not show.
# shellcheck disable=SC2016
_values_operations='
  def parsed: . as $text | if $kind == "string" then . else (try fromjson catch $text)
    | if type == "number" and isnan then $text else . end end;
  def depth($keys; $least):
    . as $all | [range(1; $keys | length) | select(. as $n | $all | lookup($keys[:$n]) == null)][0] // ($keys | length)
    | if . < $least then $least else . end;
  def added($path): ($path | tokens) as $keys | depth($keys; [2, ($keys | length)] | min) as $depth
    | {op: "add", path: ($path | split("/")[:$depth + 1] | join("/")),
       value: (reduce ($keys[$depth:] | reverse[]) as $key
                 ($value | parsed; if $key == "-" then [.] else {($key): .} end))};
  def row_changed: ($value | fromjson) as $row
    | [lookup($path | tokens) | arrays | map(.[$key] == $row[$key]) | index(true)][0] as $at
    | if $at == null then empty else {op: "remove", path: "\($path)/\($at)"} end,
      if $op == "remove_row" then empty
      elif $at == null then added("\($path)/-")
      else {op: "add", path: "\($path)/\($at)", value: $row} end;
  if $op == "add" then added($path)
  elif $op == "remove" then ($path | tokens) as $keys
    | if lookup($keys[:-1]) | there($keys[-1]) then {$op, $path} else empty end
  else row_changed end
'
