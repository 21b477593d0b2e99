// Lets Prometheus' own linter read a scrape of the admin listener: node metrics.mjs PROMTOOL BINARY [--write PAGE]
//
// Exit code 1: the linter finds something, or the scrape has less in it than known-failures.json says.
import { spawnSync } from 'node:child_process'
import { finish, known, option, startGateway } from './suite.mjs'

const [promtool, binary, ...options] = process.argv.slice(2)
if (!promtool || !binary) {
  console.error('usage: node metrics.mjs PROMTOOL BINARY [--write PAGE]')
  process.exit(64)
}
const LINT_MS_MAX = 60_000
const run = (args, input) => spawnSync(promtool, args, { input, encoding: 'utf8', timeout: LINT_MS_MAX })

// The scrape needs no upstream: nothing listens on port 1.
const gateway = await startGateway(binary, ['upstream.urls = ["http://127.0.0.1:1"]'])
const scrape = await (await fetch(`http://${gateway.admin[0]}/metrics`)).text()
const checked = run(['check', 'metrics'], scrape)
const version = `${run(['--version']).stdout}`.match(/version (\S+)/)?.[1]
const said = `${checked.stdout}${checked.stderr}`.trim().split('\n').filter(Boolean)

// The linter accepts an empty scrape.
const families = scrape.match(/^# TYPE /gm)?.length ?? 0
const samples = scrape.match(/^[^#\n]/gm)?.length ?? 0
const problems = [...said]
if (checked.status !== 0) problems.push(`promtool ends with ${checked.status ?? checked.error}`)
if (families < known.metrics.families) problems.push(`${families} metrics in the scrape, expected at least ${known.metrics.families}`)
const lines = [
  '| scrape | metrics | samples | objections |',
  '|---|---:|---:|---:|',
  `| \`promtool\` ${version} | ${families} | ${samples} | ${said.length} |`
]
finish('metrics', lines, problems, option(options, '--write'))
