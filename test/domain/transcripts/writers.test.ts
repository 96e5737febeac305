import { assert, describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { call, model, response, text, user } from "../../../src/domain/content/Content.ts"
import { Author, type Draft } from "../../../src/domain/conversation/Conversation.ts"
import { foreignNotes } from "../../../src/domain/conversation/Projection.ts"
import { runtimeMark } from "../../../src/domain/text/RuntimeMark.ts"
import { detectFormat, formatOfRecord } from "../../../src/domain/transcripts/facts/DetectFormat.ts"
import { newScan } from "../../../src/domain/transcripts/facts/ScanState.ts"
import { scanRecord } from "../../../src/domain/transcripts/facts/SessionScan.ts"
import type { Step, Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import { corpus } from "../../support/corpus.ts"
import { openingDrafts, swappedTalks, talks } from "../../support/generate.ts"
import { root } from "../../support/paths.ts"
import { isUnitTier, runsOf } from "../../support/runs.ts"
import { sessionNames, sessionText } from "../../support/sessions.ts"
import {
  counted,
  cut,
  draftsIn,
  readText,
  said,
  says,
  summary,
  told,
  transcriptOf,
  transcripts,
  viewsOf,
  writtenText
} from "../../support/transcripts.ts"

/** What holds for every form in which a conversation is written for an agent: nothing of it is lost. */

/** Forms that hold a whole conversation. A document of Gemini CLI and one of opencode hold its last view. */
const forms = ["claude", "codex", "gemini", "pi"] as const
type Form = (typeof forms)[number]

const messagesOf = ({ steps }: Transcript) => steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : []))
const environments = (original: Transcript) =>
  original.steps.some(
    (step) => step._tag === "Compaction" && step.insert.some(({ author }) => author === "environment")
  )

/** Compares as one text, which takes a tenth of the time of comparing lists; where they differ, the lists say in what. */
const equal = (found: ReadonlyArray<string>, expected: ReadonlyArray<string>): void => {
  if (found.length !== expected.length || found.join("\n") !== expected.join("\n"))
    assert.deepStrictEqual(found, expected)
}

/** Writes and reads: the same messages, the same view at every time, the same counts, and again the same when written once more. */
const staysTheSame = (form: Form, original: Transcript, isWrittenTwice = true): Transcript => {
  const { lines, text: file } = writtenText(form, original)
  const isForeign = (line: string) => (formatOfRecord(JSON.parse(line)) ?? form) !== form
  const wrong = lines.filter((line) => /[\r\n]/.test(line) || isForeign(line))
  equal(wrong, [])
  // An empty conversation of Claude Code is an empty file.
  const back = lines.length === 0 ? transcriptOf([], { session: original.session, cwd: original.cwd }) : readText(file)
  equal(told(messagesOf(back)), told(messagesOf(original)))
  const views = viewsOf(original)
  equal(viewsOf(back), views)
  assert.deepStrictEqual([back.session, back.cwd], [original.session, original.cwd])
  const cuts = ({ steps }: Transcript) => steps.flatMap((step) => (step._tag === "Compaction" ? [step.trigger] : []))
  assert.deepStrictEqual(cuts(back), cuts(original))
  if (isWrittenTwice && lines.length > 0) equal(viewsOf(readText(writtenText(form, back).text)), views)
  return back
}

const talk = [says("a"), said(model(text("b"))), says("c")]
const environment = said(user(text("env")), { author: "environment" })
const usages: ReadonlyArray<readonly [name: string, usage: Draft["usage"]]> = [
  ["with a cache", { prompt: 60, cached: 20, cacheWrite: 30, answer: 7, thoughts: 0 }],
  ["with a cache for an hour", { prompt: 60, cached: 20, cacheWrite: 30, cacheWriteHour: 10, answer: 7, thoughts: 0 }],
  ["without one", { prompt: 60, cached: 0, answer: 7, thoughts: 0 }],
  ["with thoughts apart", { prompt: 60, cached: 5, answer: 7, thoughts: 3 }],
  ["unknown", undefined]
]
const times = [undefined, 5_000, undefined, 1e300, 7_000]
const authors = [undefined, ...Author.literals]
const codexSummary = "Another language model started to solve this problem and produced a summary of it"

type Conversation = readonly [name: string, steps: ReadonlyArray<Step>, about?: Partial<Transcript> | undefined]

/** Conversations with everything that an agent's form has no place for, or another one than ours. */
const conversations = corpus<{
  readonly name: string
  readonly steps: ReadonlyArray<Step>
  readonly about?: Partial<Transcript>
}>("conversations-to-write").map(({ about, name, steps }): Conversation => [name, steps, about])

/** Sessions that have another name after they were written. */
const unnamed: ReadonlyArray<Conversation> = [undefined, "chat 1", "x\ud83d"].map((session) => [
  `a session that has no folder and is named ${JSON.stringify(session)}`,
  talk,
  { session, cwd: undefined }
])

/** Words that some agent takes for another's than the user's. */
const words = [
  "plain",
  "",
  " \n",
  "/command",
  " ?",
  "<session_context>x",
  "<hook_context>x</hook_context>",
  "<skill>x</skill>",
  "<state_snapshot>x</state_snapshot>",
  "<environment_context>x</environment_context>",
  "<task-notification>x</task-notification>",
  codexSummary,
  runtimeMark,
  foreignNotes.summary,
  foreignNotes.program
]
const anyId = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=id"?:"|Id":")[0-9a-f]{8}(?=")/g

/** Names ids by their place, so that what hangs on what can be read, and halves of pairs by their number. */
const readable = (lines: ReadonlyArray<string>): string => {
  const ids = new Map<string, number>()
  const shortId = (id: string) => {
    ids.set(id, ids.get(id) ?? ids.size + 1)
    return `#${ids.get(id)}`
  }
  return lines
    .join("\n")
    .replace(anyId, shortId)
    .replace(/\p{Surrogate}/gu, (half) => `<${half.charCodeAt(0).toString(16)}>`)
}

describe.each([...forms, "opencode", "gemini document"] as const)("%s", (form) => {
  it("writes its own form of each: see `test/golden/written-*.txt`, and take a new one with `vitest -u`", async () => {
    // What begins every file is shown once.
    const opening = new Set(writtenText(form, transcriptOf([])).lines)
    const written = [...conversations, ...unnamed].map(([name, steps, about]) => {
      const { lines, unheld } = writtenText(form, transcriptOf(steps, about))
      const shown = steps.length === 0 ? lines : lines.filter((line) => !opening.has(line))
      return [`== ${name}`, readable(shown), ...Object.keys(unheld).map((kind) => `not held: ${kind} ${unheld[kind]}`)]
    })
    const golden = `test/golden/written-${form.replace(" ", "-")}.txt`
    await expect(`${written.flat().join("\n")}\n`).toMatchFileSnapshot(path.join(root, golden))
  })
})

const read = new Map<string, Transcript>()
/** A recorded session, read once for all forms. */
const recordedSession = (name: string): Transcript => {
  const file = sessionNames.find((one) => one === name)
  const folder = name.startsWith("codex") ? "codex" : "gemini"
  const session =
    read.get(name) ??
    readText(
      file === undefined
        ? readFileSync(new URL(`../../fixtures/${folder}/${name}.jsonl`, import.meta.url), "utf8")
        : sessionText(file)
    )
  read.set(name, session)
  return session
}

describe.each(forms)("%s", (form) => {
  it.each(conversations.map((row) => [row[0], row] as const))("%s", (_, [, steps, about]) => {
    staysTheSame(form, transcriptOf(steps, about))
  })

  it.each(words.map((one, at) => [one, at] as const))(
    "%j keeps its author: first, later, among others and after a compaction",
    (one, at) => {
      // Each author has words of every agent, also where a word has a third of the authors.
      for (const author of isUnitTier ? authors.filter((_, n) => n % 3 === at % 3) : authors) {
        const by = author === undefined ? {} : { author }
        const [asked, answered] = [
          { content: user(text(one)), ...by },
          { content: model(text(one)), ...by }
        ]
        const two: Draft = { content: user(text(one), text("more")), ...by }
        const inserted = author === "environment" ? [] : [two, answered]
        for (const steps of [
          [said(asked.content, by)],
          [said(two.content, by), said(asked.content, by), environment],
          [environment, said(asked.content, by), said(answered.content, by), said(two.content, by)],
          [...talk, said(two.content, by), cut(inserted, 1), said(asked.content, by)],
          [said(model(call("f", {}, "1"))), said(user(response("f", {}, "1")), by), said(user(), by), cut(inserted)]
        ])
          staysTheSame(form, transcriptOf(steps), !isUnitTier)
      }
    }
  )

  it.each(usages)("counts %s come back, once, and a list counts the same", (_, usage) => {
    const about = { model: "claude-x", at: 1_770_000_000_000, ...(usage === undefined ? {} : { usage }) }
    const steps = [
      says("a"),
      said(model(text("b")), about),
      said(model(text("c")), about),
      cut([summary("s")], 0),
      says("d")
    ]
    const original = transcriptOf(steps)
    const back = staysTheSame(form, original)
    const known = (one: Transcript) => draftsIn(one).flatMap((draft) => draft.usage ?? [])
    // Codex records no cache of an hour.
    const held = ({ cacheWriteHour: _hour, ...rest }: NonNullable<Draft["usage"]>) => rest
    assert.deepStrictEqual(
      form === "codex" ? known(back).map(held) : known(back),
      form === "codex" ? known(original).map(held) : known(original)
    )
    const state = newScan()
    for (const line of writtenText(form, original).lines) scanRecord(state, form, JSON.parse(line))
    const requests = state.requests.filter(({ usage: own }) => own.prompt > 0)
    assert.deepStrictEqual(
      requests.map(({ model: name, usage: own }) => [name, own.prompt, own.answer + own.thoughts, own.cached]),
      known(original).map((own) => ["claude-x", own.prompt, own.answer + own.thoughts, own.cached])
    )
  })

  it("times come back; a message without one has that of the one before, and no calendar's end is passed", () => {
    const steps = times.map((at, n) => said(user(text(`${n}`)), at === undefined ? {} : { at }))
    const back = readText(writtenText(form, transcriptOf(steps)).text)
    assert.deepStrictEqual(
      draftsIn(back).map(({ at }) => at),
      [5_000, 5_000, 5_000, 5_000, 7_000]
    )
    assert.match(writtenText(form, transcriptOf([says("a")])).text, /1970-01-01T00:00:00\.000Z/)
  })

  it("a session without a name, and without a UUID, has ids that are always the same", () => {
    for (const name of [undefined, "chat 1", "x\ud83d"]) {
      const bare = transcriptOf(talk, { session: name, cwd: undefined })
      assert.strictEqual(writtenText(form, bare).text, writtenText(form, bare).text)
      assert.isTrue(writtenText(form, bare).text.includes("-"))
    }
  })

  it.each(
    ["caf\udce9", "\udcc3\udca9", "a lone \ud83d half", "\udcff\ud83d"].map(
      (one) => [JSON.stringify(one), one] as const
    )
  )("bytes that are no Unicode come back wherever they stand: %s", (_, odd) => {
    staysTheSame(
      form,
      transcriptOf([
        said(user(text(odd))),
        said(model({ text: odd, thought: true }, call("f", { [odd]: odd }, "c"))),
        said(user(response("f", { output: odd }, "c"))),
        cut([summary(odd)], 1)
      ])
    )
  })

  it.each([...sessionNames, "codex-today", "codex-2025", "session-2026-08-21T08-00-c0ffee00"])(
    "the recorded session %s comes back, also through the other forms",
    (name) => {
      const whole = recordedSession(name)
      const recorded = { ...whole, steps: whole.steps.slice(0, runsOf(whole.steps.length, 80)) }
      const other = form === "pi" ? "claude" : "pi"
      // Through another form, too: what one writer adds, the next one must not take for the agent's.
      for (const original of isUnitTier ? [recorded] : [recorded, readText(writtenText(other, recorded).text)]) {
        const back = staysTheSame(form, original)
        // The length of a text in an answer tells what was counted for it.
        assert.deepStrictEqual(counted(messagesOf(back)).length, counted(messagesOf(original)).length)
        assert.strictEqual(detectFormat(writtenText(form, original).text.slice(0, 4_000)), form)
        assert.deepStrictEqual([back.session, back.cwd, back.model], [original.session, original.cwd, original.model])
      }
    }
  )

  it("is written, and read, in slices", () => {
    const steps = Array.from({ length: 300 }, (_, n) => says(`${n} ${"x".repeat(1_000)}`))
    const { slices, text: file } = writtenText(form, transcriptOf(steps))
    assert.isAtLeast(slices, 300)
    assert.strictEqual(readText(file).steps.length, 300)
  })

  it.prop(
    "any conversation comes back",
    [transcripts],
    ([original]) => {
      if (!environments(original)) staysTheSame(form, original)
    },
    { arbitrary: { runs: runsOf(500, 20), seed: form, size: 24, maxShrinks: 200 } }
  )

  it.prop(
    "any history comes back, also with calls and responses in the wrong role",
    [talks, swappedTalks],
    ([script, swapped]) => {
      for (const one of [script, swapped])
        staysTheSame(form, transcriptOf(openingDrafts(one).map((draft) => ({ _tag: "Message", draft }))))
    },
    { arbitrary: { runs: runsOf(200, 12), seed: form, size: 12, maxShrinks: 100 } }
  )
})

describe("a document of Gemini CLI", () => {
  const holdsTheView = (original: Transcript) => {
    const { lines, text: file } = writtenText("gemini document", original)
    assert.deepStrictEqual([lines.length, /[\r\n]/.test(lines[0] ?? "")], [1, false])
    equal([told(draftsIn(readText(file))).join("\n")], viewsOf(original).slice(-1))
  }
  it.each(conversations.map((row) => [row[0], row] as const))("holds the last view: %s", (_, [, steps]) =>
    holdsTheView(transcriptOf(steps))
  )
  it.prop("holds the last view of any conversation", [transcripts], ([original]) => holdsTheView(original), {
    arbitrary: { runs: runsOf(250, 20), seed: "document", size: 24, maxShrinks: 200 }
  })
})
