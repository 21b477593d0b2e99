// Runs the Autobahn test suite for WebSocket: its fuzzing client against its echo server, without a gateway and with one between:
//
//   node autobahn.mjs SUITE BINARY [--write PAGE] [--short] [--cases PATTERN,PATTERN]
//
// SUITE is the folder that scripts/autobahn.sh fills, BINARY the command `flashweir`. Exit code 1: a case has another verdict, again, with the
// gateway than without it, or fewer cases ran or passed than known-failures.json says. --short leaves out LARGE.
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { ended, finish, folder, known, option, start, startGateway, until } from './suite.mjs'

const here = path.dirname(fileURLToPath(import.meta.url))
const [suite, binary, ...options] = process.argv.slice(2)
if (!suite || !binary) {
  console.error('usage: node autobahn.mjs SUITE BINARY [--write PAGE] [--short] [--cases PATTERN,PATTERN]')
  process.exit(64)
}
const cases = option(options, '--cases')?.split(',') ?? ['*']

// Compression of messages of more than 1 KB, a thousand to a case: a third of the cases, and nine tenths of the time. The gateway relays
// all of them in the same way, as bytes.
const LARGE = [...numbers(1, 5).map(part => `12.${part}`), ...numbers(1, 7).map(part => `13.${part}`)]
  .flatMap(part => numbers(5, 18).map(number => `${part}.${number}`))
const excluded = options.includes('--short') ? LARGE : []

// All cases take ten minutes on two idle cores; a run that takes this long is stuck.
const RUN_MS_MAX = 5_400_000
const REPEATS = 3
const PASSED = ['OK', 'NON-STRICT', 'INFORMATIONAL']

const env = { PYTHONPATH: path.resolve(suite), PYTHONDONTWRITEBYTECODE: '1' }
const python = args => start(path.join(suite, 'python2'), ['-W', 'ignore', ...args], { env })

async function startTestee () {
  const child = python([path.join(here, 'autobahn_testee.py')])
  return JSON.parse(await until('the echo server', child, () => child.text.match(/^\{.*\}$/m)?.[0]))
}

function numbers (first, last) {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index)
}

// Verdicts of the fuzzing client, by the name of the way that it went and the number of the case.
async function fuzz (name, url, cases) {
  const spec = path.join(folder, `${name}.json`)
  const reports = path.join(folder, name)
  const servers = [{ agent: name, url }]
  fs.writeFileSync(spec, JSON.stringify({ outdir: reports, servers, cases, 'exclude-cases': excluded, 'exclude-agent-cases': {} }))
  const child = python(['-m', 'autobahntestsuite.wstest', '-m', 'fuzzingclient', '-s', spec, '-u', '0'])
  await ended(`the run ${name}`, child, RUN_MS_MAX)
  try {
    return JSON.parse(fs.readFileSync(path.join(reports, 'index.json'), 'utf8'))[name]
  } catch {
    throw new Error(`the cases did not run:\n${child.text.slice(-2000)}${child.errors}`)
  }
}

// The worse of the verdicts on the messages and on the closing handshake.
function verdict (result) {
  if (result === undefined) return 'not run'
  const verdicts = [result.behavior, result.behaviorClose]
  return verdicts.find(one => !PASSED.includes(one)) ?? verdicts.find(one => one !== 'OK') ?? 'OK'
}
const passes = result => PASSED.includes(verdict(result))
const byNumbers = (one, other) => one.localeCompare(other, 'en', { numeric: true })

const [testee, gatewayTestee] = await Promise.all([startTestee(), startTestee()])
const gateway = await startGateway(binary, [
  `upstream.urls = ["http://127.0.0.1:${gatewayTestee.port}"]`,
  // Cases come one after another as fast as they can; nothing is to be refused.
  'sentry.policing = "off"',
  'flash_crowd.mode = "off"'
])
const urls = { without: `ws://127.0.0.1:${testee.port}`, with: `ws://${gateway.listen[0]}` }
// At the same time, each with its own echo server, which works on one connection after another: half the time on two cores.
const both = (suffix, cases) => Promise.all(Object.entries(urls).map(([name, url]) => fuzz(`${name}${suffix}`, url, cases)))
const [without, withGateway] = await both('', cases)

const ids = [...new Set([...Object.keys(without), ...Object.keys(withGateway)])].sort(byNumbers)
const differs = id => verdict(without[id]) !== verdict(withGateway[id])
// A timer of one second ends many cases: on a machine that stalls for a second, some get another verdict. So those that differ run
// again, and one that differs in any of these runs counts.
const suspects = ids.filter(differs)
for (const id of suspects) console.error(`autobahn: ${id}: ${verdict(without[id])} without the gateway, ${verdict(withGateway[id])} with it; it is run again`)
const cleared = new Set(suspects)
for (let again = 1; again <= REPEATS && cleared.size > 0; again++) {
  const [one, other] = await both(again, [...cleared])
  for (const id of cleared) {
    [without[id], withGateway[id]] = [one[id], other[id]]
    if (differs(id)) cleared.delete(id)
  }
}
const problems = ids.filter(differs).map(id => `${id}: ${verdict(without[id])} without the gateway, ${verdict(withGateway[id])} with it`)

const row = (name, ids) => {
  const [passedWithout, passedWith] = [without, withGateway].map(results => ids.filter(id => passes(results[id])).length)
  return `| ${name} | ${ids.length} | ${passedWithout} | ${passedWith} | ${ids.filter(differs).length} |`
}
const categories = Object.keys(testee.categories).sort(byNumbers).map(number => [number, ids.filter(id => id.split('.')[0] === number)])
const lines = [
  `Edition ${testee.version} of the package: ${ids.length} cases.`,
  '',
  '| cases | in all | passed without the gateway | passed with the gateway | other verdict |',
  '|---|---:|---:|---:|---:|',
  ...categories.filter(([, ids]) => ids.length > 0).map(([number, ids]) => row(`${number}.* ${testee.categories[number]}`, ids)),
  row('**all**', ids)
]
const notable = ids.filter(id => verdict(without[id]) !== 'OK' || differs(id))
if (notable.length > 0) {
  lines.push('', '| case with a verdict other than OK | without the gateway | with the gateway |', '|---|---|---|')
  for (const id of notable) lines.push(`| ${id} | ${verdict(without[id])} | ${verdict(withGateway[id])} |`)
}
const bar = known.autobahn[testee.version]
const passed = ids.filter(id => passes(withGateway[id])).length
if (bar && cases[0] === '*') {
  const [casesMin, passedMin] = [bar.cases - excluded.length, bar.passed - excluded.length]
  if (ids.length < casesMin) problems.push(`${ids.length} cases ran, expected ${casesMin}`)
  if (passed < passedMin) problems.push(`${passed} cases pass with the gateway, expected at least ${passedMin}`)
}
finish('autobahn', lines, problems, option(options, '--write'))
