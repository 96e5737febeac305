import { Effect, type Scope } from "effect"
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import path from "node:path"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { listening } from "../support/loopback.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { conversationIn } from "./conversation.ts"
import { type Around, type Ended, example, program, run } from "./program.ts"

/**
 * Bad input: whatever is wrong with the disk, the network or the answer, `ask` ends with one line that says what to
 * do and the status for it, the session is what it was, and the next `ask` goes on with it.
 */

const key = "AIza-not-a-key"
const said = (text: string, options?: FakeGemini.ResponseOptions) => FakeGemini.response([{ text }], options)
const piece = (text: string) => said(text, { finishReason: null })
const whole = (text: string) => FakeGemini.sse(said(text))
const page = "<!doctype html>\n<html><body><h1>Log in to the Wi-Fi</h1></body></html>\n"
const html = (status: number): FakeGemini.Answer => [
  FakeGemini.head(status, { "content-type": "text/html" }),
  FakeGemini.write(page)
]
const cut: FakeGemini.Answer = [FakeGemini.streamHead, FakeGemini.event(piece("Forty")), FakeGemini.drop]

interface Own {
  readonly home: string
  readonly cwd: string
  /** Of the session. */
  readonly log: string
}

/** A conversation in which the second of three questions goes wrong. */
interface Case {
  readonly name: string
  /** What the second question gets, at its first, second, … attempt; the last of them for all that follow. */
  readonly answers?: ReadonlyArray<FakeGemini.Answer>
  /** What is done to the files before the second question, and how it is put right before the third. */
  readonly damage?: { readonly make: (own: Own) => void; readonly mend: (own: Own) => void }
  /** What is different for the second question. */
  readonly around?: (fake: FakeGemini.FakeGemini) => Effect.Effect<Around, never, Scope.Scope>
  /** No file may grow beyond so many blocks, as on a disk that is full. */
  readonly blocks?: number
  /** 0: the second question and its answer are kept. */
  readonly status: number
  readonly stdout?: string
  /** The last line, without the program's name; absent: nothing is said. */
  readonly says?: RegExp
  /** How often is asked again before that, each time with a line that says so. */
  readonly retries?: number
}

const middle = ({ log }: Own) => {
  const [first, ...rest] = readFileSync(log, "utf8").split("\n")
  writeFileSync(log, [first, `{"_tag":"Answered","message":`, ...rest].join("\n"))
}
const withoutMiddle = ({ log }: Own) => {
  const [first, , ...rest] = readFileSync(log, "utf8").split("\n")
  writeFileSync(log, [first, ...rest].join("\n"))
}
const nothing = () => {}

/** A file where a folder should be: unlike a mode, that stops the superuser too. */
const fileInPlaceOf = (folder: (own: Own) => string): NonNullable<Case["damage"]> => ({
  make: (own) => {
    renameSync(folder(own), `${folder(own)}.aside`)
    writeFileSync(folder(own), "")
  },
  mend: (own) => {
    rmSync(folder(own))
    renameSync(`${folder(own)}.aside`, folder(own))
  }
})

/** A server that says these bytes to everything: the fake one sends text only. */
const bytes = (body: Uint8Array) => () =>
  Effect.map(
    listening((incoming, outgoing) => {
      incoming.resume().on("end", () => {
        outgoing.writeHead(200, { "content-type": "text/event-stream", connection: "close" })
        outgoing.end(body)
      })
    }),
    (at) => ({ env: { GOOGLE_GEMINI_BASE_URL: at } })
  )

const invalidUtf8 = Buffer.concat([
  Buffer.from(`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Forty`),
  Buffer.from([0xff, 0xc3]),
  Buffer.from(`two"}]},"finishReason":"STOP"}]}\r\n\r\n`)
])

const cases: ReadonlyArray<Case> = [
  // Those that are asked again first: they take their pauses at the same time.
  {
    name: "a page of HTML in place of the answer: what stands between us and the model",
    answers: [html(200)],
    status: 1,
    says: /answers with a web page, where its API was expected; check GOOGLE_GEMINI_BASE_URL/
  },
  {
    name: "the network is cut in the middle of the answer, and there again: the answer is printed once",
    answers: [cut, whole("Forty-two")],
    retries: 1,
    status: 0,
    stdout: "Forty-two\n"
  },
  {
    name: "the network is cut for good: Ctrl+C ends the pause, and nothing of the half answer is kept",
    answers: [cut],
    around: () => Effect.succeed({ signal: { name: "SIGINT", after: /retrying/ } }),
    retries: 1,
    status: 130
  },
  {
    name: "bytes in the stream that are no UTF-8: what can be read is kept",
    around: bytes(invalidUtf8),
    status: 0,
    stdout: "Forty\ufffd\ufffdtwo\n"
  },
  {
    name: "a session with a broken line in the middle",
    damage: { make: middle, mend: withoutMiddle },
    status: 2,
    says: /^session work, line 2: /
  },
  {
    name: "a session that ends in half a line, which is cut off and told",
    damage: { make: ({ log }) => writeFileSync(log, `{"_tag":"Answered","mess`, { flag: "a" }), mend: nothing },
    status: 0,
    stdout: "Forty-two\n",
    says: /half a line|cut off|incomplete/
  },
  {
    name: "a home that is not a folder",
    damage: fileInPlaceOf(({ home }) => home),
    status: 1,
    says: /home/
  },
  {
    name: "a folder of sessions that is none",
    damage: fileInPlaceOf(({ log }) => path.dirname(log)),
    status: 1,
    says: /sessions/
  },
  ...(process.platform === "win32"
    ? []
    : [
        {
          name: "a disk that is full in the middle of the line of a turn",
          answers: [whole("x".repeat(6_000))],
          blocks: 4,
          status: 1,
          stdout: `${"x".repeat(6_000)}\n`,
          says: /^session work could not be written, and is unchanged: the file reached the system's size limit/
        }
      ])
]

/** What makes a message one of programs and not of people. */
const jargon = /internal error|\n\s+at |Error\(|FileSystem\.|BadResource|Unknown:|WARN/

const askedAgain = /^palimpsest: [^\n]+; retrying in \d+ s\.$/

/** Runs the program under a shell's limit for the size of files. */
const limited = Effect.fnUntraced(function* (
  blocks: number,
  args: ReadonlyArray<string>,
  env: Around["env"],
  cwd: string
) {
  const { bundle } = yield* program
  return yield* Effect.callback<Ended>((resume) => {
    const child = execFile(
      "sh",
      ["-c", `ulimit -f ${blocks}; exec "$@"`, "sh", process.execPath, bundle, ...args],
      { cwd, env: { ...process.env, ...env }, encoding: "utf8" },
      (_, stdout, stderr) => resume(Effect.succeed({ status: child.exitCode, stdout: Buffer.from(stdout), stderr }))
    )
    child.stdin?.end()
    return Effect.sync(() => child.kill("SIGKILL"))
  })
})

const texts = (body: unknown): ReadonlyArray<string> => {
  const { contents = [] }: { contents?: ReadonlyArray<{ parts: ReadonlyArray<{ text?: string }> }> } = Object(body)
  // Each case has a home of its own, which the program tells the model.
  const typed = ({ text = "" }) => (text.startsWith(runtimeMark) ? "" : text)
  return conversationIn(contents).map(({ parts }) => parts.map(typed).join(""))
}

const args = (prompt: string) => ["ask", prompt, "--session", "work"]

/** A home in which the first question was asked: each case damages a copy. */
const asked = Effect.runSync(
  Effect.cached(
    Effect.gen(function* () {
      const { folder } = yield* program
      const home = path.join(folder, "bad-input", "home")
      const cwd = path.join(folder, "bad-input", "work")
      mkdirSync(home, { recursive: true })
      mkdirSync(cwd)
      // A long answer shall not be compressed before the last question, nor taken for a model that goes in circles.
      writeFileSync(path.join(home, "settings.json"), `{"window": 100000000, "loopDetection": false}`)
      const fake = yield* FakeGemini.make(() => whole("Forty-two"))
      yield* run(args("one"), {
        cwd,
        env: { PALIMPSEST_HOME: home, GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: fake.url }
      })
      return { home, cwd }
    }).pipe(Effect.scoped)
  )
)

describe.concurrent("bad input: prints one line, exits with the right status, loses nothing, and the session continues", () => {
  for (const [at, one] of cases.entries()) {
    it.effect(one.name, function* () {
      const { folder } = yield* program
      const first = yield* asked
      const { cwd } = first
      const home = path.join(folder, "bad-input", `home-${at}`)
      cpSync(first.home, home, { recursive: true })
      const own: Own = { home, cwd, log: path.join(home, "sessions", "work.jsonl") }
      let attempts = 0
      const fake = yield* FakeGemini.make(({ body }) => {
        if (texts(body).at(-1) !== "two") return whole("Forty-two")
        const { answers = [whole("Forty-two")] } = one
        attempts += 1
        return answers[attempts - 1] ?? answers.at(-1) ?? []
      })
      const env = { PALIMPSEST_HOME: home, GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: fake.url }

      const before = readFileSync(own.log, "utf8")
      one.damage?.make(own)
      const around: Around = one.around === undefined ? {} : yield* one.around(fake)
      const ended =
        one.blocks === undefined
          ? yield* run(args("two"), { ...around, cwd, env: { ...env, ...around.env } })
          : yield* limited(one.blocks, args("two"), env, cwd)
      one.damage?.mend(own)

      const isKept = one.status === 0
      assert.strictEqual(ended.status, one.status, ended.stderr)
      const printed = String(ended.stdout)
      assert.isTrue(printed === (one.stdout ?? ""), `printed ${printed.slice(0, 100)}`)
      assert.notMatch(ended.stderr, jargon)
      assert.notInclude(ended.stderr, key)
      const lines = ended.stderr.split("\n").slice(0, -1)
      const retries = lines.filter((line) => askedAgain.test(line))
      assert.strictEqual(retries.length, one.retries ?? 0, ended.stderr)
      const rest = lines.slice(retries.length)
      assert.strictEqual(rest.length, one.says === undefined ? 0 : 1, ended.stderr)
      if (one.says !== undefined) assert.match((rest[0] ?? "").replace(/^palimpsest: /, ""), one.says)

      const after = readFileSync(own.log, "utf8")
      assert.isTrue(isKept ? after.startsWith(before) && after !== before : after === before, "the log")
      const next = yield* run(args("three"), { cwd, env })
      assert.deepStrictEqual([next.status, String(next.stdout), next.stderr], [0, "Forty-two\n", ""])
      const kept = isKept ? ["two", (one.stdout ?? "").slice(0, -1)] : []
      const sent = texts((yield* fake.requests).at(-1)?.body)
      assert.strictEqual(sent.length, 3 + kept.length)
      assert.isTrue(
        ["one", "Forty-two", ...kept, "three"].every((text, index) => sent[index] === text),
        "what is sent"
      )
    })
  }
})

/** JSON that is nested deeper than the stack: in whatever it comes, one line says where, and nothing breaks. */
describe.concurrent("JSON nested 100,000 levels deep", () => {
  const levels = 100_000
  const deep = `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
  const at = `"timestamp":"2026-01-01T00:00:00.000Z"`
  const files: Readonly<Record<string, { readonly text: string; readonly line?: number }>> = {
    "contents.json": {
      text: `[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"x","args":${deep}}}]}]`
    },
    // Its last line has no end: it is too deep all the same, and not taken for one that broke off.
    "claude.jsonl": {
      text: `{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s",${at},"message":{"role":"user","content":"Hello"}}\n{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s",${at},"message":{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"t","name":"Read","input":${deep}}]}}`,
      line: 2
    },
    "palimpsest.jsonl": {
      text: `{"_tag":"Started","version":1,"session":"s","at":0,"estimator":"x"}\n{"_tag":"Appended","entry":{"id":"e1","content":{"role":"model","parts":[{"functionCall":{"name":"x","args":${deep}}}]},"tokens":[1],"handles":["h_aaaaaaaaaa"]}}\n`,
      line: 2
    }
  }
  const written = Effect.fnUntraced(function* (name: string, text: string) {
    const { folder } = yield* program
    const inside = path.join(folder, "deep")
    mkdirSync(inside, { recursive: true })
    const file = path.join(inside, name)
    writeFileSync(file, text)
    return file
  })
  const isRefused = ({ status, stderr, stdout }: Ended, says: RegExp) => {
    assert.deepStrictEqual([status, String(stdout)], [2, ""], stderr)
    assert.match(stderr, /^palimpsest: [^\n]+\n$/)
    assert.notMatch(stderr, jargon)
    assert.match(stderr, says)
  }

  it.effect.each(Object.entries(files))("in a conversation: %s", function* ([name, { line, text }]) {
    const file = yield* written(name, text)
    const place = line === undefined ? name : `${name}, line ${line}`
    const says = new RegExp(`${place}: [^\n]*deeper than 1,[01]00 levels \\(column [\\d,]+\\)`)
    isRefused(yield* run(["inspect", file]), says)
    isRefused(yield* run(["compress", file, "--force"]), says)
  })

  it.effect("on standard input, in a plan and in prices", function* () {
    isRefused(
      yield* run(["inspect", "-"], { input: files["contents.json"]?.text ?? "" }),
      /^palimpsest: standard input: /
    )
    const plan = yield* written("plan.json", `{"fingerprint":"x","plan":${deep}}`)
    isRefused(yield* run(["compress", example, "--apply", plan]), /plan\.json is not a plan/)
    const prices = yield* written("prices.json", `{"models":${deep}}`)
    isRefused(yield* run(["inspect", example, "--prices", prices]), /prices\.json: nested deeper/)
  })

  it.effect("in a model's answer, and in what a hook prints", function* () {
    const { folder } = yield* program
    const home = path.join(folder, "deep-home")
    mkdirSync(home, { recursive: true })
    const output = yield* written("hook.json", deep)
    const hooks = { BeforeAgent: [{ hooks: [{ type: "command", command: `cat ${output}` }] }] }
    writeFileSync(path.join(home, "settings.json"), JSON.stringify({ hooks, attempts: { answers: 1 } }))
    const answer = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"x","args":${deep}}}]},"finishReason":"STOP"}]}`
    const fake = yield* FakeGemini.make(() => [FakeGemini.streamHead, FakeGemini.write(`data: ${answer}\r\n\r\n`)])
    const env = { PALIMPSEST_HOME: home, GEMINI_API_KEY: key, GOOGLE_GEMINI_BASE_URL: fake.url }
    const { status, stderr, stdout } = yield* run(["ask", "x"], { env, cwd: home })
    assert.deepStrictEqual([status, String(stdout)], [1, ""], stderr)
    assert.notMatch(stderr, jargon)
    assert.match(stderr, /^palimpsest: [^\n]*nested deeper than 1,000 levels[^\n]*\n$/m)
  })
})
