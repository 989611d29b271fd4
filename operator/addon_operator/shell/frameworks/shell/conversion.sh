# shellcheck shell=bash
# Conversions of custom resources: the answer to the API server, in functions such as __on_conversion::NAME.

# Converts all objects with a jq expression, which is given one object after the other. The apiVersion is set, and
# metadata other than labels and annotations stay. Arguments: EXPRESSION [options of jq]
conversion::convert() {
  (($# >= 1)) || hook::fail "conversion::convert takes a jq expression"
  local answer
  # shellcheck disable=SC2016
  answer="$(context::jq -c "${@:2}" '
    .review.request as $_request | {convertedObjects: [$_request.objects[] | . as $_before
      | ('"$1"') as $_after
      | $_after + {apiVersion: $_request.desiredAPIVersion, kind: $_before.kind,
                   metadata: (($_before.metadata // {} | del(.labels, .annotations))
                     + ($_after.metadata // {} | with_entries(select(.key == "labels" or .key == "annotations"))))}]}
  ')"
  printf '%s\n' "${answer}" > "${CONVERSION_RESPONSE_PATH:?${_hook_unset}}"
}

# Answers that the objects cannot be converted, and why: the user who asked for them sees it. Argument: MESSAGE
conversion::fail() {
  # shellcheck disable=SC2016
  jq -nc --arg message "$*" '{failedMessage: $message}' > "${CONVERSION_RESPONSE_PATH:?${_hook_unset}}"
}
