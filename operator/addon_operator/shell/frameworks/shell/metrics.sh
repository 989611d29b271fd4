# shellcheck shell=bash
# Metrics that the operator exports: "Metrics" of docs/reference/hooks.md.

# Raises a counter. Arguments: [--group NAME] NAME VALUE [LABEL=TEXT]...
metrics::add() {
  metrics::_note add "$@"
}

# Sets a gauge. Arguments: [--group NAME] NAME VALUE [LABEL=TEXT]...
metrics::set() {
  metrics::_note set "$@"
}

# Counts a value in a histogram. Arguments: [--group NAME] [--buckets 1,2,5] NAME VALUE [LABEL=TEXT]...
metrics::observe() {
  metrics::_note observe "$@"
}

# Removes all series of a group. Argument: GROUP
metrics::expire() {
  # shellcheck disable=SC2016
  jq -nc --arg group "$1" '{action: "expire", $group}' >> "${METRICS_PATH:?${_hook_unset}}"
}

metrics::_note() {
  local action="$1" group="" buckets="" label
  shift
  while [[ "${1:-}" == --* ]]; do
    case "$1" in
      --group) group="${2:-}" ;;
      --buckets) buckets="${2:-}" ;;
      *) hook::fail "metrics::${action} does not know the option $1" ;;
    esac
    shift 2
  done
  (($# >= 2)) || hook::fail "metrics::${action} takes a name and a value, and got $# arguments: $*"
  [[ "$2" =~ ^[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$ ]] ||
    hook::fail "metrics::${action} $1: '$2' is not a number"
  for label in "${@:3}"; do
    [[ "${label}" == ?*=* ]] || hook::fail "metrics::${action} $1: '${label}' is not a label; write NAME=TEXT"
  done
  # shellcheck disable=SC2016
  jq -nc --arg action "${action}" --arg name "$1" --arg value "${2#+}" \
    --arg group "${group}" --arg buckets "${buckets}" '
    {$name, $action, value: ($value | tonumber)}
    + (if $group == "" then {} else {$group} end)
    + (if $buckets == "" then {} else {buckets: ($buckets | split(",") | map(tonumber))} end)
    + (if ($ARGS.positional | length) == 0 then {} else
        {labels: ($ARGS.positional | map(index("=") as $at | {(.[:$at]): .[$at + 1:]}) | add)} end)
  ' --args "${@:3}" >> "${METRICS_PATH:?${_hook_unset}}"
}
