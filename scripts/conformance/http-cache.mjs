// Runs the HTTP caching tests against a real gateway with its cache on, and counts the results:
//
//   node http-cache.mjs SUITE BINARY [--rounds N] [--write PAGE] [--only ID]
//
// SUITE is the folder of the npm package `http-cache-tests` (or of a later edition of it), BINARY the command `flashweir`. Exit code 1: a
// required test fails without a reason in known-failures.json, two rounds differ, or fewer pass than the bar.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { ended, finish, folder, known, option, start, startGateway, until } from './suite.mjs'

const [suite, binary, ...options] = process.argv.slice(2)
if (!suite || !binary) {
  console.error('usage: node http-cache.mjs SUITE BINARY [--rounds N] [--write PAGE] [--only ID]')
  process.exit(64)
}
const rounds = Number(option(options, '--rounds') ?? 2)
const only = option(options, '--only')

// A round takes about 20 s; one that takes this long is stuck.
const ROUND_MS_MAX = 300_000

// Port 0: the system chooses, and the server says what it got.
async function startOrigin () {
  const env = { npm_config_protocol: 'http', npm_config_port: '0', npm_config_pidfile: path.join(folder, 'origin.pid') }
  const child = start(process.execPath, ['--no-warnings', 'server/server.mjs'], { cwd: suite, env })
  return until('the origin', child, () => child.text.match(/Listening on \S+:(\d+)\//)?.[1])
}

async function runRound (base) {
  const env = { npm_config_base: base, npm_config_id: only ?? '', npm_package_config_id: '' }
  const child = start(process.execPath, ['--no-warnings', 'cli.mjs'], { cwd: suite, env })
  await ended('a round', child, ROUND_MS_MAX)
  if (only) {
    console.log(child.text)
    process.exit(0)
  }
  try {
    return JSON.parse(child.text)
  } catch {
    throw new Error(`the tests did not run:\n${child.text}${child.errors}`)
  }
}

async function readTests () {
  const load = async file => (await import(pathToFileURL(path.join(suite, 'tests', file)))).default
  const sets = await load('index.mjs')
  for (const file of ['surrogate-control.mjs', 'cdn-cache-control.mjs']) {
    if (fs.existsSync(path.join(suite, 'tests', file))) {
      const set = await load(file)
      if (!sets.includes(set)) sets.push(set)
    }
  }
  const tests = sets.flatMap(set => set.tests).filter(test => !test.browser_only)
  return new Map(tests.map(test => [test.id, { ...test, kind: test.kind ?? 'required' }]))
}

// As the suite counts: a test counts only if those that it depends on passed and its own preparation worked.
function verdict (tests, results, id) {
  const result = results[id]
  if (result === undefined) return { outcome: 'untested' }
  const missing = (tests.get(id).depends_on ?? []).find(other => verdict(tests, results, other).outcome !== 'passed')
  if (missing) return { outcome: 'not counted', why: `needs ${missing}` }
  if (result === true) return { outcome: 'passed' }
  const [kind, why] = Array.isArray(result) ? result : ['', String(result)]
  return { outcome: kind === 'Setup' ? 'not counted' : 'failed', why }
}

function count (tests, results) {
  const counts = {}
  for (const [id, { kind }] of tests) {
    const { outcome } = verdict(tests, results, id)
    counts[kind] ??= { passed: 0, failed: 0, 'not counted': 0, untested: 0 }
    counts[kind][outcome] += 1
  }
  return counts
}

const row = (name, counts) => {
  const { required, optimal } = counts
  const rest = kind => kind['not counted'] + kind.untested
  return `| ${name} | ${required.passed} | ${required.failed} | ${rest(required)} | ${optimal.passed} | ${optimal.failed} | ${rest(optimal)} |`
}

function published (tests) {
  const names = { trafficserver: 'Traffic Server', apache: 'Apache httpd', squid: 'Squid', varnish: 'Varnish', nginx: 'nginx', nuster: 'nuster (of HAProxy)' }
  const rows = []
  for (const [file, name] of Object.entries(names)) {
    const results = path.join(suite, 'results', `${file}.json`)
    if (fs.existsSync(results)) rows.push(row(name, count(tests, JSON.parse(fs.readFileSync(results, 'utf8')))))
  }
  return rows
}

const origin = await startOrigin()
const gateway = await startGateway(binary, [
  `upstream.urls = ["http://127.0.0.1:${origin}"]`,
  'cache.mode = "always"',
  // A hundred tests begin at once; nothing is to be refused.
  'sentry.policing = "off"',
  'flash_crowd.mode = "off"',
  // Fields that the tests' client adds to each request.
  'cache.request_fields = ["test-name", "test-id", "req-num"]'
])
const base = `http://${gateway.listen[0]}`
const tests = await readTests()
const outcomes = results => [...tests.keys()].map(id => verdict(tests, results, id).outcome)
const disagreeing = all => [...tests.keys()].filter((_, index) => new Set(all.map(results => outcomes(results)[index])).size > 1)
async function runRounds () {
  const all = []
  for (let round = 0; round < rounds; round++) all.push(await runRound(base))
  return all
}
let all = await runRounds()
// The tests work with lifetimes of one second: on a machine that stops for one, a round goes wrong, and the next does not.
if (disagreeing(all).length > 0) {
  console.error(`http-cache: the rounds do not agree on ${disagreeing(all).join(', ')}; all are run once more`)
  all = await runRounds()
}

const knownReason = id => known.reasons.find(([pattern]) => new RegExp(pattern).test(id)) ?? ['', '', '']
const mayFail = id => knownReason(id)[1] === 'may fail'
const problems = []
const counted = all.map(results => count(tests, results))
for (const [id, { kind }] of tests) {
  const verdicts = all.map(results => verdict(tests, results, id))
  const { outcome, why } = verdicts[0]
  if (verdicts.some(other => other.outcome !== outcome)) problems.push(`${id}: ${verdicts.map(other => other.outcome).join(', then ')}`)
  if (kind === 'required' && outcome === 'failed' && !mayFail(id)) problems.push(`${id} fails and should not: ${why}`)
}
const { version } = JSON.parse(fs.readFileSync(path.join(suite, 'package.json'), 'utf8'))
const first = counted[0]
for (const [kind, bar] of Object.entries(known.bar[version] ?? {})) {
  if (first[kind].passed < bar) problems.push(`${first[kind].passed} of kind ${kind} pass, expected at least ${bar}`)
}

const total = kind => [...tests.values()].filter(test => test.kind === kind).length
const table = [
  `Edition ${version} of the package: ${total('required')} required tests, ${total('optimal')} optional ones, and ${total('check')} that ask what a cache does.`,
  '',
  '| | required passed | failed | not counted | optional passed | failed | not counted |',
  '|---|---:|---:|---:|---:|---:|---:|',
  ...counted.map((counts, index) => row(`**Flashweir**, run ${index + 1}`, counts)),
  ...published(tests),
  '',
  '| test | kind | outcome | why |',
  '|---|---|---|---|'
]
for (const [id, { kind }] of tests) {
  const { outcome, why } = verdict(tests, all[0], id)
  if (kind === 'check' || outcome === 'passed') continue
  const reason = knownReason(id)[2] || why
  table.push(`| \`${id}\` | ${kind === 'optimal' ? 'optional' : kind} | ${outcome} | ${reason.replaceAll('|', '\\|')} |`)
}
finish('http-cache', table, problems, option(options, '--write'))
