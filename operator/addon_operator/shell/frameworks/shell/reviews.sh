# shellcheck shell=bash
# Answers to the API server, by hooks with kubernetesValidating and kubernetesMutating. A hook that answers more than
# once gives a list: it is denied if one answer denies.

# Prints what the request is about, or what an expression makes of it. Arguments: those of jq, for the request
review::jq() {
  context::jq '.review.request' | jq "$@"
}

# Denies the request. Argument: the message for the user
hook::deny() {
  hook::_answer '{allowed: false, message: $ARGS.positional[0]}' "${1:?hook::deny needs a message for the user}"
}

# Allows the request. Arguments: warnings for the user
hook::allow() {
  hook::_answer '{allowed: true} + if $ARGS.positional == [] then {} else {warnings: $ARGS.positional} end' "$@"
}

# Allows the request and changes the object. Argument: a JSON patch (RFC 6902), such as
# '[{"op": "add", "path": "/spec/replicas", "value": 2}]'
hook::patch_object() {
  hook::_answer '{allowed: true, patch: ($ARGS.positional[0] | fromjson)}' "${1:?hook::patch_object needs a JSON patch}"
}

# Arguments: a jq expression of the answer, and texts for it
hook::_answer() {
  local _hook_file="${ADMISSION_RESPONSE_PATH:?${_hook_unset}}" _hook_before _hook_answer
  _hook_answer="$(jq -cn "$1" --args "${@:2}")"
  _hook_before="$(< "${_hook_file}")"
  jq -cs '.[:-1] as $all | [($all[] | if type == "array" then .[] else . end), .[-1]]
          | if length == 1 then .[0] else . end' <<< "${_hook_before} ${_hook_answer}" > "${_hook_file}"
}
