// Compares the alert rules and the dashboard of packaging/monitoring with docs/metrics.md and docs/alerts.md: node monitoring-check.mjs RULES
//
// Writes the dashboard's expressions as recording rules into RULES, for `promtool check rules`. Exit code 1: a name or a label that no metric
// has, an alert without a section, a section without an alert, an alert without tests of both kinds, or a dashboard that is not importable.
import fs from 'node:fs'

const MONITORING = 'packaging/monitoring'
const GRID_COLUMNS = 24
// Grafana's own; `row` has no content.
const PANEL_TYPES = ['row', 'stat', 'timeseries', 'state-timeline', 'table', 'bargauge', 'text']
// Metrics of Prometheus itself.
const FOREIGN_METRICS = ['up']
// Labels that Prometheus adds to each target.
const TARGET_LABELS = ['job', 'instance']
const KEYWORDS = ['by', 'without', 'on', 'ignoring', 'group_left', 'group_right', 'and', 'or', 'unless', 'bool', 'offset']

const read = file => fs.readFileSync(file, 'utf8')
const problems = []
const check = (holds, problem) => { if (!holds) problems.push(problem) }
const twice = names => names.filter((name, index) => names.indexOf(name) !== index)

// Samples by name, each with its labels, and the values of each label as far as docs/metrics.md lists them.
const samples = new Map(FOREIGN_METRICS.map(name => [name, []]))
const labelValues = new Map()
for (const [, name, type, label] of read('docs/metrics.md').matchAll(/^\| `(flashweir_\w+)` \| (\w+) \| (.*?) \|/gm)) {
  const [, key, values] = label.match(/^`(\w+)`: (.*)$/) ?? []
  const labels = key ? [key] : [...label.matchAll(/`(\w+)`/g)].map(([, each]) => each)
  if (type === 'histogram') labels.push('le')
  for (const suffix of type === 'histogram' ? ['_bucket', '_count', '_sum'] : ['']) samples.set(`${name}${suffix}`, labels)
  if (!key) continue
  const known = labelValues.get(key) ?? new Set()
  for (const [, value] of values.matchAll(/`(\w+)`/g)) known.add(value)
  labelValues.set(key, known)
}
check(samples.size > 100, 'docs/metrics.md: no table of metrics could be read')

// Every name in an expression that is neither a function nor a keyword nor a label is a metric; labels belong to a metric of it.
function checkExpression (place, expression) {
  const used = []
  for (const [, label, values] of expression.matchAll(/(\w+)\s*[=!]~?\s*"([^"]*)"/g)) {
    const known = labelValues.get(label)
    if (!known || values.includes('.*')) continue
    for (const value of values.split('|')) check(known.has(value), `${place}: no metric has ${label}="${value}"`)
  }
  const names = expression
    .replace(/"(?:[^"\\]|\\.)*"/g, '""')
    .replace(/\{[^}]*\}|\[[^\]]*\]/g, ' ')
    .replace(/\b(by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, '$1 ')
  for (const [, name, call] of names.matchAll(/(?<![\w.])([a-zA-Z_:][\w:]*)(\s*\(|\s+(?:by|without)\b)?/g)) {
    if (call || KEYWORDS.includes(name)) continue
    check(samples.has(name), `${place}: docs/metrics.md has no ${name}`)
    used.push(...samples.get(name) ?? [])
  }
  for (const [, name, matchers] of expression.matchAll(/(\w+)\{([^}]*)\}/g)) {
    for (const [, label] of matchers.matchAll(/(\w+)\s*[=!]/g)) {
      check([...TARGET_LABELS, ...samples.get(name) ?? [label]].includes(label), `${place}: ${name} has no label ${label}`)
    }
  }
  for (const [, list] of expression.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g)) {
    for (const label of list.split(',').map(each => each.trim())) {
      check([...TARGET_LABELS, ...used].includes(label), `${place}: no metric of the expression has a label ${label}`)
    }
  }
}

// The rules are YAML in one layout, which promtool has read before: an alert, and its expression on a line or in a block of deeper lines.
const rules = read(`${MONITORING}/alerts.yaml`)
const alerts = rules.split(/^ *- alert: /m).slice(1).map(text => {
  const [, indent, line, block] = text.match(/^( *)expr: (?:>-\n((?:\1 +.*\n)+)|(.*)\n)/m) ?? []
  return { name: text.match(/^\w+/)[0], expression: line ?? block, indent, text }
})
const tests = read(`${MONITORING}/alerts.test.yaml`).split(/^ *alertname: /m).slice(1)
const sections = [...read('docs/alerts.md').matchAll(/^#+ (Flashweir\w+)$/gm)].map(([, name]) => name)
for (const { name, expression, text } of alerts) {
  check(expression, `${name}: no expression could be read`)
  checkExpression(name, expression ?? '')
  check(/severity: (critical|warning)\b/.test(text), `${name}: severity is neither critical nor warning`)
  for (const part of ['for', 'summary', 'description']) check(new RegExp(`^ *${part}: .`, 'm').test(text), `${name}: no ${part}`)
  check(text.includes(`page: docs/alerts.md#${name.toLowerCase()}\n`), `${name}: page does not name its section`)
  check(sections.includes(name), `docs/alerts.md: no section ${name}`)
  const own = tests.filter(test => test.startsWith(`${name}\n`))
  check(own.some(test => /^ *exp_alerts:\n *- /m.test(test)), `${name}: no test in which it fires`)
  check(own.some(test => /^ *exp_alerts: \[\]$/m.test(test)), `${name}: no test in which it is silent`)
}
for (const section of sections) check(alerts.some(({ name }) => name === section), `docs/alerts.md: no alert ${section}`)
for (const name of twice([...alerts.map(({ name }) => name)])) problems.push(`${name}: two alerts with this name`)

// The dashboard, as Grafana imports it.
const dashboard = JSON.parse(read(`${MONITORING}/flashweir.dashboard.json`))
const panels = dashboard.panels.flatMap(panel => [panel, ...(panel.panels ?? [])])
check(dashboard.id === null && dashboard.uid && dashboard.title && dashboard.schemaVersion >= 36, 'dashboard: id, uid, title or schemaVersion')
for (const id of twice(panels.map(({ id }) => id))) problems.push(`dashboard: two panels with the id ${id}`)
const expressions = []
const addExpression = (place, text) => {
  checkExpression(place, text)
  expressions.push([place, text.replaceAll('$__rate_interval', '5m').replaceAll('$__range', '1h').replace(/\$\w+/g, '.*')])
}
const isDatasource = source => source?.type === 'prometheus' && source.uid === '${datasource}'
for (const panel of panels) {
  const place = `dashboard, ${panel.title}`
  const { x, y, w, h } = panel.gridPos
  check(PANEL_TYPES.includes(panel.type), `${place}: ${panel.type} is a plugin`)
  check([x, y, w, h].every(Number.isInteger) && x >= 0 && w > 0 && h > 0 && x + w <= GRID_COLUMNS, `${place}: outside of the grid`)
  if (panel.type === 'row') continue
  check(panel.fieldConfig.defaults.unit, `${place}: no unit`)
  check(panel.targets.length > 0 && twice(panel.targets.map(({ refId }) => refId)).length === 0, `${place}: no query, or two with one refId`)
  for (const { datasource, expr } of [panel, ...panel.targets]) {
    check(isDatasource(datasource), `${place}: the data source is not the variable`)
    if (expr) addExpression(place, expr)
  }
}
// Panels of a row that is closed may lie where those of the next open row do.
for (const group of [dashboard.panels, ...dashboard.panels.filter(({ collapsed }) => collapsed).map(({ panels }) => panels)]) {
  group.forEach(({ title, gridPos: one }, index) => group.slice(0, index).forEach(({ title: before, gridPos: other }) => {
    const isClear = one.x + one.w <= other.x || other.x + other.w <= one.x || one.y + one.h <= other.y || other.y + other.h <= one.y
    check(isClear, `dashboard: ${title} overlaps ${before}`)
  }))
}
for (const { name, datasource, expr } of dashboard.annotations.list.filter(({ builtIn }) => !builtIn)) {
  check(isDatasource(datasource), `dashboard, annotation ${name}: the data source is not the variable`)
  addExpression(`dashboard, annotation ${name}`, expr)
}
for (const { name, datasource, definition } of dashboard.templating.list.filter(({ type }) => type === 'query')) {
  check(isDatasource(datasource), `dashboard, variable ${name}: the data source is not the variable`)
  addExpression(`dashboard, variable ${name}`, definition.replace(/^label_values\((.*), \w+\)$/, '$1'))
}
const variables = ['__rate_interval', ...dashboard.templating.list.map(({ name }) => name)]
for (const [, name] of JSON.stringify(dashboard).matchAll(/\$\{?(\w+)/g)) {
  check(variables.includes(name) || name === '__all', `dashboard: no variable ${name}`)
}

// JSON is YAML.
const groups = expressions.map(([place, expr], index) => ({ name: `${index}: ${place}`, rules: [{ record: `dashboard:${index}`, expr }] }))
fs.writeFileSync(process.argv[2], JSON.stringify({ groups }, undefined, 1))
for (const problem of problems) console.error(`monitoring: ${problem}`)
console.log(`${alerts.length} alerts, ${panels.length} panels, ${expressions.length} expressions`)
process.exit(problems.length > 0 ? 1 : 0)
