// Turns the results that tests recorded into a section of the page: node results.mjs FILE SECTION [--write PAGE]
//
// A line of FILE is SUITE<TAB>PASSED<TAB>CASES (`record_result` of the test kit). Exit code 1: a suite has no result, or fewer cases ran or
// passed than known-failures.json says.
import fs from 'node:fs'
import { finish, known, option } from './suite.mjs'

const [file, section, ...options] = process.argv.slice(2)
if (!file || !section) {
  console.error('usage: node results.mjs FILE SECTION [--write PAGE]')
  process.exit(64)
}
const recorded = new Map(fs.readFileSync(file, 'utf8').split('\n').filter(Boolean).map(line => {
  const [suite, passed, cases] = line.split('\t')
  return [suite, { passed: Number(passed), cases: Number(cases) }]
}))
const page = option(options, '--write')
const problems = []
const lines = ['| suite | cases | passed | the others |', '|---|---:|---:|---|']
for (const [suite, bar] of Object.entries(known[section])) {
  const result = recorded.get(suite)
  if (result === undefined) {
    const problem = `${suite}: no result: it was skipped, or failed before its cases ran`
    // The gate goes on without a suite that its machine may lack, and says so; a page without its results is none.
    if (bar.mayBeMissing && !page) console.error(`${section}: ${problem}`)
    else problems.push(problem)
    lines.push(`| ${suite} | not run | | |`)
    continue
  }
  if (result.cases < bar.cases) problems.push(`${suite}: ${result.cases} cases ran, expected ${bar.cases}`)
  if (result.passed < bar.passed) problems.push(`${suite}: ${result.passed} cases pass, expected at least ${bar.passed}`)
  lines.push(`| ${suite} | ${result.cases} | ${result.passed} | ${result.passed < result.cases ? bar.why ?? '' : ''} |`)
}
finish(section, lines, problems, page)
