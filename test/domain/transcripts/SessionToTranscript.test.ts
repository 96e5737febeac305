import { Effect, Layer } from "effect"
import { text, user } from "../../../src/domain/content/Content.ts"
import { allEntries } from "../../../src/domain/conversation/Branches.ts"
import {
  append,
  compressed,
  type Conversation,
  type Draft,
  empty,
  entries,
  type Entry,
  entryId,
  itemParts,
  type Patch,
  redone,
  undone,
  view,
  type ViewItem
} from "../../../src/domain/conversation/Conversation.ts"
import { emptySession, type Session, applyEvent } from "../../../src/domain/session/Session.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { TokenCount } from "../../../src/domain/tokens/Tokens.ts"
import { sessionToTranscript } from "../../../src/domain/transcripts/SessionToTranscript.ts"
import type { Transcript } from "../../../src/domain/transcripts/Transcript.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { importTranscript } from "../../../src/services/transcripts/ImportTranscript.ts"
import { type Law, lawOfPlayed, notices, property, scripts, thousand, worldOf } from "../../support/generate.ts"
import { told, viewOf } from "../../support/transcripts.ts"
import { assert, describe, it } from "../../support/vitest.ts"

const services = Layer.mergeAll(TokenCounter.layerEstimate, MemoryTempStore.layer)

const shown = (item: ViewItem): Draft => {
  const source = Object.entries(item.entry.source ?? {}).filter(([part]) => !item.shortened.has(Number(part)))
  return {
    ...item.entry,
    content: { ...item.entry.content, parts: itemParts(item) },
    source: Object.fromEntries(source)
  }
}
/** What the model sees, part by part. */
const seen = (conversation: Conversation) => told(view(conversation).map(shown))
const logged = (conversation: Conversation) => told(entries(conversation))

/** A compaction says nothing of where the environment stands among what stays: it opens the conversation. */
const inFront = (parts: ReadonlyArray<string>): ReadonlyArray<string> => {
  const isFirst = (part: string) => part.startsWith("user\nenvironment\n")
  return [...parts.filter(isFirst), ...parts.filter((part) => !isFirst(part))]
}

const session = (conversation: Conversation): Session => ({ ...emptySession, conversation })
const transcriptOf = (conversation: Conversation): Transcript => runSync(sessionToTranscript(session(conversation)))

const imported = (transcript: Transcript) =>
  Effect.map(importTranscript(transcript), (events) => events.reduce(applyEvent, emptySession).conversation)

const entry = (n: number, words: string, rest: Partial<Entry> = {}): Entry => ({
  id: entryId(n),
  content: user(text(words)),
  tokens: [1],
  handles: [],
  ...rest
})
const talk = (...words: ReadonlyArray<string>): Conversation =>
  words.reduce((all, word, index) => append(all, entry(index + 1, word)), empty)
const patch = (from: number, to: number, insert: ReadonlyArray<Entry>): Patch => ({
  drop: { from: entryId(from), to: entryId(to) },
  insert,
  shorten: []
})
const shortening = (n: number): Patch => ({
  insert: [],
  shorten: [{ entry: entryId(n), part: 0, replacement: text("…"), tokens: TokenCount.make(1) }]
})
const summary = (n: number, words = `s${n}`): Entry => entry(n, words, { author: "summary" })
const environment = append(empty, entry(1, "env", { author: "environment" }))

/** `a b C(s|1)`: messages, compactions with what they inserted and from where they kept. */
const described = ({ steps }: Transcript): string => {
  const words = (draft: Draft) => draft.content.parts.map((part) => part.text).join("+")
  return steps
    .map((one) =>
      one._tag === "Message" ? words(one.draft) : `C(${one.insert.map(words).join(",")}|${one.keptFrom ?? ""})`
    )
    .join(" ")
}

const rows: ReadonlyArray<readonly [string, Conversation, string]> = [
  ["nothing", empty, ""],
  ["messages", talk("a", "b"), "a b"],
  [
    "the oldest put away",
    append(compressed(talk("a", "b", "c"), patch(1, 2, [summary(4)])), entry(5, "d")),
    "a b c C(s4|2) d"
  ],
  ["all put away", compressed(talk("a", "b"), patch(1, 2, [summary(3)])), "a b C(s3|)"],
  ["put away without a word", compressed(talk("a", "b"), patch(1, 1, [])), "a b C(|1)"],
  ["put in front, nothing away", compressed(talk("a"), { insert: [summary(2)], shorten: [] }), "a C(s2|0)"],
  ["put into nothing", compressed(empty, { insert: [summary(1)], shorten: [] }), "C(s1|)"],
  ["the middle put away", compressed(talk("a", "b", "c"), patch(2, 2, [summary(4)])), "a b c C(a,s4,c|)"],
  ["shortened", compressed(talk("a", "b"), shortening(1)), "a b C(…,b|)"],
  [
    "twice",
    compressed(compressed(talk("a", "b", "c"), patch(1, 1, [summary(4)])), patch(4, 2, [summary(5)])),
    "a b c C(s4|1) C(s5|2)"
  ],
  [
    "of what was told anew, nothing is kept where it stood",
    compressed(append(compressed(talk("a", "b", "c"), shortening(1)), entry(4, "d")), patch(1, 1, [summary(5)])),
    "a b c C(…,b,c|) d C(s5,b,c,d|)"
  ],
  [
    "after that, messages are kept again",
    compressed(append(compressed(talk("a", "b"), shortening(1)), entry(3, "d")), patch(1, 2, [summary(4)])),
    "a b C(…,b|) d C(s4|2)"
  ],
  ["undone", undone(compressed(talk("a", "b"), patch(1, 1, [summary(3)]))), "a b"],
  ["undone and laid again", redone(undone(compressed(talk("a", "b"), patch(1, 1, [summary(3)])))), "a b C(s3|1)"],
  [
    "behind the environment",
    compressed(append(append(environment, entry(2, "a")), entry(3, "b")), patch(2, 2, [summary(4)])),
    "env a b C(s4|2)"
  ],
  [
    "from the environment on",
    compressed(append(append(environment, entry(2, "a")), entry(3, "b")), patch(1, 2, [summary(4)])),
    "env a b C(s4,b|)"
  ],
  [
    "up to an environment in the middle",
    compressed(
      append(append(talk("a"), entry(2, "env", { author: "environment" })), entry(3, "b")),
      patch(1, 2, [summary(4)])
    ),
    "a env b C(s4,b|)"
  ]
]

describe("a session as another agent's transcript", () => {
  it.effect.each(rows)("%s", services, function* ([, conversation, expected]) {
    const transcript = transcriptOf(conversation)
    assert.strictEqual(described(transcript), expected)
    const back = yield* imported(transcript)
    assert.deepStrictEqual(inFront(seen(back)), inFront(seen(conversation)))
    assert.deepStrictEqual(logged(back), logged(conversation))
    const ids = allEntries(back).map(({ id }) => id)
    assert.strictEqual(new Set(ids).size, ids.length)
  })

  it("has its source, and for each message everything but what is internal to the session", () => {
    const started = {
      _tag: "Started",
      version: 1,
      session: "ours",
      at: 0,
      estimator: "x",
      cwd: "/w",
      model: "m",
      importedFrom: { format: "pi", session: "theirs" }
    } as const
    const one = entry(1, "a", {
      at: 5,
      model: "m",
      usage: { prompt: 1, answer: 2, thoughts: 0, cached: 0 },
      origin: { line: 3, ids: ["x"] }
    })
    const transcript = runSync(sessionToTranscript({ ...session(append(empty, one)), started }))
    const { handles: _handles, id: _id, tokens: _tokens, ...draft } = one
    assert.deepStrictEqual(
      [transcript.session, transcript.cwd, transcript.model, transcript.steps],
      ["theirs", "/w", "m", [{ _tag: "Message", draft }]]
    )
  })

  it("counts usage once, also for repeated messages", () => {
    const usage = { prompt: 9, answer: 2, thoughts: 0, cached: 0 }
    const before = append(append(empty, entry(1, "a")), entry(2, "b", { usage, model: "m" }))
    const [, , cut] = transcriptOf(compressed(before, shortening(1))).steps
    assert.deepStrictEqual(cut?._tag === "Compaction" ? cut.insert.map((draft) => [draft.model, draft.usage]) : [], [
      [undefined, undefined],
      ["m", undefined]
    ])
  })

  const law =
    (change: (transcript: Transcript) => Transcript): Law =>
    (world) =>
      lawOfPlayed(({ chat }) =>
        Effect.gen(function* () {
          const before = yield* chat.session
          const transcript = change(runSync(sessionToTranscript(before)))
          const after = yield* imported(transcript).pipe(Effect.orDie)
          const same = (one: ReadonlyArray<string>, other: ReadonlyArray<string>) => one.join("\n") === other.join("\n")
          if (!same(seen(after), seen(before.conversation))) return "the view is another"
          if (!same(told(viewOf(transcript)), seen(before.conversation))) return "what the agent saw is another"
          return same(logged(after), logged(before.conversation)) ? undefined : "the log is another"
        })
      )(world)

  it.effect.prop(
    "imported again has the same view and log, after compressions, undo and redo",
    [scripts],
    ([script]) =>
      property(
        law((transcript) => transcript),
        worldOf()
      )(script),
    { arbitrary: thousand("from session", 300) }
  )

  it.effect.each<readonly [string, (transcript: Transcript) => Transcript]>([
    ["without its compactions", (all) => ({ ...all, steps: all.steps.filter((one) => one._tag === "Message") })],
    [
      "that keeps one message less",
      (all) => ({
        ...all,
        steps: all.steps.map((one) =>
          one._tag === "Compaction" && one.keptFrom !== undefined ? { ...one, keptFrom: one.keptFrom + 1 } : one
        )
      })
    ],
    ["without its last step", (all) => ({ ...all, steps: all.steps.slice(0, -1) })]
  ])("a transcript %s is noticed", ([, change]) =>
    Effect.map(notices(law(change), worldOf()), (noticed) => assert.isTrue(noticed))
  )
})
