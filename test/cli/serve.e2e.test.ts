import { Effect, Redacted, Schedule } from "effect"
import { execFile, spawn } from "node:child_process"
import { readFile, stat, writeFile } from "node:fs/promises"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { hashOf } from "../../src/services/serve/ApiTokens.ts"
import { needs } from "../support/machine.ts"
import { newFolder } from "../support/paths.ts"
import { sharedCode } from "../support/temporaryFolder.ts"
import { assert, it } from "../support/vitest.ts"
import { fits, open, sharesBrowser } from "./browserPage.ts"
import { program, run } from "./program.ts"
import { says } from "./scene.ts"

/** The server as a program, and its page in a browser. */

const folder = Effect.sync(() => newFolder("serve-"))

// The same words again and again would end the turn.
const steps = Array.from({ length: 60 }, (_, step) => `It goes on. Step ${step} is one of many.`).join(" ")
const answer = `**Well.** <img src=x onerror="document.title='hacked'">\n${steps}`

/** Starts the program with the answer of its model, and waits until it takes requests. It ends with the scope. */
const serving = Effect.fnUntraced(function* (
  answered: ReturnType<typeof says>,
  args: ReadonlyArray<string> = [],
  settings = "{}"
) {
  const home = yield* folder
  yield* Effect.promise(() => writeFile(path.join(home, "settings.json"), settings))
  const fake = yield* FakeGemini.make(({ method }) =>
    method === "streamGenerateContent" ? answered : FakeGemini.tokens(100)
  )
  const { bundle } = yield* program
  const child = yield* Effect.acquireRelease(
    Effect.sync(() =>
      spawn(process.execPath, [bundle, "serve", "--port", "0", "--json", ...args], {
        cwd: home,
        env: {
          PATH: process.env["PATH"] ?? "",
          ...sharedCode,
          PALIMPSEST_HOME: home,
          GEMINI_API_KEY: "AIza-not-a-real-key",
          GOOGLE_GEMINI_BASE_URL: fake.url
        }
      })
    ),
    (running) => Effect.sync(() => running.kill("SIGKILL"))
  )
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve))
  let errors = ""
  child.stderr.on("data", (data) => (errors += String(data)))
  const line = yield* Effect.promise(
    () =>
      new Promise<string>((resolve) => {
        let text = ""
        child.stdout.on("data", (data) => {
          text += String(data)
          if (text.includes("}")) resolve(text)
        })
        child.on("exit", () => resolve("{}"))
      })
  )
  const started: { readonly url: string; readonly token: string } = JSON.parse(line)
  return { ...started, child, ended, errors: () => errors, home }
})

needs("Chromium")("the page", () => {
  sharesBrowser()

  it.live("shows sessions, one live, and the text behind a handle, in all looks, by keyboard", function* () {
    const { child, ended, token, url } = yield* serving(says(answer))
    const { check, page } = yield* open(`${url}/#token=${token}`, { width: 1_100 })
    yield* Effect.promise(async () => {
      await page.getByRole("heading", { name: "Sessions" }).waitFor()
      assert.notInclude(page.url(), token)
      // By keyboard alone: a new session, a message.
      await page.getByRole("button", { name: "New session" }).focus()
      await page.keyboard.press("Enter")
      await page.getByText("There are no messages.").waitFor()
      await page.getByLabel("Message").focus()
      await page.keyboard.type("Tell me <b>more</b>")
      await page.keyboard.press("Control+Enter")
      // The browser renders new rows when they come into view: until then they have no inner text.
      await page.locator("#e1 pre", { hasText: "Tell me <b>more</b>" }).waitFor()
      await page.locator("#e2 pre", { hasText: "<img src=x onerror=" }).waitFor()
      assert.isTrue(await fits(page))
      // The text behind a handle, and a line of it.
      await page.locator("#e2 button.handle").focus()
      await page.keyboard.press("Enter")
      await page.locator("#excerpt", { hasText: "It goes on." }).waitFor()
      await page.getByLabel("Lines, such as 10-20").fill("1")
      await page.keyboard.press("Enter")
      await page.locator("#excerpt", { hasText: />$/ }).waitFor()
      await page.keyboard.press("Escape")
      assert.isFalse(await page.locator("dialog").isVisible())

      await page.emulateMedia({ colorScheme: "dark" })
      await page.setViewportSize({ width: 360, height: 800 })
      assert.isTrue(await fits(page))
      const dark = await page.evaluate<string>("getComputedStyle(document.body).backgroundColor")
      await page.getByRole("button", { name: "Light / dark" }).click()
      assert.notStrictEqual(await page.evaluate<string>("getComputedStyle(document.body).backgroundColor"), dark)
      await page.getByRole("link", { name: "All sessions" }).click()
      await page.locator("#rows tr").waitFor()
      assert.isTrue(await fits(page))
      assert.include(await page.locator("#rows").innerText(), "Tell me <b>more</b>")
      await check()
      assert.notInclude(await page.title(), "hacked")
      child.kill("SIGTERM")
    })
    assert.strictEqual(yield* Effect.promise(() => ended), 143)
  })
})

it.live("a server goes on when its terminal is closed, and reads the tokens of the settings again", function* () {
  const { child, ended, errors, home, token: made, url } = yield* serving([])
  child.kill("SIGHUP")
  assert.strictEqual((yield* Effect.promise(() => fetch(new URL("/health", url)))).status, 200)
  const statusOf = (token: string) =>
    Effect.promise(() => fetch(new URL("/v1/sessions", url), { headers: { authorization: `Bearer ${token}` } })).pipe(
      Effect.map(({ status }) => status)
    )
  const until = (status: number) =>
    Effect.repeat(statusOf("new"), { until: (now) => now === status, schedule: Schedule.spaced("50 millis") })
  const settings = (text: string) => Effect.promise(() => writeFile(path.join(home, "settings.json"), text))
  const hash = hashOf(Redacted.make("new"))
  assert.strictEqual(yield* statusOf("new"), 401)
  yield* settings(JSON.stringify({ serve: { tokens: [{ tenant: "acme", hash }] } }))
  yield* until(200)
  // Settings that cannot be read revoke nothing.
  yield* settings("{")
  yield* Effect.repeat(Effect.sync(errors), {
    until: (now) => now.includes("the tokens stay as they were"),
    schedule: Schedule.spaced("50 millis")
  })
  assert.strictEqual(yield* statusOf("new"), 200)
  yield* settings("{}")
  yield* until(401)
  assert.strictEqual(yield* statusOf(made), 200)
  child.kill("SIGTERM")
  assert.strictEqual(yield* Effect.promise(() => ended), 143)
})

it.live("a log in JSON has one line for each request, and no words and no tokens", function* () {
  const word = "xylophone"
  const { child, ended, errors, token, url } = yield* serving(says(`The ${word}.`), ["--log-format", "json"])
  const ask = (method: string, place: string, body?: unknown, headers: Readonly<Record<string, string>> = {}) =>
    Effect.promise(async () => {
      const response = await fetch(new URL(place, url), {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      await response.text()
      return response.headers.get("x-request-id")
    })
  const made = yield* ask("POST", "/v1/sessions", { id: "one", title: word })
  const ids = [
    made,
    yield* ask("POST", "/v1/sessions/one/messages", { text: `Where is my ${word}?` }, { "x-request-id": "mine-1" }),
    yield* ask("GET", `/v1/sessions?search=${word}`),
    yield* ask("GET", `/v1/sessions/one/recall?pattern=${word}`),
    yield* ask("GET", `/v1/${word}`, undefined, { "x-request-id": `not ${word}` }),
    yield* ask("GET", "/v1/sessions", undefined, { authorization: `Bearer ${word}` })
  ]
  child.kill("SIGTERM")
  yield* Effect.promise(() => ended)
  const lines: ReadonlyArray<Readonly<Record<string, unknown>>> = errors()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
  for (const { level, message, time } of lines) {
    assert.isFinite(Date.parse(String(time)))
    assert.isString(level)
    assert.isString(message)
  }
  const requests = lines.filter(({ message }) => message === "request")
  assert.strictEqual(ids[1], "mine-1")
  assert.deepStrictEqual(
    requests.map(({ request }) => request),
    ids
  )
  const messages = "/v1/sessions/:id/messages"
  assert.deepStrictEqual(
    requests.map(({ method, route, status, tenant }) => [tenant, method, route, status]),
    [
      ["local", "POST", "/v1/sessions", 201],
      ["local", "POST", messages, 200],
      ["local", "GET", "/v1/sessions", 200],
      ["local", "GET", "/v1/sessions/:id/recall", 200],
      [null, "GET", null, 404],
      [null, "GET", "/v1/sessions", 401]
    ]
  )
  for (const { duration } of requests) assert.isAtLeast(Number(duration), 0)
  for (const secret of [word, token]) assert.notInclude(errors(), secret)
})

const root = path.join(import.meta.dirname, "../..")
const manualOf = Effect.promise(() => readFile(path.join(root, "docs/serve.md"), "utf8"))

it.live("the container of the manual installs the program, makes its user and the folder of its data", function* () {
  const manual = yield* manualOf
  const line = (instruction: string) => new RegExp(`^${instruction} (.*)$`, "m").exec(manual)?.[1] ?? ""
  const { name } = JSON.parse(yield* Effect.promise(() => readFile(path.join(root, "program/package.json"), "utf8")))
  const bin = yield* folder
  // What would change this machine says how it was called.
  for (const changing of ["npm", "useradd"]) {
    const script = `#!/bin/sh\necho ${changing} "$@"\n`
    yield* Effect.promise(() => writeFile(path.join(bin, changing), script, { mode: 0o755 }))
  }
  const data = path.join(bin, "data")
  const user = line("USER")
  const commands = line("RUN").replace(`--owner=${user}`, `--owner=${process.getuid?.()}`).replace(" /data", ` ${data}`)
  const env = { PATH: `${bin}:${process.env["PATH"]}` }
  const printed = yield* Effect.promise(
    () =>
      new Promise<string>((resolve, reject) => {
        execFile("sh", ["-c", commands], { env }, (error, text) => (error === null ? resolve(text) : reject(error)))
      })
  )
  assert.deepStrictEqual(printed.trim().split("\n"), [`npm install --global ${name}`, `useradd --create-home ${user}`])
  const { mode } = yield* Effect.promise(() => stat(data))
  assert.strictEqual(mode & 0o777, 0o700)
  assert.deepStrictEqual([line("ENV"), line("VOLUME"), line("EXPOSE")], ["PALIMPSEST_HOME=/data", "/data", "4400"])
})

const settingsWithToken = JSON.stringify({
  serve: { tokens: [{ tenant: "acme", hash: hashOf(Redacted.make("a token")) }] }
})

it.live("the container of the manual starts, and says when it is ready", function* () {
  const manual = yield* manualOf
  const words: ReadonlyArray<string> = JSON.parse(/^CMD (\[.*\])$/m.exec(manual)?.[1] ?? "[]")
  const check = /^HEALTHCHECK CMD (.*)$/m.exec(manual)?.[1] ?? ""
  assert.deepStrictEqual(words.slice(0, 2), ["palimpsest", "serve"])
  const { child, ended, url } = yield* serving([], words.slice(2), settingsWithToken)
  const healthy = (port: string) =>
    Effect.promise(
      () =>
        new Promise<boolean>((resolve) => {
          execFile("sh", ["-c", check.replace("4400", port)], (error) => resolve(error === null))
        })
    )
  assert.isTrue(yield* healthy(new URL(url).port))
  child.kill("SIGTERM")
  assert.strictEqual(yield* Effect.promise(() => ended), 143)
  assert.isFalse(yield* healthy(new URL(url).port))
})

it.live(
  "the unit of the manual starts the server, which a reload does not end, and ends as the unit expects",
  function* () {
    const manual = yield* manualOf
    const setting = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(manual)?.[1] ?? ""
    const [file, command, ...args] = setting("ExecStart").split(" ")
    assert.deepStrictEqual([file, command], ["/usr/bin/palimpsest", "serve"])
    assert.strictEqual(setting("Environment"), `PALIMPSEST_HOME=/var/lib/${setting("StateDirectory")}`)
    const { child, ended, url } = yield* serving([], args, settingsWithToken)
    const ready = Effect.promise(async () => (await fetch(`${url}/ready`)).status)
    assert.strictEqual(yield* ready, 200)
    child.kill("SIGHUP")
    assert.strictEqual(yield* ready, 200)
    child.kill("SIGTERM")
    assert.strictEqual(yield* Effect.promise(() => ended), Number(setting("SuccessExitStatus")))
  }
)

it.live("an address that other machines reach needs tokens in the settings, which the command makes", function* () {
  const { status, stderr } = yield* run(["serve", "--host", "0.0.0.0"])
  assert.strictEqual(status, 2)
  assert.include(String(stderr), "--new-token")
  const made = yield* run(["serve", "--new-token", "acme", "--json"])
  const { hash, tenant, token } = JSON.parse(String(made.stdout))
  assert.deepStrictEqual([tenant, hashOf(Redacted.make(token))], ["acme", hash])
})

it.live("a database that is not there is one line that names the flag", function* () {
  const { status, stderr } = yield* run(["serve", "--port", "0", "--store", "postgres://me@127.0.0.1:1/x"])
  assert.strictEqual(status, 1)
  assert.match(String(stderr), /^palimpsest: the database cannot be reached: .+; check --store\n$/)
})
