# shellcheck shell=bash
# Binding contexts: why the hook runs. A path is written as someKey.other-key.0."key.with.dots".

# All contexts of the run. Arguments: those of jq.
context::global::jq() {
  jq "$@" "${BINDING_CONTEXT_PATH}"
}

# The current context. Arguments: those of jq.
context::jq() {
  jq ".[${BINDING_CONTEXT_CURRENT_INDEX:-0}]" "${BINDING_CONTEXT_PATH}" | jq "$@"
}

# Prints what is at a path, null if there is nothing. Arguments: [--required] PATH
context::get() {
  local required=no expression
  if [[ "${1:-}" == "--required" ]]; then
    required=yes
    shift
  fi
  expression="$(context::_convert_user_path_to_jq_path "${1:-}")"
  [[ "${required}" == no ]] || expression="if $(context::_has "${1:-}") then ${expression} else ${_context_failed} end"
  context::_evaluate -r "${expression}" \
    --arg reason "the context of the binding '${BINDING_CONTEXT_CURRENT_BINDING:-}' has no ${1:-}"
}

# Whether there is a key at a path, be it null. Argument: PATH
context::has() {
  context::_evaluate -e "$(context::_has "${1:-}")" > /dev/null
}

context::is_true() {
  context::_evaluate -e "$(context::_convert_user_path_to_jq_path "${1:-}") == true" > /dev/null
}

context::is_false() {
  context::_evaluate -e "$(context::_convert_user_path_to_jq_path "${1:-}") == false" > /dev/null
}

context::is_null() {
  context::_evaluate -e "$(context::_convert_user_path_to_jq_path "${1:-}") == null" > /dev/null
}

# Runs an expression on the current context. Arguments: option of jq, expression, other options of jq
context::_evaluate() {
  jq "$1" "${@:3}" ".[${BINDING_CONTEXT_CURRENT_INDEX:-0}] | ($2)" "${BINDING_CONTEXT_PATH}"
}

# Ends jq, and with it the function, with the sentence in $reason.
# shellcheck disable=SC2016
_context_failed='("Error: \($reason)\n" | halt_error(1))'

# Prints a path as jq writes it. What looks like jq is left alone. Argument: PATH
context::_convert_user_path_to_jq_path() {
  local -a _path_keys=() _path_quoted=()
  context::_split "${1:-}"
  context::_as_jq "${#_path_keys[@]}"
}

# Prints a jq expression: whether there is something at a path. Argument: PATH
context::_has() {
  local -a _path_keys=() _path_quoted=()
  context::_split "${1:-}"
  local last=$((${#_path_keys[@]} - 1)) key
  ((last >= 0)) || { echo true && return; }
  key="${_path_keys[last]}"
  [[ "${key}" =~ ^[0-9]+$ && "${_path_quoted[last]}" == no ]] || key="\"${key//\"/\\\"}\""
  echo "try ($(context::_as_jq "${last}") | has(${key})) catch false"
}

# Prints a path as a JSON pointer (RFC 6901). Argument: PATH
context::_pointer() {
  local -a _path_keys=() _path_quoted=()
  context::_split "${1:-}"
  local key pointer=""
  for key in "${_path_keys[@]}"; do
    key="${key//\~/\~0}"
    pointer+="/${key//\//\~1}"
  done
  echo "${pointer}"
}

# Prints the last key of a path, without quotes. Libraries above this one call it. Argument: PATH
context::_basename() {
  local -a _path_keys=() _path_quoted=()
  context::_split "${1:-}"
  local last=$((${#_path_keys[@]} - 1))
  echo "${_path_keys[last < 0 ? 0 : last]:-}"
}

# Prints a path without its last key. Libraries above this one call it. Argument: PATH
context::_dirname() {
  local -a _path_keys=() _path_quoted=()
  context::_split "${1:-}"
  local number key path=""
  for ((number = 0; number < ${#_path_keys[@]} - 1; number++)); do
    key="${_path_keys[number]}"
    [[ "${_path_quoted[number]}" == no ]] || key="\"${key}\""
    path+="${path:+.}${key}"
  done
  echo "${path}"
}

# Takes a path apart, into _path_keys and _path_quoted of the caller. Argument: PATH
context::_split() {
  local rest="${1//\'/\"}" key
  if [[ "${rest}" == /* ]]; then
    context::_split_pointer "${rest#/}"
    return
  fi
  rest="${rest#.}"
  while [[ -n "${rest}" ]]; do
    if [[ "${rest}" =~ ^\"([^\"]*)\"(\.|$)(.*)$ ]]; then
      key="${BASH_REMATCH[1]}" rest="${BASH_REMATCH[3]}"
      _path_quoted+=(yes)
    elif [[ "${rest}" =~ ^([A-Za-z0-9_-]+)\[([0-9]+)\](\.|$)?(.*)$ ]]; then
      key="${BASH_REMATCH[1]}" rest="${BASH_REMATCH[2]}.${BASH_REMATCH[4]}"
      _path_quoted+=(no)
    else
      key="${rest%%.*}"
      [[ "${rest}" == *.* ]] && rest="${rest#*.}" || rest=""
      _path_quoted+=(no)
    fi
    _path_keys+=("${key}")
  done
}

context::_split_pointer() {
  local rest="$1/" key
  while [[ -n "${rest}" ]]; do
    key="${rest%%/*}"
    rest="${rest#*/}"
    key="${key//\~1/\/}"
    _path_keys+=("${key//\~0/\~}")
    [[ "${key}" =~ ^[0-9]+$ ]] && _path_quoted+=(no) || _path_quoted+=(yes)
  done
}

# Prints the first keys of _path_keys as jq writes them. Argument: how many
context::_as_jq() {
  local number key path=""
  for ((number = 0; number < $1; number++)); do
    key="${_path_keys[number]}"
    if [[ "${_path_quoted[number]}" == yes || "${key}" =~ ^[A-Za-z0-9_]*-[A-Za-z0-9_-]*$ ]]; then
      path="${path:-.}[\"${key//\"/\\\"}\"]"
    elif [[ "${key}" =~ ^[0-9]+$ ]]; then
      path="${path:-.}[${key}]"
    else
      path+=".${key}"
    fi
  done
  echo "${path:-.}"
}
