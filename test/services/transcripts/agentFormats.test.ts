import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Stdio, Stream } from "effect"
import { gatherEvidence } from "../../../src/domain/compression/evidence/Evidence.ts"
import { isCall, payload } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../../src/domain/conversation/Projection.ts"
import { programsOf } from "../../../src/domain/evaluation/RecordedNames.ts"
import { recallableOf } from "../../../src/domain/session/Session.ts"
import { encode } from "../../../src/domain/text/Bytes.ts"
import { run, runSync } from "../../../src/domain/text/SlicedWork.ts"
import type { Usage } from "../../../src/domain/tokens/Tokens.ts"
import {
  carriedFolder,
  carriedId,
  carriedName,
  carriedSession,
  resumeCommand,
  type WritableAgent
} from "../../../src/domain/transcripts/CarriedSession.ts"
import { newScan } from "../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../src/domain/transcripts/facts/SessionScan.ts"
import { SessionSecrets } from "../../../src/domain/transcripts/RecordSecrets.ts"
import { changesText, entriesSince, parseSince } from "../../../src/domain/transcripts/SessionChanges.ts"
import { sessionToTranscript } from "../../../src/domain/transcripts/SessionToTranscript.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import type { LoadOptions } from "../../../src/services/transcripts/LoadedTranscript.ts"
import { load } from "../../../src/services/transcripts/Transcripts.ts"
import { type AgentRecords, agentRecords, type Beat, folder, session, timeOf } from "../../support/agentRecords.ts"
import { illegal } from "../../support/legal.ts"
import { drafts, messageText, told } from "../../support/reading.ts"
import { readText, viewOf, writtenText } from "../../support/transcripts.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/**
 * What holds for every agent. Sessions in the agents' own records (`agentRecords.ts`) are read; what readers, lists, searches for
 * secrets and reports of changes make of them is the same, whoever wrote them.
 */

const agents = Object.entries(agentRecords) as ReadonlyArray<readonly [WritableAgent, AgentRecords]>

const services = Layer.mergeAll(NodeServices.layer, MemoryTempStore.layer, TokenCounter.layerEstimate)

const textOf = (records: ReadonlyArray<object>): string => records.map((one) => `${JSON.stringify(one)}\n`).join("")

/** Reads a text as a file is read. */
const loadText = (text: string, options?: LoadOptions) =>
  load("-", options).pipe(
    Effect.provide(Stdio.layerTest({ stdin: Stream.make(encode(text)) })),
    Effect.provide(services)
  )

const scanned = (agent: WritableAgent, text: string) => {
  const state = newScan()
  for (const line of text.trimEnd().split("\n")) scanRecord(state, agent, JSON.parse(line))
  return state
}

const counts = { fresh: 10, cached: 200, written: 3_000, output: 40 }

/** A session of two turns: thoughts, parallel calls, a failure. */
const talk: ReadonlyArray<Beat> = [
  { user: "When is high water?" },
  {
    answer: "Two tables say so.",
    thought: "look both up",
    calls: [
      ["c1", "lookUp", { table: "tides" }],
      ["c2", "measure", {}]
    ],
    counts
  },
  { result: "c1", words: "at noon" },
  { result: "c2", words: "no gauge", failed: true },
  { answer: "At noon.", counts: { ...counts, output: 5 } },
  { user: "And tomorrow?" },
  { answer: "An hour later.", counts: { ...counts, output: 6 }, model: "claude-opus-4-6" }
]
const compacted: ReadonlyArray<Beat> = [
  ...talk,
  { compacted: "They asked for tides." },
  { user: "Thanks." },
  { answer: "You are welcome.", counts }
]

/** What a conversation says, without the signatures of thoughts: some agents have none. */
const saidIn = (text: string): ReadonlyArray<string> => told(readText(text)).map((line) => line.replace("^sig", ""))

const saidInTalk = [
  "user: When is high water?",
  'model: ~look both up | Two tables say so. | lookUp(c1 {"table":"tides"}) | measure(c2 {})',
  'user: lookUp[c1] {"output":"at noon"} | measure[c2] {"error":"no gauge"}',
  "model: At noon.",
  "user: And tomorrow?",
  "model: An hour later."
]

const sum = (usages: ReadonlyArray<Usage | undefined>) =>
  usages.reduce(
    (all, usage) => ({
      prompt: all.prompt + (usage?.prompt ?? 0),
      output: all.output + (usage?.answer ?? 0) + (usage?.thoughts ?? 0),
      cached: all.cached + (usage?.cached ?? 0),
      written: all.written + (usage?.cacheWrite ?? 0)
    }),
    { prompt: 0, output: 0, cached: 0, written: 0 }
  )

describe.each(agents)("%s", (agent, { countsWritten, odd, program, records, shell, tellsBack, write }) => {
  const text = textOf(records(talk))
  const lines = text.trimEnd().split("\n")

  it("a session is read as what was said, with calls, their results and failures", () => {
    assert.deepStrictEqual(saidIn(text), saidInTalk)
  })

  it.each([
    ["numbers beyond 2^53", '{"n":12345678901234567890,"m":1.0}'],
    ["number-like keys", '{"2":"b","1":"a"}'],
    ["the same key twice", '{"a":1,"a":2}'],
    ["__proto__", '{"__proto__":{"x":1}}'],
    ["spelling", '{ "a" : "\\u00e9\\/" }'],
    ["half a pair, spelled", '{"a":"\\ud83d"}'],
    // V8 13 parses this key as a backslash after it has seen one there; the text is right all the same.
    ["a key that the engine mistakes", '{"q":{"w":false,"\\\\":1},"r":{"w":false,"\\u0000":1}}'],
    ["nothing to keep", '{"a":[1,2.5,"x"]}']
  ])("arguments with %s come back exactly", (name, args) => {
    // The rows of opencode's database are values; there is no other spelling of them.
    if (agent === "opencode") return
    const before = [{ user: "Go." }, { answer: "I do.", calls: [["c", "f", { spelled: 1 }]] }] as const
    const inString = JSON.stringify('{"spelled":1}').slice(1, -1)
    const file = textOf(records(before))
      .replace('{"spelled":1}', () => args)
      .replace(inString, () => JSON.stringify(args).slice(1, -1))
    const draft = drafts(readText(file)).find(({ content }) => content.parts.some(isCall))
    const at = draft?.content.parts.findIndex(isCall) ?? 0
    const part = draft?.content.parts[at]
    const exact = `{"functionCall":{"id":"c","name":"f","args":${args}}}`
    assert.strictEqual(part === undefined ? "" : payload(part, draft?.source?.[String(at)]).text, exact)
    if (name === "nothing to keep") assert.isUndefined(draft?.source)
  })

  it("messages have their times, models and counts, and name the records that hold them", () => {
    const { cwd, model, session: id, steps } = readText(text)
    assert.deepStrictEqual([id, cwd, model], [session, folder, "claude-opus-4-6"])
    const messages = steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : []))
    for (const [index, beat] of [0, 1, 4, 5, 6].entries()) {
      const draft = messages.filter(({ content }) => !content.parts.some((part) => "functionResponse" in part))[index]
      assert.strictEqual(draft?.at, timeOf(beat))
      const words = draft?.content.parts.find((part) => part.text !== undefined)?.text ?? ""
      const { ids = [], line = 0 } = draft?.origin ?? {}
      // opencode has the words of a message in rows of their own.
      if (agent !== "opencode") assert.include(lines[line - 1], words)
      for (const one of ids) assert.isTrue(lines.some((record) => record.includes(one)))
    }
    const prompt = counts.fresh + counts.cached + (countsWritten ? counts.written : 0)
    assert.deepStrictEqual(
      messages.flatMap(({ model: own, usage }) => (usage === undefined ? [] : [[own, usage.prompt, usage.cached]])),
      [
        ["claude-sonnet-4-5", prompt, counts.cached],
        ["claude-sonnet-4-5", prompt, counts.cached],
        ["claude-opus-4-6", prompt, counts.cached]
      ]
    )
  })

  it("a list knows the same of it, and counts the same tokens", () => {
    const { facts, requests } = scanned(agent, text)
    assert.deepInclude(facts, {
      session,
      folder,
      title: "When is high water?",
      model: "claude-opus-4-6",
      startedAt: timeOf(0),
      updatedAt: timeOf(6),
      prompts: 2
    })
    const written = countsWritten ? 3 * counts.written : 0
    const all = { prompt: 3 * (counts.fresh + counts.cached) + written, output: 51, cached: 3 * counts.cached, written }
    assert.deepStrictEqual(sum(requests.map(({ usage }) => usage)), all)
    assert.deepStrictEqual(sum(drafts(readText(text)).map(({ usage }) => usage)), all)
    assert.deepStrictEqual(
      requests.map(({ at, model }) => [at, model]),
      [1, 4, 6].map((beat) => [timeOf(beat), beat === 6 ? "claude-opus-4-6" : "claude-sonnet-4-5"])
    )
  })

  it("a compaction is seen: the summary replaces what was said, and the next request knows of it", () => {
    const after = textOf(records(compacted))
    const transcript = readText(after)
    const shown = viewOf(transcript).map(messageText)
    assert.match(shown[0] ?? "", /^summary: .*They asked for tides\./)
    assert.deepStrictEqual(shown.slice(-2), ["user: Thanks.", "model: You are welcome."])
    assert.isFalse(shown.some((line) => line.includes("high water")))
    assert.deepStrictEqual(saidIn(after).slice(0, 6), saidInTalk)
    assert.strictEqual(transcript.steps.filter(({ _tag }) => _tag === "Compaction").length, 1)
    const { facts, requests } = scanned(agent, after)
    assert.strictEqual(facts.prompts, 3)
    if (agent === "opencode") return
    assert.deepStrictEqual(
      requests.map(({ changes }) => changes),
      [undefined, undefined, undefined, ["compaction"]]
    )
  })

  it("what the user took back is not part of it", () => {
    const goes = textOf(records([...talk, { back: 5 }, { user: "And on Sunday?" }, { answer: "At ten.", counts }]))
    const back = textOf(records([...talk, { back: 5 }]))
    if (agent === "opencode") return assert.deepStrictEqual(saidIn(back), saidInTalk.slice(0, 4))
    assert.deepStrictEqual(saidIn(goes), [...saidInTalk.slice(0, 4), "user: And on Sunday?", "model: At ten."])
    assert.deepStrictEqual(scanned(agent, goes).requests.at(-1)?.changes, tellsBack ? ["rewind"] : undefined)
    const gone = Object.entries(readText(goes).skipped).filter(([kind]) =>
      /^(dead branch|rolled back|rewound)$/.test(kind)
    )
    assert.deepStrictEqual(
      gone.map(([, count]) => count),
      [2]
    )
  })

  it("records of unknown kinds are counted by their kind, and nothing else changes", () => {
    const before = readText(text).skipped
    for (const make of odd) {
      const record = make(records(talk).at(-1))
      const { skipped, unknown, ...read } = readText(`${text}${JSON.stringify(record)}\n`)
      assert.deepStrictEqual(told(read as ReturnType<typeof readText>), told(readText(text)), JSON.stringify(record))
      const added = Object.entries(skipped).filter(([kind, count]) => before[kind] !== count)
      assert.strictEqual(added.length, 1, JSON.stringify([record, skipped]))
      assert.match(added[0]?.[0] ?? "", /hologram|unknown/)
      // The program that wrote them is named where a record says its version.
      if (JSON.stringify(record).includes('type":"hologram"')) {
        assert.deepStrictEqual<unknown>(unknown?.kinds, [added[0]?.[0]])
        assert.match(unknown?.program ?? "", program)
      }
      assert.strictEqual(scanned(agent, `${text}${JSON.stringify(record)}\n`).requests.length, 3)
    }
  })

  it.effect("a broken line is named; without it, only what it holds is missing", function* () {
    const whole = yield* loadText(text)
    assert.deepStrictEqual([whole.format, whole.torn], [agent, undefined])
    const words = saidInTalk.flatMap((line) => line.replace(/^\w+: /, "").split(" | "))
    for (const [at, line] of lines.entries()) {
      const broken = [...lines.slice(0, at), line.slice(0, line.length / 2), ...lines.slice(at + 1), ""].join("\n")
      // Pi's first record says how to read the others; rows of opencode come from a database, which has no broken ones.
      if (at === 0 && (agent === "pi" || agent === "opencode")) continue
      const error = yield* Effect.flip(loadText(broken, { from: agent }))
      assert.deepStrictEqual([error.kind, error.line], ["BrokenLine", at + 1])
      const loaded = yield* loadText(broken, { lenient: true, from: agent })
      assert.strictEqual(loaded.skipped["broken line"], 1)
      const left = loaded.transcript === undefined ? "" : told(loaded.transcript).join("\n").replaceAll("^sig", "")
      // A row of opencode's messages takes its parts with it.
      const isHeld = (word: string) =>
        line.includes(/"([^"]*)"\}$/.exec(word)?.[1] ?? word.replace(/^~|\(.*/g, "")) ||
        (agent === "opencode" && line.includes('"kind":"message"'))
      // A result without its call has no name.
      const missing = words.filter((word) => !left.includes(word.replace(/^\w+\[/, "[")))
      assert.deepStrictEqual(
        missing.filter((word) => !isHeld(word)),
        [],
        `without line ${at + 1}: ${line}`
      )
    }
  })

  it.effect("a last line that is cut anywhere is left out and reported", function* () {
    const last = lines.at(-1) ?? ""
    for (let end = 1; end < last.length; end += 7) {
      const loaded = yield* loadText([...lines.slice(0, -1), last.slice(0, end)].join("\n"))
      assert.strictEqual(loaded.torn, lines.length, last.slice(0, end))
      assert.deepStrictEqual(loaded.transcript && told(loaded.transcript).slice(0, 4), told(readText(text)).slice(0, 4))
    }
    const whole = yield* loadText(text.trimEnd())
    assert.isUndefined(whole.torn)
  })

  it("secrets go out of every place, in base64 too, and nothing else of the session changes", () => {
    const secret = `${"gh"}p_${"1a2B3c4D5e6F7g8H9i0J".repeat(2).slice(0, 36)}`
    const known = "correct horse battery staple"
    const inBase64 = ["", "x", "xy"].map((before) => Buffer.from(`${before}${known} and more`).toString("base64"))
    // What looks like a secret within a signature is none: without it the provider refuses the thought.
    const signature = `${"b1C/".repeat(30)}${`${"gh"}p_${"9i8H7g6F5e4D3c2B1a0Z".repeat(2).slice(0, 36)}`}${"/b1C".repeat(10)}`
    const places = [secret, known, ...inBase64]
    const session = (words: ReadonlyArray<string>): ReadonlyArray<Beat> => [
      { user: `Use ${words.join(" ")} here.` },
      { answer: `I use ${words.join(" ")}`, thought: `with ${words.join(" ")}`, calls: [["c", "run", { key: words }]] },
      { result: "c", words: `said ${words.join(" ")}` },
      { answer: "Done." }
    ]
    const file = textOf(records(session(places))).replaceAll('"sig"', JSON.stringify(signature))
    const secrets = new SessionSecrets({ secrets: true, personal: false, known: [{ kind: "password", value: known }] })
    for (const line of file.trimEnd().split("\n")) runSync(secrets.collect(line))
    secrets.settle()
    const copy = file
      .trimEnd()
      .split("\n")
      .map((line) => runSync(secrets.replace(line)).text)
      .join("\n")
    for (const one of [secret, known, "orrect horse"]) assert.notInclude(copy, one)
    for (const before of ["", "x", "xy"]) {
      const inner = Buffer.from(`${before}${known}`).toString("base64").slice(4, -4)
      assert.notInclude(copy, inner)
    }
    assert.isFalse(secrets.isRevealedBy(copy))
    assert.strictEqual(copy.includes(signature), file.includes(signature))
    const hidden = saidIn(copy).map((line) => line.replace(/\[redacted: [^\]]+\]/g, "•"))
    const [asked] = hidden
    assert.match(asked ?? "", /^user: Use • • \S{0,4}•\S* \S{0,4}•\S* \S{0,4}•\S* here\.$/)
    assert.strictEqual(hidden.length, 4)
    assert.match(copy, /\[redacted: GitHub[^#\]]*#1\]/)
    assert.notMatch(copy, /\[redacted: [^\]]*#2\]/)
  })

  it.effect("changes are reported: files that were written, commands and how they ended, after a point", function* () {
    const [shellName, shellArgs] = shell("terraform apply")
    const [writeName, writeArgs] = write(`${folder}/notes.md`)
    const failed = agent === "codex" ? "Exit code: 2\nWall time: 1 seconds\nOutput:\nno" : "Exit code 2\nno"
    const did = textOf(
      records([
        { user: "Go." },
        { answer: "I write.", calls: [["c1", writeName, writeArgs]] },
        { result: "c1", words: "written" },
        { answer: "I run.", calls: [["c2", shellName, shellArgs]] },
        { result: "c2", words: failed, failed: true },
        { answer: "It failed." }
      ])
    )
    const loaded = yield* loadText(did)
    const all = entries(loaded.session.conversation)
    const since = Effect.fnUntraced(function* (point: string) {
      const found = parseSince(point, timeOf(60))
      return changesText(
        yield* run(gatherEvidence(found === undefined ? all : entriesSince(all, found), { cwd: folder }))
      )
    })
    const whole = yield* since("nothing")
    assert.match(whole, /^Files changed:\n- notes\.md \(/)
    assert.match(whole, /terraform apply failed/)
    const calls = all.flatMap(({ content }) => content.parts.flatMap((part) => programsOf(part)))
    assert.deepStrictEqual(calls, ["terraform"])
    // What happened at the very time of the point happened before it.
    const later = yield* since(new Date(timeOf(1)).toISOString())
    assert.deepStrictEqual(
      entriesSince(all, { _tag: "Time", at: timeOf(3) })
        .map(({ at }) => at)
        .slice(0, 1),
      [timeOf(agent === "gemini" || agent === "opencode" ? 5 : 4)]
    )
    assert.notInclude(later.split("Commands")[0] ?? "", "notes.md (created")
    assert.deepStrictEqual(yield* since("1m"), yield* since(new Date(timeOf(0)).toISOString()))
  })

  it.effect("carried over, it names itself everywhere alike, holds the view, and counts nothing", function* () {
    const loaded = yield* loadText(textOf(records(compacted)))
    const id = carriedId(agent, "0199c7a0-9999-7222-8333-444455556666")
    const place = { id, folder: "/work/there", at: "2026-02-03T04:05:06.789Z" }
    const carried = runSync(sessionToTranscript(carriedSession(loaded.session, agent, place)))
    const { text: file } = writtenText(agent, carried)
    const command = resumeCommand(agent, place, "/x y/file")
    const name = carriedName(agent, place)
    assert.include(name, agent === "gemini" ? id.slice(0, 8) : id)
    if (agent !== "pi") assert.include(command, id)
    assert.include(resumeCommand(agent, place, `/sessions/${name}`), id)
    assert.match(command, /^cd \/work\/there && /)
    const back = readText(file)
    assert.deepStrictEqual([back.session, back.cwd], [id, "/work/there"])
    assert.notInclude(file, session)
    if (agent !== "opencode") {
      const { facts, requests } = scanned(agent, file)
      assert.strictEqual(facts.session, id)
      assert.deepStrictEqual(
        requests.filter(({ usage }) => usage.prompt > 0),
        []
      )
      const folders = { claude: "-work-there", codex: "2026/02/03", gemini: undefined, pi: "--work-there--" }
      assert.strictEqual(carriedFolder(agent, place), folders[agent])
    }
    assert.deepStrictEqual(viewOf(back).slice(-2).map(messageText), ["user: Thanks.", "model: You are welcome."])
    assert.isFalse(file.includes("high water"))
    const again = yield* loadText(file)
    assert.isUndefined(illegal(projectMessages(again.session.conversation).map(({ content }) => content)))
    assert.isDefined(recallableOf(again.session))
  })
})

it.effect("a summary that only Codex's provider can read is a handover of what it stands for", function* () {
  const item = (payload: object) => ({ timestamp: "2026-02-03T04:05:06.000Z", type: "response_item", payload })
  const user = item({ type: "message", role: "user", content: [{ type: "input_text", text: "Move the page." }] })
  const call = { type: "function_call", name: "exec_command", arguments: '{"cmd":"rm src/old.ts"}', call_id: "c" }
  const before = [user, item(call), item({ type: "function_call_output", call_id: "c", output: "done" })]
  const encrypted = { type: "compaction", encrypted_content: "x" }
  for (const payload of [{ message: "", replacement_history: [user.payload, encrypted] }, { message: "" }]) {
    const records = [{ type: "session_meta", payload: { id: "s", cwd: "/w" } }, ...before]
    const { session: read } = yield* loadText(textOf([...records, { type: "compacted", payload }, user]))
    const shown = projectMessages(read.conversation).map(({ content }) =>
      content.parts.map(({ text }) => text).join("")
    )
    assert.strictEqual(shown[0], "Move the page.")
    assert.match(shown[1] ?? "", /<state_snapshot>[\s\S]*src\/old\.ts/)
    assert.strictEqual(shown[2], "Move the page.")
  }
})
