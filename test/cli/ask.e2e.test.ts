import { Deferred, Effect, Fiber, Schema } from "effect"
import { copyFileSync, mkdirSync, readFileSync, readdirSync, utimesSync, writeFileSync } from "node:fs"
import path from "node:path"
import { ChatEvent } from "../../src/domain/chat/ChatEvent.ts"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { needs } from "../support/machine.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { conversationIn } from "./conversation.ts"
import { type Around, type Ended, example, program, run } from "./program.ts"
import * as Tmux from "./tmux.ts"

/** `ask` against a Gemini API on loopback, as a user's shell runs it. */

const said = (text: string, options?: FakeGemini.ResponseOptions) => FakeGemini.response([{ text }], options)
const piece = (text: string) => said(text, { finishReason: null })
/** A provider that has every model. */
const anyModel = (name: string) => FakeGemini.description(name, 1_000_000, 8_192)
const answer = FakeGemini.sse(piece("Forty"), said("-two"))

/** A home and a working folder of this test's own. */
const folders = Effect.fnUntraced(function* (name: string, files: { readonly settings?: string } = {}) {
  const { folder } = yield* program
  const home = path.join(folder, `ask-${name}`, "home")
  const cwd = path.join(folder, `ask-${name}`, "work")
  mkdirSync(home, { recursive: true })
  mkdirSync(cwd, { recursive: true })
  if (files.settings !== undefined) writeFileSync(path.join(home, "settings.json"), files.settings)
  return { home, cwd }
})
interface Folders {
  readonly home: string
  readonly cwd: string
}

const asking = (
  fake: FakeGemini.FakeGemini,
  { cwd, home }: Folders,
  args: ReadonlyArray<string>,
  { env, ...around }: Around = {}
) =>
  run(args, {
    ...around,
    cwd,
    env: { PALIMPSEST_HOME: home, GEMINI_API_KEY: "AIza-not-a-key", GOOGLE_GEMINI_BASE_URL: fake.url, ...env }
  })

const seen = ({ status, stderr, stdout }: Ended) => [status, String(stdout), stderr]
const decodeEvent = Schema.decodeEffect(Schema.fromJsonString(Schema.toCodecJson(ChatEvent)))
const eventsOf = ({ stdout }: Ended) =>
  Effect.forEach(
    String(stdout)
      .split("\n")
      .filter((line) => line !== ""),
    (line) => decodeEvent(line)
  )
const messages = (request: FakeGemini.FakeRequest | undefined): unknown => {
  const { contents = [] }: { contents?: ReadonlyArray<unknown> } = Object(request?.body)
  return conversationIn(contents)
}
const user = (text: string) => ({ role: "user", parts: [{ text }] })
const sessionsIn = ({ home }: Folders) => {
  mkdirSync(path.join(home, "sessions"), { recursive: true })
  return readdirSync(path.join(home, "sessions")).filter((name) => name.endsWith(".jsonl"))
}

/** Seconds since 1970: in 2001. */
const longAgo = 1_000_000_000

describe("ask", () => {
  it.effect("prints only the answer on stdout, and keeps no session", function* () {
    const fake = yield* FakeGemini.make(FakeGemini.queue(answer))
    const own = yield* folders("plain")
    assert.deepStrictEqual(seen(yield* asking(fake, own, ["ask", "How many?"])), [0, "Forty-two\n", ""])
    const [request] = yield* fake.requests
    assert.deepStrictEqual(messages(request), [user("How many?")])
    assert.deepStrictEqual(sessionsIn(own), [])
  })

  it.effect.each([
    ["what is piped in alone", ["ask"], "How many?\n", "How many?"],
    ["what is piped in for -", ["ask", "-"], "How many?\n", "How many?"],
    ["a prompt, a blank line, and what is piped in", ["ask", "Explain"], "a\n\nb\n", "Explain\n\na\n\nb"]
  ] as const)("sends %s", function* ([, args, input, message]) {
    const fake = yield* FakeGemini.make(FakeGemini.queue(answer))
    const own = yield* folders("message")
    assert.strictEqual((yield* asking(fake, own, args, { input })).status, 0)
    assert.deepStrictEqual(messages((yield* fake.requests)[0]), [user(message)])
  })

  it.effect(
    "--resume with the id of an agent's session goes on with a copy, the next time with the same one",
    function* () {
      const fake = yield* FakeGemini.make(FakeGemini.queue(answer, answer))
      const own = yield* folders("foreign")
      const user = path.join(own.cwd, "user")
      const file = path.join(user, ".claude/projects/-p/491e126e-1e71-469c-ade2-fcc8af567c74.jsonl")
      mkdirSync(path.dirname(file), { recursive: true })
      copyFileSync(example, file)
      const env = { HOME: user, USERPROFILE: user, CLAUDE_CONFIG_DIR: "" }
      const first = yield* asking(fake, own, ["-r", "491e", "-p", "And now?"], { env })
      assert.deepStrictEqual([first.status, String(first.stdout)], [0, "Forty-two\n"])
      assert.include(first.stderr, `resuming a copy of the claude session; ${file} is unchanged\n`)
      const second = yield* asking(fake, own, ["ask", "--resume", "491e", "And then?"], { env })
      assert.match(second.stderr, /resuming your copy of the claude session, last changed just now\n/)
      assert.deepStrictEqual(sessionsIn(own).length, 1)
      const [one, other] = (yield* fake.requests).map((request) => JSON.stringify(messages(request)))
      assert.include(one, "fastest setup credo")
      assert.include(other, "And now?")
      const unknown = yield* asking(fake, own, ["ask", "-r", "0000", "x"], { env })
      assert.strictEqual(
        unknown.stderr,
        'palimpsest: no session 0000; "palimpsest sessions list" lists yours, "palimpsest find" those of all agents\n'
      )
    }
  )

  it.effect(
    "/resume in the chat copies an agent's session as -r does, with its title, and the copy has its own id",
    function* () {
      const fake = yield* FakeGemini.make(FakeGemini.queue())
      const own = yield* folders("foreign-chat")
      const user = path.join(own.cwd, "user")
      const file = path.join(user, ".claude/projects/-p/491e126e-1e71-469c-ade2-fcc8af567c74.jsonl")
      mkdirSync(path.dirname(file), { recursive: true })
      const title = {
        type: "custom-title",
        customTitle: "Linting beads",
        sessionId: "491e126e-1e71-469c-ade2-fcc8af567c74"
      }
      writeFileSync(file, `${readFileSync(example, "utf8").trimEnd()}\n${JSON.stringify(title)}\n`)
      const env = { HOME: user, USERPROFILE: user, CLAUDE_CONFIG_DIR: "" }
      const chat = yield* asking(fake, own, ["chat"], { env, input: "/resume 491e\n" })
      assert.include(chat.stderr, "resuming a copy of the claude session")
      assert.include(chat.stderr, 'Resumed "Linting beads"')
      const id = String((yield* asking(fake, own, ["sessions", "import", file], { env })).stdout).trim()
      const list = yield* asking(fake, own, ["sessions", "list"], { env })
      assert.strictEqual(String(list.stdout).match(/Linting beads/g)?.length, 2)
      const copy = path.join(own.home, "sessions", `${id}.jsonl`)
      const inspected = yield* asking(fake, own, ["inspect", copy, "--json"], { env })
      assert.strictEqual(JSON.parse(String(inspected.stdout)).session, id)
    }
  )

  it.effect("without a key, says how to get one and what works without, and leaves no session", function* () {
    const own = yield* folders("no-key")
    const { status, stderr, stdout } = yield* run(["ask", "x", "--session", "new"], {
      cwd: own.cwd,
      env: { PALIMPSEST_HOME: own.home }
    })
    assert.deepStrictEqual([status, String(stdout)], [1, ""])
    assert.match(
      stderr,
      /^[^\n]*aistudio\.google\.com\/apikey[^\n]*GEMINI_API_KEY[^\n]*OPENAI_API_KEY\n(?:[^\n]*Ollama[^\n]*\n)?[^\n]*without[^\n]*replay:FILE\n$/
    )
    assert.deepStrictEqual(sessionsIn(own), [])
  })

  it.effect("prints an answer that ends without a reason, with a note that it may be incomplete", function* () {
    const call = { functionCall: { id: "c", name: "list_directory", args: { dir_path: "." } } }
    const fake = yield* FakeGemini.make(
      FakeGemini.queue(
        FakeGemini.sse(FakeGemini.response([call])),
        FakeGemini.sse(said("Forty", { finishReason: null }))
      )
    )
    const own = yield* folders("unfinished-answer")
    const { status, stderr, stdout } = yield* asking(fake, own, ["ask", "x", "--json"])
    assert.strictEqual(status, 0)
    assert.deepInclude(JSON.parse(String(stdout)), { answer: "Forty", finishReason: "FINISH_REASON_UNSPECIFIED" })
    assert.match(stderr, /^palimpsest: the model gave no finish reason; the answer may be incomplete$/m)
  })

  it.effect("--json prints one document", function* () {
    const fake = yield* FakeGemini.make(FakeGemini.queue(answer))
    const own = yield* folders("json")
    const { status, stdout } = yield* asking(fake, own, ["ask", "x", "--json", "--session", "kept"])
    const { tokens, usage, ...document } = JSON.parse(String(stdout))
    assert.deepStrictEqual(document, {
      session: "kept",
      model: "gemini-2.5-flash",
      answer: "Forty-two",
      finishReason: "STOP",
      limit: 1_048_576,
      compressions: [],
      citations: [],
      calls: [],
      turns: 1,
      events: { ModelInfo: 1, Content: 2, Finished: 1 },
      error: null
    })
    assert.deepStrictEqual([status, tokens > 0, usage.prompt], [0, true, 10])
  })

  it.effect("--stream-json prints every event, one per line", function* () {
    const fake = yield* FakeGemini.make(FakeGemini.queue(answer))
    const ended = yield* asking(fake, yield* folders("stream-json"), ["ask", "x", "--stream-json"])
    const events = yield* eventsOf(ended)
    assert.deepStrictEqual(
      events.map(({ _tag }) => _tag),
      ["ModelInfo", "Content", "Content", "Finished"]
    )
    assert.deepStrictEqual([ended.status, ended.stderr], [0, ""])
  })

  it.effect("a failed turn exits with 1 and prints one line; --json has no answer and the reason", function* () {
    const fake = yield* FakeGemini.make(() => FakeGemini.keyInvalid)
    const own = yield* folders("fails")
    const plain = yield* asking(fake, own, ["ask", "x"])
    assert.deepStrictEqual([plain.status, String(plain.stdout)], [1, ""])
    assert.match(plain.stderr, /^palimpsest: the key is not accepted[^\n]*check GEMINI_API_KEY\n$/)
    const json = yield* asking(fake, own, ["ask", "x", "--json"])
    const { answer: none, error } = JSON.parse(String(json.stdout))
    assert.deepStrictEqual([json.status, none, error.reason], [1, null, "AuthenticationError"])
    const lines = yield* asking(fake, own, ["ask", "x", "--stream-json"])
    assert.deepStrictEqual([lines.status, (yield* eventsOf(lines)).at(-1)?._tag], [1, "Error"])
  })

  it.effect.each([
    [["--stream-json", "--session", "cut"], 'UserCancelled"}\n'],
    [["--json"], '"UserCancelled"'],
    [[], ""]
  ] as const)(
    "Ctrl+C exits with 130, closes the socket, and prints no part of the answer: %j",
    function* ([args, last]) {
      const fake = yield* FakeGemini.make(() => [FakeGemini.streamHead, FakeGemini.stall])
      const own = yield* folders("cancelled")
      const running = yield* Deferred.make<{ readonly kill: (signal: NodeJS.Signals) => void }>()
      const started = (child: { readonly kill: (signal: NodeJS.Signals) => void }) =>
        Deferred.doneUnsafe(running, Effect.succeed(child))
      const fiber = yield* Effect.forkChild(asking(fake, own, ["ask", "x", ...args], { started }))
      yield* fake.received(0)
      const child = yield* Deferred.await(running)
      child.kill("SIGINT")
      const { status, stderr, stdout } = yield* Fiber.join(fiber)
      assert.deepStrictEqual([status, stderr], [130, ""])
      assert.isFalse(yield* fake.closed(0))
      if (last === "") assert.strictEqual(String(stdout), "")
      else assert.include(String(stdout), last)
      if (args[0] === "--json") assert.isNull(JSON.parse(String(stdout)).answer)
      assert.deepStrictEqual(sessionsIn(own), [])
    }
  )

  it.effect("ends quietly with status 0 when the reader of the pipe closes it", function* () {
    const words = (n: number) => Array.from({ length: 1_500 }, (_, i) => `w${n * 7_919 + i * 31}`).join(" ")
    const long = Array.from({ length: 400 }, (_, n) => FakeGemini.event(piece(words(n))))
    const fake = yield* FakeGemini.make(() => [FakeGemini.streamHead, ...long, FakeGemini.stall])
    const ended = yield* asking(fake, yield* folders("gone"), ["ask", "x", "--stream-json"], { hangUp: true })
    assert.deepStrictEqual([ended.status, ended.stderr], [0, ""])
    assert.isFalse(yield* fake.closed(0))
  })

  it.effect("--session keeps the conversation; --resume and --continue continue it", function* () {
    const fake = yield* FakeGemini.make(() => answer, { describe: anyModel })
    const own = yield* folders("kept")
    yield* asking(fake, own, ["ask", "one", "--session", "work"])
    yield* asking(fake, own, ["ask", "two", "--resume", "1"])
    yield* asking(fake, own, ["ask", "three", "--continue"])
    yield* asking(fake, own, ["ask", "four", "--session", "work", "--model", "gemini-other"])
    yield* asking(fake, own, ["ask", "five", "--resume", "wor"])
    const requests = yield* fake.requests
    const model = { role: "model", parts: [{ text: "Forty-two" }] }
    const turns = (...prompts: ReadonlyArray<string>) => prompts.flatMap((text) => [user(text), model]).slice(0, -1)
    assert.deepStrictEqual(messages(requests[4]), turns("one", "two", "three", "four", "five"))
    const usual = "gemini-2.5-flash"
    assert.deepStrictEqual(
      requests.map((request) => request.model),
      [usual, usual, usual, "gemini-other", "gemini-other"]
    )
    assert.deepStrictEqual(sessionsIn(own), ["work.jsonl"])
  })

  it.effect("takes the model from flag, environment or settings, and reports a rejected key", function* () {
    const fake = yield* FakeGemini.make(() => answer, { describe: anyModel })
    const own = yield* folders("model", { settings: `{"model": "of-settings", /* typo */ "modle": "x",}` })
    const env = { PALIMPSEST_MODEL: "of-env" }
    const first = yield* asking(fake, own, ["ask", "x"])
    yield* asking(fake, own, ["ask", "x"], { env })
    yield* asking(fake, own, ["ask", "x", "--model", "of-flag"], { env })
    const requests = yield* fake.requests
    assert.deepStrictEqual(
      requests.map(({ model }) => model),
      ["of-settings", "of-env", "of-flag"]
    )
    assert.match(
      first.stderr,
      /^palimpsest: [^\n]*settings\.json: there is no setting modle \(did you mean model\?\); [^\n]*\n$/
    )
  })

  it.effect.each([
    [{ window: 12_000 }, [], 12_000],
    // Of what the settings say, a flag says otherwise.
    [{ window: 40_000, prompt: { size: "none" }, compressionThreshold: 0.9 }, ["--threshold", "20%"], 40_000]
  ] as const)("compresses a conversation that is too long, and reports it: %j", function* ([settings, flags, window]) {
    // The estimator says about 15,000 of the conversation; the API's count decides.
    const fake = yield* FakeGemini.make(({ body, method }) =>
      method === "countTokens" ? FakeGemini.tokens(Math.ceil(JSON.stringify(body).length / 4)) : answer
    )
    const own = yield* folders(`compressed-${window}`, { settings: JSON.stringify(settings) })
    yield* asking(fake, own, ["sessions", "import", example])
    const { status, stderr, stdout } = yield* asking(fake, own, ["ask", "x", "--json", "--continue", ...flags])
    const document = JSON.parse(String(stdout))
    assert.deepStrictEqual([status, document.answer, document.limit], [0, "Forty-two", window], stderr)
    assert.isAbove(document.compressions.length, 0)
    const [replaced, compressed] = stderr.split("\n")
    assert.match(replaced ?? "", /^palimpsest: this session used claude\S+, which needs ANTHROPIC_API_KEY; now gemini/)
    assert.match(compressed ?? "", /^palimpsest: Compressed to make room: from [\d,]+ to [\d,]+ tokens/)
  })

  it.effect("deletes sessions older than the user's settings allow, and reports it", function* () {
    const fake = yield* FakeGemini.make(() => answer)
    const own = yield* folders("retention", { settings: `{"sessionRetention": {"maxAge": "30d"}}` })
    yield* asking(fake, own, ["ask", "x", "--session", "old"])
    yield* asking(fake, own, ["ask", "x", "--session", "young"])
    const file = path.join(own.home, "sessions", "old.jsonl")
    utimesSync(file, longAgo, longAgo)
    const { status, stderr } = yield* asking(fake, own, ["ask", "x", "--session", "new"])
    assert.deepStrictEqual([status, stderr], [0, "palimpsest: 1 session was deleted, as sessionRetention says: old\n"])
    assert.deepStrictEqual(sessionsIn(own).sort(), ["new.jsonl", "young.jsonl"])
  })
})

const onTerminal = () => {
  const shown = Effect.fnUntraced(function* (fake: FakeGemini.FakeGemini, own: Folders) {
    const { bundle } = yield* program
    return yield* Tmux.start({
      // The screen of a program that has ended loses its first line to tmux; cat stays.
      command: ["sh", "-c", '"$@"; exec cat', "sh", process.execPath, bundle, "ask", "How many?"],
      cwd: own.cwd,
      width: 120,
      env: { PALIMPSEST_HOME: own.home, GEMINI_API_KEY: "AIza-not-a-key", GOOGLE_GEMINI_BASE_URL: fake.url }
    })
  })

  it.live("shows the answer as it streams, without terminal escapes", function* () {
    const seenFirst = yield* Deferred.make<void>()
    const fake = yield* FakeGemini.make(() => [
      FakeGemini.streamHead,
      FakeGemini.event(piece("Forty\u001b[2J\u0007 and ")),
      FakeGemini.wait(Deferred.await(seenFirst)),
      FakeGemini.event(said("two"))
    ])
    const screen = yield* shown(fake, yield* folders("terminal"))
    yield* screen.until("Forty\\u{1b}[2J")
    yield* Deferred.succeed(seenFirst, undefined)
    assert.match(yield* screen.until("two"), /^Forty\\u\{1b\}\[2J\\u\{7\} and two/)
  })

  it.live("leaves a discarded attempt on its own line, and begins the answer on the next", function* () {
    const empty = FakeGemini.sse(piece("void"), FakeGemini.response([], { finishReason: null }))
    const fake = yield* FakeGemini.make(FakeGemini.queue(empty, answer))
    const screen = yield* shown(fake, yield* folders("terminal-retry"))
    const shownAtEnd = yield* screen.until("Forty-two")
    assert.match(shownAtEnd, /^void\npalimpsest: [^;\n]+; retrying in 1 s\.\nForty-two/)
  })
}

needs("tmux")("ask on a terminal", onTerminal)
