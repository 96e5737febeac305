import { Deferred, Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { sessionFile } from "../support/sessions.ts"
import { assert, describe, expect, it } from "../support/vitest.ts"
import { program, run } from "./program.ts"
import * as Tmux from "./tmux.ts"

/** `palimpsest chat` as it is built, on a real terminal and in a pipe, against a Gemini API on loopback. */

// --- the server -----------------------------------------------------------------------------------------------------------

interface Body {
  readonly contents: ReadonlyArray<{
    readonly role: string
    readonly parts: ReadonlyArray<{ readonly text?: string }>
  }>
  readonly systemInstruction?: unknown
}
const bodyOf = ({ body }: FakeGemini.FakeRequest): Body => JSON.parse(JSON.stringify(body))
const messagesOf = (request: FakeGemini.FakeRequest, role = "user") =>
  bodyOf(request)
    .contents.filter((content) => content.role === role)
    .map(({ parts }) => parts.map(({ text }) => text ?? "").join(""))
    // What opens each request is nobody's message.
    .filter((text) => !text.includes("<session_context>"))
const lastOf = (request: FakeGemini.FakeRequest) => messagesOf(request).at(-1) ?? ""
const isTitle = (request: FakeGemini.FakeRequest) =>
  JSON.stringify(bodyOf(request).systemInstruction ?? "").includes("You write titles for conversations")

/** An honest count, so that what is learned from it is true. */
const sizeOf = (request: FakeGemini.FakeRequest) => Math.ceil(JSON.stringify(bodyOf(request).contents ?? []).length / 4)

const usageOf = (request: FakeGemini.FakeRequest) => {
  const size = sizeOf(request)
  return { promptTokenCount: size, candidatesTokenCount: 5, totalTokenCount: size + 5 }
}

const section = (name: string, body: string) => `<${name}>\n- ${body}\n</${name}>`
const snapshot = `<state_snapshot>${[
  "overall_goal",
  "active_constraints",
  "key_knowledge",
  "artifact_trail",
  "file_system_state",
  "recent_actions",
  "task_state"
]
  .map((name) => section(name, "the words were said"))
  .join("")}</state_snapshot>`

/** The time of day stands in a snapshot, and counts a token more or less. */
const withoutCounts = (screens: string): string =>
  screens
    .replace(/(Compressed from [\d,]+ to|snapshot of|gemini-2\.5-flash ·) \d{3}(?= tokens| of 5,000)/g, "$1 N")
    .replace(/(Compressed from [\d,]+ to N tokens \()\d+/g, "$1N")
    .replace(/\$0\.\d{4}/g, "$0.0000")
    .replace(/compression: from \d{3} to/g, "compression: from N to")
    .replace(/2 calls of [\d,]+ tokens/g, "2 calls of N tokens")

const words = (count: number) =>
  Array.from({ length: count }, (_, index) => `Line ${index} of a long answer, with words in it.`).join("\n")

const document = `# Heading

A paragraph with **bold**, *italic* and \`code\` that is long enough to be wrapped on any of these screens, and with a
[link](https://example.com/).

- one, which is long enough that it hangs on a narrow screen
  - nested
- two

\`\`\`ts
export const add = (one: number, other: number) => one + other
\`\`\`

| name | value |
|------|------:|
| view | 12 |

> quoted

中文没有空格，所以必须在任何字符之间换行。这是一个很长的句子。😀
`

interface Behaviour {
  /** What is answered to a message; undefined: it is said again. */
  readonly answer?: (text: string, request: FakeGemini.FakeRequest) => FakeGemini.Answer | undefined
  readonly title?: FakeGemini.Answer
  readonly summary?: () => FakeGemini.Answer
}

const said = (text: string, request: FakeGemini.FakeRequest, finishReason = "STOP"): FakeGemini.Answer => {
  const usage = usageOf(request)
  return FakeGemini.sse(
    ...(text.match(/[^]{1,30}/g) ?? []).map((piece) =>
      FakeGemini.response([{ text: piece }], { finishReason: null, usage })
    ),
    FakeGemini.response([{ text: "" }], { finishReason, usage })
  )
}
const part = (text: string) => FakeGemini.event(FakeGemini.response([{ text }], { finishReason: null }))
const last = (text: string) => FakeGemini.event(FakeGemini.response([{ text }]))

const serve = ({ answer, summary, title }: Behaviour = {}) =>
  FakeGemini.make((request) => {
    const size = sizeOf(request)
    if (request.method === "countTokens") return FakeGemini.tokens(size)
    if (isTitle(request)) return title ?? FakeGemini.json(FakeGemini.response([{ text: "A talk about tests" }]))
    if (request.method === "generateContent") {
      return summary?.() ?? FakeGemini.json(FakeGemini.response([{ text: snapshot }], { usage: usageOf(request) }))
    }
    const text = lastOf(request)
    return (
      answer?.(text, request) ??
      (text.startsWith("tell me more")
        ? said(words(150), request)
        : FakeGemini.sse(FakeGemini.response([{ text: `You said: ${text}` }], { usage: usageOf(request) })))
    )
  })

/** The messages of the requests that were no titles, counts and summaries. */
const turnsOf = (fake: FakeGemini.FakeGemini) =>
  Effect.map(fake.requests, (all) =>
    all.filter(({ method }) => method === "streamGenerateContent").map((one) => messagesOf(one))
  )
const summariesOf = (fake: FakeGemini.FakeGemini) =>
  Effect.map(fake.requests, (all) => all.filter((one) => one.method === "generateContent" && !isTitle(one)))

// --- the program ----------------------------------------------------------------------------------------------------------

/** A home folder. The instruction would fill the windows that are small for a test's sake. */
const homeOf = Effect.fnUntraced(function* (name: string, settings?: object) {
  const { folder } = yield* program
  const home = path.join(folder, `chat-${name}`)
  mkdirSync(home, { recursive: true })
  writeFileSync(
    path.join(home, "settings.json"),
    JSON.stringify({ prompt: { size: "none" }, terminal: { bellAfter: 0 }, ...settings })
  )
  return home
})

const environment = (home: string, fake?: FakeGemini.FakeGemini) => ({
  PALIMPSEST_HOME: home,
  ...(fake === undefined ? {} : { GEMINI_API_KEY: "AIza-not-a-real-key", GOOGLE_GEMINI_BASE_URL: fake.url })
})

interface Place {
  readonly home: string
  readonly fake?: FakeGemini.FakeGemini
  readonly args?: ReadonlyArray<string>
  /** Without its name the command is the one that a person at a terminal gets. */
  readonly isUnnamed?: boolean
  readonly width?: number
  readonly height?: number
  readonly env?: Readonly<Record<string, string>>
}

/** A chat on a screen. When it has ended its status is shown, and whether the terminal takes whole lines again. */
const chat = Effect.fnUntraced(function* ({
  args = [],
  env,
  fake,
  height = 50,
  home,
  isUnnamed = false,
  width = 80
}: Place) {
  const { bundle } = yield* program
  const shell = `"$@"; echo "status $?"; stty -a | tr ' ;' '\\n\\n' | grep -x -- '-\\{0,1\\}icanon'`
  return yield* Tmux.start({
    command: ["sh", "-c", shell, "sh", process.execPath, bundle, ...(isUnnamed ? [] : ["chat"]), ...args],
    width,
    height,
    cwd: home,
    env: { ...environment(home, fake), ...env }
  })
})

const rows = Effect.fnUntraced(function* (home: string) {
  const { stdout } = yield* run(["sessions", "list", "--json"], { env: environment(home) })
  const found: ReadonlyArray<{
    readonly id: string
    readonly title: string | null
    readonly model: string | null
    readonly inUse: { readonly pid: number } | null
  }> = JSON.parse(String(stdout))
  return found
})
const only = Effect.fnUntraced(function* (home: string) {
  const [row, ...others] = yield* rows(home)
  if (row === undefined || others.length > 0) return yield* Effect.die(new Error("one session was expected"))
  return row
})

const terminal = needs("tmux")

terminal("a chat on a terminal", () => {
  it.live("streams the answer; Ctrl+C cancels only the current turn", function* () {
    const gate = yield* Deferred.make<void>()
    const summarizing = yield* Deferred.make<void>()
    const fake = yield* serve({
      answer: (text) => {
        if (text === "stream") {
          return [
            FakeGemini.streamHead,
            part("# Title\n\nsome **bold** words "),
            FakeGemini.wait(Deferred.await(gate)),
            last("and more")
          ]
        }
        if (text === "hold") return [FakeGemini.streamHead, part("I begin and then "), FakeGemini.stall]
        if (text === "busy") return FakeGemini.failure(503, "overloaded", { retryAfter: "300" })
        return undefined
      },
      summary: () => [FakeGemini.wait(Deferred.succeed(summarizing, undefined)), FakeGemini.stall]
    })
    const home = yield* homeOf("cancel")
    const { press, prompt, say, type, until } = yield* chat({ home, fake })
    yield* prompt()

    // A turn is rendered while it comes, and what is typed meanwhile is the next message.
    yield* say("stream", "some bold")
    yield* say("typed ahead")
    yield* Deferred.succeed(gate, undefined)
    const streamed = yield* until("You said: typed ahead")
    assert.include(streamed, "> stream\nTitle\n\nsome bold words and more\n\n> typed ahead\n")
    yield* prompt()

    // A turn is cancelled; its message is edited and sent, and nobody has heard of the first. What was typed for after
    // it is shown below the answer, comes back behind it, and is not sent.
    yield* say("hold", "I begin and")
    yield* say("next")
    yield* type("later")
    const ahead = yield* until("> later")
    assert.match(
      ahead,
      /\nI begin and then\n\n. answering · [^\n]*Esc cancels\nat the next step: next\n↑ takes back\n[^]*\n> later$/
    )
    yield* press("C-c")
    const cancelled = yield* prompt("hold\n  next\n  later")
    assert.notInclude(cancelled, "You said: next")
    yield* press(..." next later".split("").map(() => "BSpace"))
    yield* prompt("hold")
    yield* say(" it", "You said: hold it")
    assert.deepStrictEqual(
      (yield* turnsOf(fake)).at(-1)?.filter((text) => text.startsWith("hold")),
      ["hold it"]
    )

    // A pause before the next attempt.
    yield* prompt()
    yield* say("busy", "retrying in 300 s.")
    yield* press("C-c")
    yield* prompt("busy")
    yield* press("C-c")
    yield* prompt()

    // A compression.
    yield* say("/compress")
    yield* Deferred.await(summarizing)
    yield* press("Escape")
    yield* until("> /compress\nCancelled. The conversation is unchanged.")
    for (const { index } of yield* summariesOf(fake)) assert.isFalse(yield* fake.closed(index))
    yield* prompt()
    yield* say("after all", "You said: after all")
    const heard = (yield* turnsOf(fake)).at(-1)
    assert.deepStrictEqual(heard?.slice(-4), ["stream", "typed ahead", "hold it", "after all"])
    yield* prompt()

    // Leaving.
    yield* press("C-c")
    yield* until(/\n> +press Ctrl\+C again to leave$/)
    yield* press("C-c")
    const ended = yield* until(/^-?icanon$/m)
    const { id } = yield* only(home)
    const name = id.slice(0, 18)
    assert.include(ended, `To continue:\n  palimpsest -r ${name}\nstatus 0\nicanon`)

    // The command that was told goes on with it, and the messages can be recalled.
    const again = yield* chat({ home, fake, args: ["-r", name] })
    yield* again.until(/Resumed "A talk about tests"\.\n\n[^\n]*gemini-2\.5-flash · [1-9][\d,]*k? of /)
    yield* again.press("Up")
    yield* again.prompt("after all")
  })

  it.live("runs commands, and resumes a session", function* () {
    const fake = yield* serve()
    const home = yield* homeOf("commands")
    const { ask, capture, clipboard, press, prompt, say, type, until } = yield* chat({ home, fake, height: 100 })
    yield* prompt()

    yield* say("!echo one; exit 3", /✗ echo one; exit 3 · exit code 3\n {2}one\n[^]*next message\?/)
    yield* say("maybe", /"maybe" is not an answer; type y or n\.[^]*\nadd\?$/)
    yield* press("y")
    yield* until(/> \$ echo one; exit 3\n {2}one\n {2}exit code 3$/)
    yield* press("C-c")
    assert.deepStrictEqual(yield* fake.requests, [])

    // What is a command, and what is none.
    yield* say("/contetx", "Unknown command /contetx. Did you mean /context? /help lists all commands.")
    yield* prompt("/contetx")
    yield* press("C-c")
    yield* ask("//comment", "You said: /comment")
    yield* type("/con")
    yield* until("→ /context")
    yield* press("Tab")
    yield* until("> /context")
    yield* press("Enter")
    yield* until("1,048,576 tokens\n  | 50 %")
    yield* prompt()

    // Compressing, with what matters; again at once there is nothing to pay for.
    yield* ask("tell me more", "Line 149")
    const compressed = yield* say("/compress the wooden spoon", /Compressed from ([\d,]+) to [\d,]+ tokens/)
    assert.match(compressed.replaceAll("\n", " "), /It took 2 calls .*\/undo reverses it\./)
    const summaries = yield* summariesOf(fake)
    assert.include(JSON.stringify(summaries[0]?.body), "the wooden spoon")
    yield* prompt()
    yield* say("/recall ^/comment")
    const [, handle = ""] =
      /(h_\w+) {2}e\d+ {2}[^\n]* {2}user\n {2}1: \/comment\n/.exec(yield* until("  1: /comment\n")) ?? []
    yield* ask(`/recall ${handle}`, `> /recall ${handle}\n/comment\n`)
    // The rest.
    yield* say("/copy", "Copied the last answer to the clipboard.")
    assert.include(yield* clipboard, "Line 149 of a long answer")
    yield* say("/model gemma-4-31b", "The model is now gemma-4-31b, with a window of 256,000 tokens.")
    yield* say("/sessions", /A talk about tests +just now +this one/)
    const { id } = yield* only(home)
    yield* say(`/resume ${id.slice(0, 8)}`, "You are already in this session.")
    yield* press("C-l")
    yield* ask("/clear", /· new session[^\n]*\n>/)
    assert.include(yield* capture, `palimpsest -r ${id.slice(0, 18)}\n`)
    yield* ask("another talk", "You said: another talk")
    yield* say("/sessions", /2 {2}A talk about tests/)

    // Back, and it is as it was.
    yield* say(`/resume ${id}`, 'Resumed "A talk about tests".')
    const resumed = yield* until(/gemma-4-31b · [1-9][^\n]+A talk about tests[^\n]*\n>$/)
    assert.notMatch(resumed, /gemma-4-31b · 0 of/)
    yield* press("Up", "Up")
    yield* prompt("/sessions")
    yield* press("C-c", "C-d")
    yield* until("status 0")

    // The command that was told on leaving, by another program.
    const again = yield* run(["chat", "--resume", id], { input: "are you there?\n", env: environment(home, fake) })
    assert.deepStrictEqual([again.status, String(again.stdout)], [0, "You said: are you there?\n"])
    assert.strictEqual((yield* rows(home)).find((row) => row.id === id)?.title, "A talk about tests")
  })

  it.live("SIGHUP during a turn exits with 129 and leaves the terminal and the session intact", function* () {
    const fake = yield* serve({
      answer: (text) =>
        text === "hold" ? [FakeGemini.streamHead, part("I begin and then "), FakeGemini.stall] : undefined
    })
    const home = yield* homeOf("signal")
    const { ask, prompt, say, until } = yield* chat({ home, fake })
    yield* prompt()
    yield* ask("hello", "You said: hello")
    yield* say("hold", "I begin and")
    const { id, inUse } = yield* only(home)
    // Meanwhile nobody else may write it.
    const second = yield* run(["chat", "--resume", id], { input: "hello\n", env: environment(home, fake) })
    assert.strictEqual(second.status, 1)
    assert.include(second.stderr, `session ${id} is in use by process ${inUse?.pid}`)
    const other = yield* run(["chat"], { input: `/resume ${id}\n`, env: environment(home, fake) })
    assert.strictEqual(
      other.stderr,
      `That session is in use by process ${inUse?.pid}. End that process, or choose another session.\n`
    )
    process.kill(inUse?.pid ?? process.pid, "SIGHUP")
    yield* until("status 129\nicanon")
    assert.isNull((yield* only(home)).inUse)
    const third = yield* run(["chat", "--resume", id], { input: "again\n", env: environment(home, fake) })
    assert.deepStrictEqual([third.status, String(third.stdout)], [0, "You said: again\n"])
    assert.deepStrictEqual((yield* turnsOf(fake)).at(-1)?.slice(-2), ["hello", "again"])
  })

  for (const width of [40]) {
    // A screen that is meant to look different now is taken again: `vitest run test/cli/chat.e2e.test.ts -u`, and looked at.
    it.live(`matches the recorded screen on ${width} columns`, function* () {
      const fake = yield* serve({
        answer: (text, request) => (text === "show all" ? said(document, request) : undefined),
        title: FakeGemini.failure(500, "no title today")
      })
      const home = yield* homeOf(`screens-${width}`, { window: 5_000 })
      const { ask, paste, press, prompt, say, until } = yield* chat({
        home,
        fake,
        args: ["--no-tools"],
        width,
        height: 90
      })
      const taken: Array<string> = []
      /** Keeps what is shown once the status line has the share of the window that is in use, and wipes it. */
      const take = (name: string, share: number) =>
        Effect.gen(function* () {
          const status = new RegExp(`[ (]${share} %[^\\n]* · asks first[^\\n]*\\n>[^\\n]*$`)
          const shown = (yield* until((screen) => Tmux.isIdle(screen) && status.test(screen)))
            .replace(/\d\.\d kB/g, "1.0 kB")
            .replace(
              /[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12}/g,
              "00000000-0000-7000-8000-000000000000"
            )
          taken.push(`===== ${name}\n${shown}\n`)
          yield* press("C-l")
          yield* until((screen) => screen.split("\n").length === 3)
        })
      yield* prompt()
      yield* say("show all", /😀[^]*\n>$/)
      yield* take("the start, and an answer", 1)
      yield* say("/help", /Ctrl\+C[^]*\n>$/)
      yield* take("/help", 1)
      yield* say("/stats", /cost[^]*\n>$/)
      yield* say("/sessions", /Updated[^]*\n>$/)
      yield* take("/stats and /sessions", 1)
      yield* ask("tell me more", /Line 149[^]*\n>$/)
      yield* press("C-l")
      yield* until((screen) => /^\n[^\n]+\n>$/.test(screen))
      yield* say("/context", /free[^]*\n>$/)
      yield* take("/context", 36)
      yield* say("/compress", /Compressed from[^]*\n>$/)
      yield* say("/undo", /Undid the last[^]*\n>$/)
      yield* take("a compression, taken back", 36)
      yield* paste("far too many words ".repeat(2_000).trim())
      yield* press("Enter")
      yield* until(/Nothing was sent[^]*\n> \[paste #/)
      yield* take("a message that does not fit", 36)
      yield* Effect.promise(() =>
        expect(withoutCounts(taken.join("\n"))).toMatchFileSnapshot(
          path.join(import.meta.dirname, "screens", `chat-${width}.txt`)
        )
      )
      // A title that failed changes nothing: the session is called by its first words.
      const { stdout } = yield* run(["sessions", "list"], { env: environment(home) })
      assert.include(String(stdout), "show all")
      assert.isNull((yield* only(home)).title)
    })
  }
})

describe("a chat on a pipe", () => {
  it.effect("exits with 1 and prints one line when the last message gets no answer", function* () {
    const fake = yield* serve({
      answer: (text) => (text === "two" ? FakeGemini.failure(400, "I do not like this.") : undefined)
    })
    const home = yield* homeOf("unanswered")
    const ended = yield* run(["chat"], { input: "one\ntwo\n", env: environment(home, fake) })
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [1, "You said: one\n"])
    assert.match(ended.stderr, /^[^\n]*I do not like this[^\n]*\n$/)
    const again = yield* run(["chat", "--continue"], { input: "two\nthree\n", env: environment(home, fake) })
    assert.deepStrictEqual([again.status, String(again.stdout)], [0, "You said: three\n"])
  })

  it.effect("exits with two messages when neither the given session nor the one before can be opened", function* () {
    const home = yield* homeOf("stuck")
    const fake = yield* serve({
      answer: () => {
        // Somebody breaks the settings while the answer is on its way.
        writeFileSync(path.join(home, "settings.json"), "{bad")
        return undefined
      }
    })
    const ended = yield* run(["chat"], { input: "one\n/clear\ntwo\n", env: environment(home, fake) })
    assert.deepStrictEqual([ended.status, String(ended.stdout)], [2, "You said: one\n"])
    assert.strictEqual(ended.stderr.trimEnd().split("\n").length, 2, ended.stderr)
  })

  it.effect("asks about a recording in a single run, without suggesting to resume it", function* () {
    const home = yield* homeOf("recorded")
    const recording = sessionFile("claude-code-tools")
    const ended = yield* run(["chat", "--model", `replay:${recording}`], {
      input: "start\n/cost\n/stats\n/quit\n",
      env: environment(home)
    })
    assert.strictEqual(ended.status, 0)
    assert.include(ended.stderr, "A recording answers: nothing was spent.")
    assert.notInclude(ended.stderr + ended.stdout, "$")
    assert.strictEqual((yield* only(home)).model, "gemini-2.5-flash")
  })

  it.effect("ends quietly when the reader closes the pipe, and keeps the answers so far", function* () {
    const fake = yield* serve()
    const home = yield* homeOf("hang-up")
    const { status, stderr } = yield* run(["chat"], {
      input: "tell me more\ntwo\nthree\n",
      env: environment(home, fake),
      hangUp: true
    })
    assert.deepStrictEqual([status, stderr], [0, ""])
    assert.isNull((yield* only(home)).inUse)
  })
})
