/** Sessions for tests: single events by hand, and generated histories. */

import { Arbitrary, Schema } from "effect"
import { call, isResponse, type Part, text as textPart } from "../../domain/content/Content.ts"
import { Handle, hashOf } from "../../domain/content/Handle.ts"
import * as Conversation from "../../domain/conversation/Conversation.ts"
import { type Entry, type EntryId, entryId, type Patch } from "../../domain/conversation/Conversation.ts"
import {
  applyEvent,
  emptySession,
  logVersion,
  type Session,
  type SessionEvent,
  type Started
} from "../../domain/session/Session.ts"
import * as PersistentList from "../../domain/text/PersistentList.ts"
import { TokenCount } from "../../domain/tokens/Tokens.ts"
import { storableText } from "./TempStoreContract.ts"

/** The first event of a session with this id. */
export const started = (session: string): Started => ({
  _tag: "Started",
  version: logVersion,
  session,
  at: 1_763_000_000_000,
  estimator: "test"
})

/** Makes an entry with this number: odd numbers are the user's, even ones the model's. */
export const entry = (sequence: number, parts: ReadonlyArray<Part>, source?: Entry["source"]): Entry => ({
  id: entryId(sequence),
  content: { role: sequence % 2 === 1 ? "user" : "model", parts },
  tokens: parts.map(() => 1),
  handles: parts.map(() => Handle.make("h_aaaaaaaaaa")),
  ...(source === undefined ? {} : { source })
})

/** The event that appends an entry with these parts. */
export const appended = (sequence: number, ...parts: ReadonlyArray<Part>): SessionEvent => ({
  _tag: "Appended",
  entry: entry(sequence, parts)
})

/** The event of a compression that applies this patch. */
export const compressedBy = (patch: Extract<SessionEvent, { readonly _tag: "Compressed" }>["patch"]): SessionEvent => ({
  _tag: "Compressed",
  at: 1,
  status: "COMPRESSED",
  strategy: "test",
  trigger: "auto",
  before: TokenCount.make(9),
  after: TokenCount.make(3),
  patch
})

/** Returns the session that results from these events. */
export const sessionOf = (events: ReadonlyArray<SessionEvent>): Session => events.reduce(applyEvent, emptySession)

/** The part of a session that the following requests depend on. */
export const visibleState = (session: Session) => ({
  started: session.started,
  model: session.model,
  pins: PersistentList.toArray(session.pins),
  memory: session.memory,
  next: session.conversation.next,
  version: session.conversation.version,
  tokens: Conversation.viewTokens(session.conversation),
  view: Conversation.view(session.conversation).map((item) => ({
    entry: item.entry,
    parts: Conversation.itemParts(item),
    tokens: Conversation.itemTokens(item)
  }))
})

/** Makes one part of each kind from a text, with its exact JSON text where that differs. */
const shapes: ReadonlyArray<(text: string) => { readonly part: Part; readonly source?: string }> = [
  (text) => ({ part: textPart(text) }),
  (text) => ({ part: { text, thought: true, thoughtSignature: "c2ln", later: [1, { a: null }] } }),
  (text) => ({ part: call("shell", { command: text, depth: [[1.5e-7]] }, "c1") }),
  (text) => ({ part: { functionResponse: { name: "shell", id: "c1", response: { output: text } } } }),
  (text) => ({ part: { functionResponse: { name: "shell", response: { error: text } }, extra: text.length } }),
  (text) => ({ part: { functionResponse: { name: "shell", response: text } } }),
  (text) => ({ part: { functionResponse: { name: "shell", response: { output: text, exitCode: 0 } } } }),
  (text) => ({ part: { functionResponse: { name: "shell", response: { output: "" }, parts: [{ text }] } } }),
  (text) => ({ part: { inlineData: { mimeType: "text/plain", data: text } } }),
  (text) => {
    const source = `{ "functionCall": {"name":"f","args":{"n":9007199254740993,"t":${JSON.stringify(text)},"z":1.0}} }`
    const args = { n: Number("9007199254740993"), t: text, z: 1 }
    return { part: call("f", args), source }
  },
  () => ({ part: {} })
]

const shaped = Arbitrary.all({
  shape: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: shapes.length - 1 }))),
  text: storableText
}).pipe(Arbitrary.map(({ shape, text }) => shapes[shape]?.(text) ?? { part: {} }))

const kind = Arbitrary.schema(
  Schema.Literals([
    "Appended",
    "Appended",
    "Appended",
    "Answered",
    "Compressed",
    "Compressed",
    "CompressionFailed",
    "Prepared",
    "Masked",
    "EnvironmentSent",
    "ModelSwitched",
    "Pinned",
    "Undone",
    "Redone",
    "Branched",
    "Branched",
    "Labelled",
    "FileChanged",
    "QuestionAsked",
    "QuestionAnswered",
    "CallBegan",
    "CallEnded"
  ])
)

const number = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })))

/** The random values from which an event is made. */
interface EventSeed {
  readonly kind: SessionEvent["_tag"]
  readonly parts: ReadonlyArray<{ readonly part: Part; readonly source?: string }>
  readonly numbers: ReadonlyArray<number>
}

/** What the events of one seed are made of. */
interface EventParts {
  /** The number of the next entry. */
  readonly next: number
  readonly at: number
  /** The first two numbers of the seed, and the others. */
  readonly first: number
  readonly second: number
  readonly rest: ReadonlyArray<number>
  /** The entries in the view. */
  readonly ids: ReadonlyArray<EntryId>
  /** Makes an entry with this number from the parts of the seed. */
  readonly made: (sequence: number) => Entry
}

const partsOf = ({ numbers, parts }: EventSeed, { conversation }: Session): EventParts => {
  const [first = 0, second = 0, ...rest] = numbers
  const sources = parts.flatMap(({ source }, index) => (source === undefined ? [] : [[String(index), source]]))
  return {
    next: conversation.next,
    at: 1_763_000_000_000 + conversation.next,
    first,
    second,
    rest,
    ids: Conversation.view(conversation).map((item) => item.entry.id),
    made: (sequence) =>
      entry(
        sequence,
        parts.map(({ part }) => part),
        sources.length === 0 ? undefined : Object.fromEntries(sources)
      )
  }
}

/** The entry of the view that a number names; one that may not exist when the view is empty. */
const someEntry = ({ ids }: EventParts, n: number): EntryId => ids[n % Math.max(1, ids.length)] ?? entryId(n + 1)

/** An entry that there was, in the view or not. */
const earlier = ({ first, next, second }: EventParts): EntryId => entryId(((first * 7 + second) % next) + 1)

const appendedEvent = ({ first, made, next, second }: EventParts): SessionEvent => {
  const plain = made(next)
  // Some results are bounded when they are appended.
  const bounded = Object.fromEntries(
    plain.content.parts.flatMap((part, index) =>
      isResponse(part)
        ? [[String(index), { form: "head-tail-chars" as const, size: first, tokens: TokenCount.make(second) }]]
        : []
    )
  )
  const isPlain = Object.keys(bounded).length === 0 || first < 5
  return { _tag: "Appended", entry: isPlain ? plain : { ...plain, bounded } }
}

/** Some refer to entries in the view, some to entries that left it, some to entries that do not exist yet. */
const shortenings = (event: EventParts, word: string): Patch["shorten"] =>
  event.rest.map((n, index) => ({
    entry: n === 9 ? entryId(event.next + 1) : n === 8 ? entryId(1) : someEntry(event, n),
    part: index % 2,
    replacement: textPart(`${word} ${event.next} ${n}`),
    tokens: TokenCount.make(n)
  }))

const compressedEvent = (event: EventParts): SessionEvent => {
  const { at, first, ids, made, next, second } = event
  const [from, to] = [first % Math.max(1, ids.length), second % Math.max(1, ids.length)].sort((a, b) => a - b)
  return {
    _tag: "Compressed",
    at,
    status: "COMPRESSED",
    strategy: "test",
    trigger: first < 5 ? "auto" : "manual",
    before: TokenCount.make(9),
    after: TokenCount.make(3),
    patch: {
      ...(first === 9 ? {} : { drop: { from: someEntry(event, from ?? 0), to: someEntry(event, to ?? 0) } }),
      insert: second === 9 ? [] : [{ ...made(next), author: "summary" }],
      shorten: shortenings(event, "shortened")
    }
  }
}

const branchedEvent = (event: EventParts): SessionEvent => ({
  _tag: "Branched",
  at: event.at,
  // Any entry that there was, the beginning, or now and then one that does not exist.
  from: event.first === 0 ? null : event.first === 9 ? entryId(event.next + 1) : earlier(event),
  ...(event.second < 7 ? {} : { summary: { ...event.made(event.next), author: "summary" } })
})

const fileChangedEvent = ({ at, first, second }: EventParts): SessionEvent => {
  const hash = (n: number) => hashOf(new Uint8Array(32).fill(n))
  const before = first < 5 ? null : { hash: hash(first), size: first, mode: 0o644 }
  const after = second < 2 ? null : hash(second)
  return { _tag: "FileChanged", at, path: `/work/${second}.txt`, before, after, by: "tool", ignorable: true }
}

/** Events of questions that a client answers. */
const questionEvent = (
  kind: "QuestionAsked" | "QuestionAnswered" | "CallBegan" | "CallEnded",
  event: EventParts
): SessionEvent => {
  const { at, first, second } = event
  const call = `c${first}`
  const about = { at, entry: someEntry(event, second), ignorable: true } as const
  switch (kind) {
    case "QuestionAsked": {
      const detail = second < 5 ? null : `detail ${second}`
      const question = { call, kind: "tool", name: "f", args: { n: second }, title: "f", detail } as const
      return { _tag: kind, ...about, question: { ...question, deadline: at + first } }
    }
    case "QuestionAnswered":
      return {
        _tag: kind,
        ...about,
        call,
        answer: second < 3 ? null : second < 6 ? { result: [second] } : { decision: "allow" }
      }
    case "CallBegan":
      return { _tag: kind, ...about, call }
    case "CallEnded":
      return { _tag: kind, ...about, call, status: "success", response: { output: `output ${second}` } }
  }
}

/** Makes the event of a seed in a session. Its numbers refer to entries and parts, in the view or not. */
const eventOf = (seed: EventSeed, session: Session): SessionEvent => {
  const { kind } = seed
  const event = partsOf(seed, session)
  const { at, first, made, next, second } = event
  switch (kind) {
    case "Started":
    case "Appended":
      return appendedEvent(event)
    case "Answered":
      return { _tag: "Answered", message: made(next), answer: { ...made(next + 1), model: "m" } }
    case "Undone":
    case "Redone":
      return { _tag: kind, at }
    case "CompressionFailed":
      return {
        _tag: kind,
        at,
        status: first < 5 ? "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT" : "NOOP",
        forced: second < 5,
        tokens: TokenCount.make(next)
      }
    case "EnvironmentSent":
      return { _tag: kind, at, text: `environment ${first}`, opens: second < 5 }
    case "Prepared":
      return { _tag: kind, at, strategy: "palimpsest", calls: [{ model: "m", usage: null }] }
    case "Branched":
      return branchedEvent(event)
    case "Labelled":
      return { _tag: kind, at, entry: earlier(event), label: second < 7 ? `label ${first}` : null }
    case "FileChanged":
      return fileChangedEvent(event)
    case "QuestionAsked":
    case "QuestionAnswered":
    case "CallBegan":
    case "CallEnded":
      return questionEvent(kind, event)
    case "ModelSwitched":
      return { _tag: kind, at, model: `model ${first}` }
    case "Masked":
      return { _tag: kind, at, shorten: shortenings(event, "masked") }
    case "Pinned":
      return { _tag: kind, at, pin: { entry: someEntry(event, first), part: 0, start: 0, end: second } }
    case "Compressed":
      return compressedEvent(event)
  }
}

/** Generated histories with every kind of event, for tests of stores and of all code that folds events. */
export const histories: Arbitrary.Arbitrary<ReadonlyArray<SessionEvent>> = Arbitrary.array(
  Arbitrary.all({
    kind,
    parts: Arbitrary.array(shaped, { maxLength: 3 }),
    numbers: Arbitrary.array(number, { maxLength: 5 })
  }),
  { maxLength: 14 }
).pipe(
  Arbitrary.map((seeds) => {
    let session = emptySession
    return seeds.map((seed) => {
      const event = eventOf(seed, session)
      session = applyEvent(session, event)
      return event
    })
  })
)
