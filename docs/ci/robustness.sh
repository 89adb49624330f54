#!/bin/sh
# Audits the ranker of this version, compares it with the audit of main, and holds it against the rules.
# The exit code is 0 if it may be merged, 1 if a rule fails or it became worse, and another if something did not work.
set -eu
summary="${GITHUB_STEP_SUMMARY:-/dev/null}"

shaketable audit --out audit-new        # what is audited is in shaketable.toml

code=0
shaketable gate audit-new --rules rules.toml --junit robustness.xml --badge robustness.json --summary gates.md || code=$?
[ "$code" -le 1 ] || exit "$code"
cat gates.md >> "$summary"

if [ -e audit-main/results.json ]; then
    worse=0
    shaketable compare audit-main audit-new --fail-on-regression --summary comparison.md || worse=$?
    [ "$worse" -le 1 ] || exit "$worse"
    cat comparison.md >> "$summary"
    [ "$worse" -eq 0 ] || code=1
fi
exit "$code"
