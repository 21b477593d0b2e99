// What the conformance scripts share: options, child processes that end with the script, a gateway, and sections of the page.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const START_MS_MAX = 60_000

const here = path.dirname(fileURLToPath(import.meta.url))
export const known = JSON.parse(fs.readFileSync(path.join(here, 'known-failures.json'), 'utf8'))

// Value of the option in these arguments, or undefined.
export const option = (options, name) => (options.includes(name) ? options[options.indexOf(name) + 1] : undefined)

// Removed, and every child killed, when the script ends.
export const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'flashweir-conformance-'))
const children = []
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  fs.rmSync(folder, { recursive: true, force: true })
})
// Without a handler a signal would skip the clean-up above.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => process.exit(1))

export function start (command, args, { cwd, env } = {}) {
  const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  child.text = ''
  child.errors = ''
  child.stdout.on('data', data => { child.text += data })
  child.stderr.on('data', data => { child.errors += data })
  child.on('error', error => { child.errors += `${error.message}\n` })
  return child
}

// Waits until `value` returns something: a server is ready when it has written its address.
export async function until (what, child, value) {
  const end = Date.now() + START_MS_MAX
  for (;;) {
    const found = value()
    if (found !== undefined) return found
    if (child.exitCode !== null || child.pid === undefined || Date.now() > end) {
      throw new Error(`${what} does not start:\n${child.text}${child.errors}`)
    }
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

// Waits for the end of a child, at most `msMax`.
export function ended (what, child, msMax) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what} is not over after ${msMax} ms`)), msMax)
    child.on('close', code => {
      clearTimeout(timer)
      resolve(code)
    })
  })
}

// A gateway with these lines of configuration, on ports that the system chooses: its ready file says which.
export async function startGateway (binary, lines) {
  const config = path.join(folder, 'flashweir.toml')
  const ready = path.join(folder, 'ready.json')
  fs.writeFileSync(config, ['listen.address = "127.0.0.1:0"', 'admin.address = "127.0.0.1:0"', ...lines, ''].join('\n'))
  const child = start(path.resolve(binary), ['run', '--config', config, '--ready-file', ready])
  return until('the gateway', child, () => {
    try {
      return JSON.parse(fs.readFileSync(ready, 'utf8'))
    } catch {
      return undefined
    }
  })
}

// Replaces what is between the markers of this name in the page.
export function writeSection (page, name, lines) {
  const [begin, end] = [`<!-- ${name}: begin -->`, `<!-- ${name}: end -->`]
  const text = fs.readFileSync(page, 'utf8')
  const [before, rest] = text.split(begin)
  if (rest === undefined || !rest.includes(end)) throw new Error(`${page}: no section ${begin} … ${end}`)
  fs.writeFileSync(page, `${before}${begin}\n${lines.join('\n')}\n${end}${rest.split(end)[1]}`)
}

// Prints the section, writes it where a page is named, and ends the script: 1 if there are problems.
export function finish (name, lines, problems, page) {
  console.log(lines.join('\n'))
  if (page) writeSection(page, name, lines)
  for (const problem of problems) console.error(`${name}: ${problem}`)
  process.exit(problems.length > 0 ? 1 : 0)
}
