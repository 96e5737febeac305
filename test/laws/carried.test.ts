import { Effect, Result } from "effect"
import { payload } from "../../src/domain/content/Content.ts"
import { type Draft, entries, itemParts, sourceOf, view } from "../../src/domain/conversation/Conversation.ts"
import { foreignNotes, projectMessages, sentJson } from "../../src/domain/conversation/Projection.ts"
import { emptySession, type Session, applyEvent } from "../../src/domain/session/Session.ts"
import { decode, encode } from "../../src/domain/text/Bytes.ts"
import { runtimeMark } from "../../src/domain/text/RuntimeMark.ts"
import { runSync } from "../../src/domain/text/SlicedWork.ts"
import { readContents } from "../../src/domain/transcripts/gemini/ContentsReader.ts"
import { isProblem, problemText } from "../../src/domain/transcripts/Problem.ts"
import { sessionToTranscript } from "../../src/domain/transcripts/SessionToTranscript.ts"
import type { Transcript } from "../../src/domain/transcripts/Transcript.ts"
import { importTranscript } from "../../src/services/transcripts/ImportTranscript.ts"
import {
  type Law,
  lawOfPlayed,
  nativeScripts,
  notices,
  property,
  scripts,
  thousand,
  worldOf
} from "../support/generate.ts"
import { readText, transcriptOf, type WrittenForm, writtenText } from "../support/transcripts.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** A conversation converted to another agent's format, and on to the next, stays the same conversation. */

/** A format in both directions: a session to the text of a file, and the text to a session. */
interface Format {
  readonly write: (session: Session) => string
  readonly read: (text: string) => Transcript
}

const ways: ReadonlyArray<WrittenForm> = ["claude", "codex", "gemini", "gemini document", "pi"]

const formats: Readonly<Record<string, Format>> = Object.fromEntries(
  ways.map((form) => [
    form,
    {
      write: (session: Session) => writtenText(form, runSync(sessionToTranscript(session))).text,
      // An empty conversation of Claude Code is an empty file.
      read: (text: string) => (text.trim() === "" ? transcriptOf([]) : readText(text))
    }
  ])
)
const contents: Format = {
  write: (session) => decode(encode(`${sentJson(projectMessages(session.conversation))}\n`)).text,
  read: (text) => {
    const read = runSync(readContents(JSON.parse(text), text))
    if (isProblem(read)) throw new Error(problemText(read))
    return read
  }
}

const carried = Effect.fnUntraced(function* (session: Session, format: Format) {
  const read = yield* Effect.try({ try: () => format.read(format.write(session)), catch: String }).pipe(Effect.result)
  if (Result.isFailure(read)) return read.failure
  const events = yield* importTranscript(read.success)
  return events.reduce(applyEvent, emptySession)
})

/** Everything of a part that must be preserved. */
const told = (draft: Draft, part: Draft["content"]["parts"][number], at: number): string =>
  [draft.content.role, draft.author ?? "", payload(part, sourceOf(draft, at)).text, JSON.stringify(part)].join(" ")

/** The view, part by part: messages may be joined or split, but their content and order must stay. */
const shown = ({ conversation }: Session): ReadonlyArray<string> =>
  view(conversation).flatMap((item) => itemParts(item).map((part, at) => told(item.entry, part, at)))

/** All parts of the whole conversation. */
const said = ({ conversation }: Session): ReadonlyArray<string> =>
  entries(conversation).flatMap((entry) => entry.content.parts.map((part, at) => told(entry, part, at)))

const differs = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): string | undefined => {
  const at = Array.from({ length: Math.max(before.length, after.length) }, (_, index) => index).find(
    (index) => before[index] !== after[index]
  )
  return at === undefined
    ? undefined
    : `part ${at}: ${before[at]?.slice(0, 300) ?? "nothing"} became ${after[at]?.slice(0, 300) ?? "nothing"}`
}

/** Whether the items of `part` occur in `whole` in the same order, possibly with others in between. */
const isWithin = (part: ReadonlyArray<string>, whole: ReadonlyArray<string>): boolean => {
  let next = 0
  for (const one of whole) if (one === part[next]) next += 1
  return next === part.length
}

/** There, on and back again: a number selects the formats. */
const wayOf = (turn: number): ReadonlyArray<string> =>
  [0, 1 + (turn % (ways.length - 1)), 0].map((offset) => ways[(turn + offset) % ways.length] ?? "")

/** Converts a conversation through several formats and checks it after each. */
const staysTheSame =
  (known: Readonly<Record<string, Format>>): Law =>
  (world) =>
  (script) => {
    // Selected by the script, so that it shrinks with it.
    const order = wayOf(script.beats.length + script.steps.length)
    return lawOfPlayed(({ chat }) =>
      Effect.gen(function* () {
        const before = yield* chat.session
        let session = before
        for (const [leg, name] of order.entries()) {
          const format = known[name]
          if (format === undefined) return `no format ${name}`
          const after = yield* carried(session, format).pipe(Effect.orDie)
          const way = order.slice(0, leg + 1).join(" → ")
          if (typeof after === "string") return `${way}: ${after}`
          const view = differs(shown(before), shown(after))
          if (view !== undefined) return `${way}: in the view, ${view}`
          const whole = before.conversation.undoable === undefined
          const log = whole ? differs(said(before), said(after)) : undefined
          if (log !== undefined) return `${way}: in the log, ${log}`
          // A document cannot hold the messages before a compaction.
          if (name !== "gemini document" && !isWithin(said(session), said(after)))
            return `${way}: something that was said is gone`
          session = after
        }
        return undefined
      })
    )(world)(script)
  }

const law = staysTheSame(formats)

describe("a conversation converted from any format to any other and back", () => {
  it.effect.prop(
    "keeps texts, calls, responses, ids, authors and order, compressed or not",
    [scripts],
    ([script]) => property(law, worldOf())(script),
    { arbitrary: thousand("carried", 250) }
  )

  it.effect.prop(
    "as contents keeps what is sent, except for a note before a snapshot: a file's claim to be the runtime's proves nothing",
    [nativeScripts],
    ([script]) =>
      property(
        lawOfPlayed(({ chat }) =>
          Effect.gen(function* () {
            const before = yield* chat.session
            const after = yield* carried(before, contents).pipe(Effect.orDie)
            if (typeof after === "string") return after
            const again = yield* carried(after, contents).pipe(Effect.orDie)
            if (typeof again === "string") return again
            const [one, noted, twice] = [before, after, again].map((session) => contents.write(session))
            if (noted !== twice) return "the second time differs from the first"
            const snapshot = JSON.stringify({ text: runtimeMark }).slice(0, -2)
            const noteBefore = `${JSON.stringify({ text: foreignNotes.summary })},${snapshot}`
            const other = one?.includes(noteBefore) === true ? noted : noted?.replaceAll(noteBefore, snapshot)
            return one === other ? undefined : `${one?.slice(0, 500)} became ${other?.slice(0, 500)}`
          })
        ),
        worldOf()
      )(script),
    { arbitrary: thousand("carried as contents", 500) }
  )

  const mutant = (change: (text: string) => string) =>
    Object.fromEntries(
      Object.entries(formats).map(([name, format]) => [
        name,
        { ...format, write: (session: Session) => change(format.write(session)) }
      ])
    )
  const eachLine = (text: string, change: (value: Record<string, unknown>) => unknown) =>
    text
      .split("\n")
      .map((line) => (line === "" ? line : JSON.stringify(change(JSON.parse(line)))))
      .join("\n")
  it.effect.each<readonly [string, (text: string) => string]>([
    ["without the exact parts", (text) => eachLine(text, ({ palimpsest: _, ...rest }) => rest)],
    ["without its last record", (text) => text.replace(/[^\n]+\n$/, "")],
    ["with its signatures cut", (text) => text.replaceAll("c2ln", "c2l")],
    ["with numbers as JavaScript has them", (text) => text.replaceAll("9007199254740993", "9007199254740992")],
    ["with a word changed", (text) => text.replaceAll("Fix", "Mend")],
    ["without the note that says who speaks", (text) => text.replaceAll(foreignNotes.summary, "")]
  ])("the checks detect mutants %s", ([, change]) =>
    Effect.map(notices(staysTheSame(mutant(change)), worldOf(), scripts), (noticed) => assert.isTrue(noticed))
  )

  it("every format is paired with every other", () => {
    const met = new Set(Array.from({ length: 20 }, (_, turn) => wayOf(turn).slice(0, 2).join(" → ")))
    assert.strictEqual(met.size, ways.length * (ways.length - 1))
  })
})
