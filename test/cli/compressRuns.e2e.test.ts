import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { program, run } from "./program.ts"

/** `compress` through the built program: what it asks a local server, what it tells hooks, and what comes of both. */

interface Report {
  readonly status: string
  readonly tokens: { readonly before: number; readonly after: number }
  readonly degraded: { readonly reason: string } | null
  readonly snapshot: string | null
  readonly history: ReadonlyArray<unknown>
}

const snapshot = "<state_snapshot>\n  <overall_goal>Find the fault.</overall_goal>\n</state_snapshot>"
const picture = { inlineData: { mimeType: "image/png", data: "aGVsbG8=" } }

const turns = (count: number, tail: ReadonlyArray<unknown> = []) => [
  ...Array.from({ length: count }, (_, n) => [
    { role: "user", parts: [{ text: `question ${n} about module_${n} ${"and more of it ".repeat(40)}` }] },
    { role: "model", parts: [{ text: `answer ${n}` }] }
  ]).flat(),
  { role: "user", parts: [{ text: "and the last one" }, ...tail] },
  { role: "model", parts: [{ text: "the end" }] }
]

/** A folder with a home, a working folder and a conversation in it. */
const scene = Effect.fnUntraced(function* (name: string, contents: ReadonlyArray<unknown>) {
  const { folder } = yield* program
  const root = path.join(realpathSync(folder), `compress-${name}`)
  const [home, work] = [path.join(root, "home"), path.join(root, "work")]
  mkdirSync(home, { recursive: true })
  mkdirSync(path.join(work, ".palimpsest"), { recursive: true })
  const file = path.join(work, "talk.json")
  writeFileSync(file, JSON.stringify(contents))
  return { home, work, file }
})

type Scene = Effect.Success<ReturnType<typeof scene>>

const compress = Effect.fnUntraced(function* (
  { file, home, work }: Scene,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>> = {}
) {
  const ended = yield* run(["compress", file, "--json", ...args], { cwd: work, env: { PALIMPSEST_HOME: home, ...env } })
  const report: Report | undefined = ended.stdout.length === 0 ? undefined : JSON.parse(String(ended.stdout))
  return { ...ended, report }
})

/** A server that writes this snapshot, and refuses to count where that is wanted. */
const serving = (canCount: boolean) =>
  FakeGemini.make((request) =>
    request.method === "countTokens"
      ? canCount
        ? FakeGemini.tokens(42)
        : FakeGemini.failure(400, "no count today")
      : FakeGemini.json(FakeGemini.response([{ text: snapshot }]))
  )

const keyed = (fake: FakeGemini.FakeGemini) => ({
  GEMINI_API_KEY: "AIza-not-a-key",
  GOOGLE_GEMINI_BASE_URL: fake.url
})

const methods = (fake: FakeGemini.FakeGemini) =>
  Effect.map(fake.requests, (requests) => requests.map(({ method }) => method))

const gemini = ["--strategy", "gemini", "--summarizer", "model", "--force", "--limit", "100k"]

describe("compress and the model", () => {
  it.live("strategy gemini: reports it, and changes nothing, when the API cannot count media", function* () {
    const fake = yield* serving(false)
    const contents = turns(12, [picture])
    const { report, status, stderr } = yield* compress(yield* scene("uncounted", contents), gemini, keyed(fake))
    assert.strictEqual(report?.status, "COMPRESSION_FAILED_TOKEN_COUNT_ERROR")
    assert.strictEqual(status, 1)
    assert.match(stderr, /^palimpsest: [^\n]*token[^\n]*\n$/)
    assert.strictEqual(report?.history.length, contents.length)
    assert.deepStrictEqual(yield* methods(fake), ["generateContent", "generateContent", "countTokens"])
  })

  it.live("--failed calls no model: gemini shortens outputs or does nothing, palimpsest uses code", function* () {
    const fake = yield* serving(true)
    const args = ["--summarizer", "model", "--failed", "--limit", "4k", "--threshold", "0.1"]
    const theirs = yield* compress(
      yield* scene("failed-gemini", turns(30)),
      [...args, "--strategy", "gemini"],
      keyed(fake)
    )
    assert.deepStrictEqual([theirs.status, theirs.report?.status], [0, "NOOP"])
    const ours = yield* compress(yield* scene("failed-own", turns(30)), args, keyed(fake))
    assert.deepStrictEqual(
      [ours.status, ours.report?.status, ours.report?.degraded?.reason],
      [0, "COMPRESSED", "failed before"]
    )
    assert.deepStrictEqual(yield* methods(fake), [])
    const large = [
      { role: "user", parts: [{ text: "read it" }] },
      { role: "model", parts: [{ functionCall: { id: "c1", name: "read_file", args: {} } }] },
      {
        role: "user",
        parts: [{ functionResponse: { id: "c1", name: "read_file", response: { output: "a line\n".repeat(40_000) } } }]
      },
      { role: "model", parts: [{ text: "read" }] }
    ]
    const shortened = yield* compress(
      yield* scene("failed-large", large),
      ["--summarizer", "model", "--failed", "--strategy", "gemini", "--limit", "100k"],
      keyed(fake)
    )
    assert.deepStrictEqual([shortened.status, shortened.report?.status], [0, "CONTENT_TRUNCATED"])
    assert.deepStrictEqual(yield* methods(fake), [])
  })
})

const hook = (command: string) => [{ hooks: [{ type: "command", name: "mine", command }] }]

describe("compress and hooks", () => {
  it.live("runs the user's PreCompress and PostCompress hooks in the current folder", function* () {
    const place = yield* scene("hooks", turns(30))
    const settings = {
      hooks: {
        PreCompress: hook(`pwd >> hooks.log; cat >> pre.json; echo '{"systemMessage": "the bridge is of oak"}'`),
        PostCompress: hook("cat >> post.json")
      }
    }
    writeFileSync(path.join(place.home, "settings.json"), JSON.stringify(settings))
    const { report, status, stderr } = yield* compress(place, ["--force", "--limit", "8k"])
    assert.include(stderr, "the bridge is of oak")
    assert.deepStrictEqual([status, report?.status], [0, "COMPRESSED"])
    assert.strictEqual(readFileSync(path.join(place.work, "hooks.log"), "utf8"), `${place.work}\n`)
    const pre = JSON.parse(readFileSync(path.join(place.work, "pre.json"), "utf8"))
    assert.deepStrictEqual([pre.hook_event_name, pre.trigger, pre.cwd], ["PreCompress", "manual", place.work])
    const post = JSON.parse(readFileSync(path.join(place.work, "post.json"), "utf8"))
    assert.deepStrictEqual(
      [post.status, post.tokens_before, post.tokens_after],
      [report?.status, report?.tokens.before, report?.tokens.after]
    )
  })

  it.live("runs a folder's hooks once it is trusted, including those of its Gemini CLI settings", function* () {
    const place = yield* scene("folder-hooks", turns(30))
    mkdirSync(path.join(place.work, ".gemini"))
    const log = path.join(place.work, "ran.log")
    writeFileSync(
      path.join(place.work, ".palimpsest", "settings.json"),
      JSON.stringify({ hooks: { PreCompress: hook("echo own >> ran.log") } })
    )
    writeFileSync(
      path.join(place.work, ".gemini", "settings.json"),
      JSON.stringify({ hooks: { PreCompress: hook("echo gemini >> ran.log") }, model: { compressionThreshold: 0.9 } })
    )
    yield* compress(place, ["--force", "--limit", "8k"])
    assert.isFalse(existsSync(log))
    const trusted = yield* run(["trust", place.work], { cwd: place.work, env: { PALIMPSEST_HOME: place.home } })
    assert.strictEqual(trusted.status, 0, trusted.stderr)
    yield* compress(place, ["--force", "--limit", "8k"])
    assert.deepStrictEqual(readFileSync(log, "utf8").trim().split("\n").sort(), ["gemini", "own"])
    const listed = yield* run(["config", "list", "--all"], { cwd: place.work, env: { PALIMPSEST_HOME: place.home } })
    assert.match(String(listed.stdout), /compressionThreshold +0\.9 +[^\n]*\.gemini\/settings\.json/)
    writeFileSync(path.join(place.work, ".gemini", "settings.json"), `{"model": {"compressionThreshold": "high"}}`)
    const broken = yield* compress(place, ["--force"])
    assert.strictEqual(broken.status, 2)
    assert.match(
      broken.stderr,
      /^palimpsest: [^\n]*\.gemini\/settings\.json, model\.compressionThreshold: expected [^\n]*\n$/
    )
  })
})
