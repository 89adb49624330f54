#!/bin/sh
# Audit the ranker of this version, check the rules, and compare it with the audit of the main branch.
# Exit code: 0 if you can merge, 1 if a rule fails or the ranker became worse, any other value for an error.
set -eu
summary="${GITHUB_STEP_SUMMARY:-/dev/null}"

shaketable audit --out audit-new        # reads its flags from shaketable.toml

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
