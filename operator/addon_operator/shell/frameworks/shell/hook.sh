# shellcheck shell=bash
# From the start of a hook to its functions.

_hook_unset="it is not set; the operator sets it, and so must you to try the hook"

# Prints the configuration, or calls for each binding context the first function that there is of those for its
# binding, in a subshell; __main__ is the last of them.
# Arguments: those of the hook.
hook::run() {
  if [[ "${1:-}" == "--config" ]]; then
    declare -F __config__ > /dev/null ||
      hook::fail "the hook has no function __config__; define it, and let it print the configuration"
    __config__
    exit 0
  fi
  : "${BINDING_CONTEXT_PATH:?${_hook_unset}}"
  local _hook_text _hook_line _hook_handlers _hook_index=0
  local -a _hook_lines
  _hook_text="$(jq -r "${_hook_contexts}" "${BINDING_CONTEXT_PATH}")"
  # The functions may read standard input, which therefore is not the list.
  mapfile -t _hook_lines <<< "${_hook_text}"
  for _hook_line in "${_hook_lines[@]}"; do
    [[ -n "${_hook_line}" ]] || continue
    export BINDING_CONTEXT_CURRENT_INDEX="${_hook_index}"
    IFS=$'\x1f' read -r BINDING_CONTEXT_CURRENT_BINDING BINDING_CONTEXT_CURRENT_TYPE _hook_handlers \
      <<< "${_hook_line}"
    export BINDING_CONTEXT_CURRENT_BINDING BINDING_CONTEXT_CURRENT_TYPE
    hook::_run_first_available_handler "${_hook_handlers}"
    _hook_index=$((_hook_index + 1))
  done
}

# Ends the hook with one sentence.
hook::fail() {
  echo "Error: $*" >&2
  trap - ERR
  exit 1
}

# A line for each context: its binding, its type, and the functions that may be there for it, the closest first.
# shellcheck disable=SC2016
_hook_contexts='
  def step: {onStartup: "startup", beforeAll: "before_all", afterAll: "after_all",
             beforeHelm: "before_helm", afterHelm: "after_helm",
             beforeDeleteHelm: "before_delete_helm", afterDeleteHelm: "after_delete_helm"}[.binding];
  def event: {Added: ["added", "added_or_modified"], Modified: ["modified", "added_or_modified"],
              Deleted: ["deleted"], add: ["added", "added_or_modified"],
              update: ["modified", "added_or_modified"], delete: ["deleted"]}[.watchEvent // .resourceEvent] // [];
  def kubernetes(names): "__on_kubernetes::\(.binding)" as $own | [names | "\($own)::\(.)"] + [$own];
  def handlers:
    if .type == "Synchronization" then kubernetes("synchronization")
    elif .type == "Event" or has("resourceEvent") then kubernetes(event[])
    elif .type == "Group" then ["__on_group::\(.groupName)", "__on_group::\(.binding)"] + kubernetes(empty)
    elif .type == "Validating" or .type == "Mutating" then ["__on_\(.type | ascii_downcase)::\(.binding)"]
    elif .type == "Conversion" then
      "__on_conversion::\(.binding)" as $own
      | [$own + "::" + ([.fromVersion, .toVersion] | map(gsub("/"; ".")) | join("::")), $own]
    elif .type == "Schedule" then ["__on_schedule::\(.binding)"] + kubernetes(empty)
    elif step then ["__on_\(step)", "__on_schedule::\(.binding)"]
    else ["__on_schedule::\(.binding)"]
    end;
  .[] | [.binding // "unknown", .type // "",
         (handlers + ["__main__"] | map(select(test("[\\s*?\\[\\]]") | not)) | join(" "))]
      | map(gsub("[\n\u001f]"; " ")) | join("\u001f")
'

# Prints the functions that may be there for the current context. Libraries that have a hook::run of their own call it.
hook::_determine_kubernetes_and_scheduler_handlers() {
  local _hook_text
  local -a _hook_lines
  _hook_text="$(context::global::jq -r "${_hook_contexts}")"
  mapfile -t _hook_lines <<< "${_hook_text}"
  echo "${_hook_lines[${BINDING_CONTEXT_CURRENT_INDEX:-0}]##*$'\x1f'}"
}

# Argument: names of functions with spaces between them.
hook::_run_first_available_handler() {
  local _hook_handler
  # shellcheck disable=SC2086
  for _hook_handler in $1; do
    if declare -F "${_hook_handler}" > /dev/null; then
      # What goes wrong is reported inside, once.
      trap - ERR
      (
        trap hook::_trace ERR
        "${_hook_handler}"
      )
      trap hook::_trace ERR
      return
    fi
  done
  hook::fail "the hook has no function for the binding '${BINDING_CONTEXT_CURRENT_BINDING}';" "define one of ${1// /, }"
}

# Tells in one line which command ended the hook, and where.
hook::_trace() {
  local status=$? command="${BASH_COMMAND}" frame places=""
  for ((frame = 1; frame < ${#FUNCNAME[@]}; frame++)); do
    [[ "${BASH_SOURCE[frame]%/*}" == "${BASH_SOURCE[0]%/*}" ]] && continue
    places+="${places:+, called from }${BASH_SOURCE[frame]##*/}, line ${BASH_LINENO[frame - 1]}"
  done
  command="${command//[$'\n\t ']/ }"
  echo "Error: exit code ${status} of '${command:0:200}' in ${places:-the library}" >&2
}
