#!/usr/bin/env bash
# After a run: compare each target with its last results, keep the new ones, draw the trend.
#   nightly.sh [REPORTS] [HISTORY]
# Exit code 1 if a MUST is newly broken, 2 if something could not be read.
set -euo pipefail
reports=${1:-reports}
history=${2:-history}
night=$(date -u +%Y-%m-%dT%H-%M-%SZ)
worst=0
mkdir -p "$history"
: > "$reports/changes.md"
for results in "$reports"/*/results.json; do
  target=$(basename "$(dirname "$results")")
  last=""
  for one in "$history"/*/"$target"/results.json; do # names of nights sort by time
    if [ -e "$one" ]; then last=$one; fi
  done
  if [ -n "$last" ]; then
    code=0
    conformance diff "$last" "$results" --format markdown >> "$reports/changes.md" || code=$?
    echo >> "$reports/changes.md"
    if [ "$code" -gt "$worst" ]; then worst=$code; fi
  fi
  mkdir -p "$history/$night/$target"
  cp "$results" "$history/$night/$target/results.json"
  failures=$reports/$target/drawn-failures.json
  if [ -e "$failures" ]; then mkdir -p "$history/failures/$target" && cp "$failures" "$history/failures/$target/"; fi
done
conformance history "$history" --out "$reports/history.html"
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then cat "$reports/changes.md" >> "$GITHUB_STEP_SUMMARY"; fi
exit "$worst"
