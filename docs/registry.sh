#!/usr/bin/env bash
# Go through every submission that a pull request adds or changes, against what the registry knows already.
#   registry.sh REGISTRY SUBMITTED
# Both are checkouts; keys.txt, revoked.txt and certificates/ are read from REGISTRY only, never from a submission.
# Exit code 1 if something is not in order, 3 if something could not be examined.
set -euo pipefail
shopt -s nullglob
registry=$1
submitted=$2
worst=0
found=0
note() { printf '%s\n' "$1" | tee -a "${GITHUB_STEP_SUMMARY:-/dev/null}"; }
strange=$(diff -rq --exclude=.git --exclude=certificates "$registry" "$submitted" || true)
if [ -n "$strange" ]; then
  note "A submission changes nothing outside of certificates/:"
  note "$strange"
  worst=1
fi
mkdir -p "$registry/certificates"
for folder in "$registry"/certificates/*/; do
  name=$(basename "$folder")
  if [ ! -d "$submitted/certificates/$name" ]; then
    note "$name is gone; what was accepted is revoked in revoked.txt, never taken away"
    worst=1
  fi
done
for folder in "$submitted"/certificates/*/; do
  name=$(basename "$folder")
  if [ -d "$registry/certificates/$name" ] && diff -rq "$registry/certificates/$name" "$folder" > /dev/null; then
    continue # unchanged
  fi
  found=$((found + 1))
  code=0
  note "## $name"
  conformance submit-check "$folder" --trust "$registry/keys.txt" --revoked "$registry/revoked.txt" \
    --seen "$registry/certificates" > checklist.txt || code=$?
  note "$(sed 's/^/    /' checklist.txt)"
  # 1 outranks 3: an error is certain, whatever else could not be examined
  if [ "$code" -ne 0 ] && [ "$worst" -ne 1 ]; then worst=$code; fi
done
note "$found submissions"
exit "$worst"
