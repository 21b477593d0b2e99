#!/bin/sh
# Checks the alert rules and the dashboard of packaging/monitoring: monitoring-check.sh PROMTOOL. The rules are checked and tested by promtool;
# names of metrics are compared with docs/metrics.md, alerts with docs/alerts.md; each expression of the dashboard is read by promtool.
set -eu
promtool=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=
quietly() {
  "$@" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; failed=yes; }
}
quietly "$promtool" check rules packaging/monitoring/alerts.yaml
quietly "$promtool" test rules packaging/monitoring/alerts.test.yaml
node scripts/monitoring-check.mjs "$folder/expressions.yaml" || failed=yes
# promtool names a wrong expression by the title of its panel.
quietly "$promtool" check rules "$folder/expressions.yaml"
[ -z "$failed" ] || { echo "monitoring-check: failed" >&2; exit 1; }
echo "monitoring-check: rules, tests, dashboard and docs/alerts.md agree"
