import { Effect } from "effect"
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { root } from "../support/paths.ts"
import { rawStrings, sessionFile } from "../support/sessions.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { program, run } from "./program.ts"

interface Report {
  readonly status: string
  readonly outcome: { readonly _tag: string; readonly reason?: string; readonly stubborn?: ReadonlyArray<unknown> }
  readonly tokens: { readonly before: number; readonly after: number; readonly limit: number }
  readonly split: number
  readonly kept: number
  readonly keptEntries: ReadonlyArray<string>
  readonly degraded: unknown
  readonly elided: ReadonlyArray<{
    readonly entry: string
    readonly part: number
    readonly handle: string
    readonly file: string | null
    readonly tokensBefore: number
    readonly tokensAfter: number
  }>
  readonly snapshot: string | null
  readonly audit: { readonly anchors: number } | null
  readonly history: ReadonlyArray<{ readonly role: string; readonly parts: ReadonlyArray<{ readonly text?: string }> }>
}

const oneLine = /^palimpsest: [^\n]+\n$/

const folderFor = (name: string) =>
  Effect.map(program, ({ folder }) => {
    const own = path.join(folder, name)
    mkdirSync(own, { recursive: true })
    return own
  })

const report = Effect.fnUntraced(function* (args: ReadonlyArray<string>) {
  const { status, stderr, stdout } = yield* run(["compress", ...args, "--json"])
  const value: Report = JSON.parse(String(stdout))
  return { status, stderr, value }
})

/** A few elided parts that differ: the largest, the smallest, some in between. */
const sample = ({ elided }: Report) => {
  const bySize = [...elided].sort((a, b) => b.tokensBefore - a.tokensBefore)
  return [0, Math.floor(bySize.length / 2), bySize.length - 1].flatMap((at) => bySize[at] ?? [])
}

const recalled = Effect.fnUntraced(function* (file: string, handle: string) {
  // From another directory than the file's.
  const { status, stdout } = yield* run(["recall", file, handle], { cwd: "/" })
  assert.strictEqual(status, 0, `${file} ${handle}`)
  return stdout
})

describe("compress", () => {
  it.effect("shrinks to half of its tokens, or says that nothing is to be done", function* () {
    const file = sessionFile("claude-code-subagent")
    const whole = (yield* report([file, "--limit", "100M"])).value
    assert.strictEqual(whole.status, "NOOP")
    const limit = Math.floor(whole.tokens.before / 2)
    const { status, value } = yield* report([file, "--force", "--limit", String(limit)])
    assert.deepStrictEqual([status, value.status, value.kept], [0, "COMPRESSED", value.keptEntries.length])
    assert.isAtMost(value.tokens.after, limit)
    assert.strictEqual(value.tokens.before, whole.tokens.before)
    assert.isNotNull(value.snapshot)
  })

  it.effect("recalls dropped parts byte for byte from input and output, also after a second time", function* () {
    const name = "claude-code-subagent"
    const file = sessionFile(name)
    const folder = yield* folderFor("recall")
    const [log = "", contents = "", twice = ""] = ["once.jsonl", "once.json", "twice.jsonl"].map((to) =>
      path.join(folder, to)
    )
    const first = (yield* report([file, "--force", "--out", log])).value
    yield* report([file, "--force", "--out", contents])
    const second = (yield* report([log, "--force", "--out", twice])).value
    assert.deepStrictEqual([first.status, second.status], ["COMPRESSED", "COMPRESSED"])
    for (const { file } of first.elided) if (file !== null) assert.isTrue(existsSync(file), file)
    const raw = rawStrings(name)
    let texts = 0
    for (const { handle } of sample(first)) {
      const exact = yield* recalled(file, handle)
      for (const other of [log, contents, twice]) {
        assert.isTrue(exact.equals(yield* recalled(other, handle)), `${other} ${handle}`)
      }
      const text = String(exact)
      if (raw.has(text)) texts += 1
      else assert.isObject(JSON.parse(text), `${handle} is a text of the file or the JSON of a part`)
    }
    assert.isAbove(texts, 0)
  })

  it.effect("a plan changes nothing, can be applied later, and is refused after a change", function* () {
    const file = sessionFile("claude-code-subagent")
    const folder = yield* folderFor("plan")
    const plan = path.join(folder, "plan.json")
    const planned = yield* run(["compress", file, "--force", "--plan", "--out", plan])
    assert.strictEqual(planned.status, 0)
    assert.match(String(planned.stdout), /^PLAN {2}/)
    const out = path.join(folder, "out.jsonl")
    const applied = yield* report([file, "--apply", plan, "--out", out])
    assert.deepStrictEqual([applied.status, applied.value.status], [0, "COMPRESSED"])
    const direct = yield* report([file, "--force"])
    assert.strictEqual(applied.value.snapshot, direct.value.snapshot)
    const refused = yield* run(["compress", out, "--apply", plan])
    assert.strictEqual(refused.status, 2)
    assert.match(refused.stderr, oneLine)
    writeFileSync(plan, "{}")
    assert.strictEqual((yield* run(["compress", file, "--apply", plan])).status, 2)
  })

  it.effect("applies a plan of strategy gemini with the settings it was made with, and refuses others", function* () {
    const file = sessionFile("claude-code-subagent")
    const plan = path.join(yield* folderFor("gemini-plan"), "plan.json")
    const how = ["--strategy", "gemini", "--summarizer", "extractive"]
    assert.strictEqual((yield* run(["compress", file, "--force", "--plan", "--out", plan, ...how])).status, 0)
    const applied = yield* report([file, "--apply", plan, ...how])
    assert.deepStrictEqual([applied.status, applied.value.status], [0, "COMPRESSED"])
    const direct = yield* report([file, "--force", ...how])
    assert.deepStrictEqual(applied.value.history, direct.value.history)
    const unknown = `${plan}.pi`
    writeFileSync(unknown, readFileSync(plan, "utf8").replace('"strategy":"gemini"', '"strategy":"word"'))
    const refused = yield* run(["compress", file, "--apply", unknown, ...how])
    assert.strictEqual(refused.status, 2)
    assert.match(
      refused.stderr,
      /^palimpsest: [^\n]* was made with the strategy word; expected palimpsest or gemini or pi or openclaw\n$/
    )
    const other = yield* run(["compress", file, "--apply", plan, ...how, "--limit", "2M"])
    assert.strictEqual(other.status, 2)
    assert.match(other.stderr, /made with other settings/)
  })

  it.effect("shortens tool output in the form of --tool-output-form", function* () {
    const file = sessionFile("claude-code-subagent")
    const how = ["--force", "--preserve", "0.9", "--summarizer", "extractive", "--tool-budget", "0", "--min-gain", "0"]
    const history = (...form: ReadonlyArray<string>) =>
      Effect.map(report([file, ...how, ...form]), ({ value }) => JSON.stringify(value.history))
    assert.match(yield* history(), /The last 30 of \d+ lines/)
    assert.notMatch(yield* history("--tool-output-form", "head-tail-chars"), /The last 30 of \d+ lines/)
    const refused = yield* run(["compress", file, "--tool-output-form", "middle"])
    assert.strictEqual(refused.status, 2)
  })

  it.effect("refuses an output path that cannot be written before it starts, and leaves nothing behind", function* () {
    const folder = yield* folderFor("unwritable")
    const file = sessionFile("claude-code-subagent")
    writeFileSync(path.join(folder, "file"), "")
    for (const [out, says] of [
      [path.join(folder, "missing", "out.jsonl"), /: the folder [^\n]*missing does not exist; make it first$/m],
      [path.join(folder, "file", "out.jsonl"), /: expected a folder, found a file$/m],
      [folder, /: it is a folder; name a file in it$/m],
      [path.join(folder, "out.md"), /Markdown cannot be read back[^\n]*\.jsonl/]
    ] as const) {
      const { status, stderr, stdout } = yield* run(["compress", file, "--force", "--out", out])
      assert.deepStrictEqual([status, String(stdout)], [2, ""], out)
      assert.match(stderr, oneLine)
      assert.match(stderr, says)
      assert.notMatch(stderr, /\.tmp|FileSystem|AlreadyExists/)
    }
    assert.deepStrictEqual(readdirSync(folder), ["file"])
    assert.isFalse(existsSync(`${folder}.blobs`))
  })

  it.effect("overwrites its input only when asked to", function* () {
    const folder = yield* folderFor("in-place")
    const file = path.join(folder, "talk.jsonl")
    writeFileSync(file, readFileSync(sessionFile("claude-code-subagent")))
    const before = readFileSync(file, "utf8")
    const { status } = yield* run(["compress", file, "--force", "--out", file])
    assert.strictEqual(status, 2)
    assert.strictEqual(readFileSync(file, "utf8"), before)
    const failing = ["--force", "--min-gain", "0.99"]
    for (const flags of [["--in-place"], ["--in-place", ...failing]]) {
      yield* run(["compress", file, ...flags])
      assert.strictEqual(readFileSync(file, "utf8"), before)
    }
    const earlier = path.join(folder, "earlier.jsonl")
    writeFileSync(earlier, "kept")
    assert.strictEqual((yield* run(["compress", file, ...failing, "--out", earlier])).status, 1)
    assert.strictEqual(readFileSync(earlier, "utf8"), "kept")
    const { value } = yield* report([file, "--force", "--in-place"])
    assert.strictEqual(value.status, "COMPRESSED")
    const recorded = (text: string) => text.split("\n").filter((line) => /"type":"(?:progress|file-history)/.test(line))
    assert.deepStrictEqual(recorded(readFileSync(file, "utf8")), recorded(before))
    const again = yield* report([file])
    assert.strictEqual(again.value.tokens.before, value.tokens.after)
  })

  it.effect(
    "leaves a session of Codex as it is that another one goes on from; that one then stands alone",
    function* () {
      const folder = yield* folderFor("fork")
      const origin = path.join(folder, "rollout-origin.jsonl")
      const before = readFileSync(path.join(root, "test/fixtures/codex/codex-today.jsonl"))
      const meta = {
        type: "session_meta",
        payload: { id: "fork", cwd: folder, history_base: { thread_id: "origin", end_byte_offset: before.length } }
      }
      const fork = path.join(folder, "fork.jsonl")
      writeFileSync(origin, before)
      writeFileSync(fork, `${JSON.stringify(meta)}\n`)
      const flags = ["--force", "--in-place", "--min-gain", "0", "--limit", "300"]
      const { status, stderr } = yield* run(["compress", origin, ...flags])
      assert.deepStrictEqual([status, readFileSync(origin).equals(before)], [2, true])
      assert.include(stderr, `${fork} goes on from the records of this session`)
      const { value } = yield* report([fork, ...flags])
      assert.strictEqual(value.status, "COMPRESSED")
      assert.notInclude(readFileSync(fork, "utf8"), "history_base")
      assert.strictEqual((yield* run(["compress", origin, ...flags])).status, 0)
      assert.strictEqual((yield* report([fork])).value.tokens.before, value.tokens.after)
    }
  )
})

it.effect("eval grounds more actions than the recorded summary does, and asks the questions of a file", function* () {
  const questions = path.join(yield* folderFor("questions"), "questions.jsonl")
  const asked = [
    { question: "Is there a snapshot?", answer: ["overall_goal", "task_state"] },
    { question: "Is it empty?", answer: "overall_goal", not: ["task_state"] },
    { after: "e999999", question: "Is there more?", answer: "more" }
  ]
  writeFileSync(questions, asked.map((question) => JSON.stringify(question)).join("\n"))
  const recording = sessionFile("claude-code-1512-lines")
  const { status, stdout } = yield* run(["eval", recording, "--questions", questions, "--json"])
  assert.strictEqual(status, 0)
  const { files, sums } = JSON.parse(String(stdout))
  const [recorded, alone, kept] = files[0].points[0].rows
  assert.deepStrictEqual(
    [recorded, alone, kept].map(({ preserve, writer }) => [writer, preserve]),
    [
      ["recorded", null],
      ["palimpsest", 0],
      ["palimpsest", 0.3]
    ]
  )
  assert.isAtMost(alone.snapshotTokens, recorded.snapshotTokens)
  const { actionsGrounded } = alone.figures
  assert.isAbove(actionsGrounded.part, recorded.figures.actionsGrounded.part)
  assert.strictEqual(actionsGrounded.whole, recorded.figures.actionsGrounded.whole)
  assert.deepStrictEqual(sums[1].figures.actionsGrounded, {
    ...actionsGrounded,
    value: actionsGrounded.part / actionsGrounded.whole,
    interval: null
  })
  assert.deepInclude(sums[1].figures.questionsRight, { part: 1, whole: 2 })
  assert.deepInclude(sums[1].figures.questionsWrong, { part: 1, whole: 2 })
})
