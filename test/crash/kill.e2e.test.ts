import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import { cpSync, existsSync, readdirSync, readFileSync, utimesSync } from "node:fs"
import path from "node:path"
import { user, text } from "../../src/domain/content/Content.ts"
import { entries } from "../../src/domain/conversation/Conversation.ts"
import { restoreSpilled } from "../../src/domain/session/LogFormat.ts"
import { LogReader } from "../../src/domain/session/LogReader.ts"
import { emptySession, type Session, type SessionEvent, applyEvent } from "../../src/domain/session/Session.ts"
import * as Bytes from "../../src/domain/text/Bytes.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as FileSessionStore from "../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../src/layers/session/FileTempStore.ts"
import { Chat } from "../../src/services/chat/Chat.ts"
import { SessionStore } from "../../src/services/session/SessionStore.ts"
import { illegal } from "../support/legal.ts"
import { newFolder } from "../support/paths.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { bundledProgram } from "./bundledProgram.ts"
import {
  chance,
  type Death,
  type Errand,
  hashOf,
  isMessage,
  type Line,
  type Operation,
  seenOf,
  sessionId
} from "./sight.ts"

/**
 * A process that holds a conversation is killed, again and again on the same files, and each time its files are looked at.
 * `npm run test:crash` kills it 300 times.
 */

const kills = process.env["MODE"] === "kills" ? 300 : 18
/** Lives of a process on the same files, one after the other. */
const lives = 6

/** When we kill it: so many lines after its start, and a moment later. */
interface Blow {
  readonly line: number
  readonly millis: number
}

interface Life {
  readonly lines: ReadonlyArray<Line>
  readonly wasKilled: boolean
  readonly stderr: string
}

const busyFor = (millis: number): void => {
  const end = performance.now() + millis
  while (performance.now() < end);
}

const program = Effect.runSync(Effect.cached(bundledProgram("child")))

/** Runs the child until it is killed. */
const live = (errand: Errand, blow: Blow | undefined) => Effect.flatMap(program, (file) => lived(file, errand, blow))

const lived = (file: string, errand: Errand, blow: Blow | undefined) =>
  Effect.callback<Life>((resume) => {
    const child = spawn(process.execPath, [file, JSON.stringify(errand)], { stdio: ["ignore", "pipe", "pipe"] })
    let out = ""
    let stderr = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      out += chunk
      if (blow === undefined || out.split("\n").length <= blow.line) return
      busyFor(blow.millis)
      child.kill("SIGKILL")
    })
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      stderr += chunk
    })
    child.on("close", (_, signal) => {
      // The last piece is nothing, or half a line: what that was to say was not said.
      const lines = Effect.sync(() =>
        out
          .split("\n")
          .slice(0, -1)
          .map((line): Line => JSON.parse(line))
      )
      resume(Effect.map(lines, (said) => ({ lines: said, wasKilled: signal === "SIGKILL", stderr })))
    })
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Events of a log by their first letters, `F` for a compression that failed and `Q` for a question with its answer. */
const letters = {
  Started: "S",
  Appended: "A",
  Answered: "Q",
  ModelSwitched: "M",
  Pinned: "P",
  Compressed: "C",
  CompressionFailed: "F",
  Prepared: "W",
  EnvironmentSent: "E",
  Masked: "K",
  Undone: "U",
  Redone: "R",
  Branched: "B",
  Labelled: "L",
  FileChanged: "D",
  QuestionAsked: "?",
  QuestionAnswered: "!",
  CallBegan: ">",
  CallEnded: "<"
} as const

/** What each operation writes: when it is done, and when it is not. */
const writes: Readonly<Record<Operation, { readonly done: RegExp; readonly under: RegExp }>> = {
  open: { done: /^S?$/, under: /^S?$/ },
  send: { done: /^[CF]*Q$/, under: /^[CF]*Q?$/ },
  respond: { done: /^A[CF]*A$/, under: /^(?:A[CF]*A?)?$/ },
  append: { done: /^AA$/, under: /^A{0,2}$/ },
  compress: { done: /^[CF]?$/, under: /^[CF]?$/ },
  undo: { done: /^U?$/, under: /^U?$/ },
  redo: { done: /^R?$/, under: /^R?$/ },
  pin: { done: /^P?$/, under: /^P?$/ },
  switch: { done: /^M?$/, under: /^M?$/ },
  close: { done: /^$/, under: /^$/ }
}

/** What is known of a folder from the lives so far. */
interface Known {
  /** Whole lines that were there after the last life. */
  readonly bytes: Uint8Array
  /** Messages that were acknowledged, with their hashes. */
  readonly messages: Map<string, string>
}

const logOf = (folder: string) => path.join(folder, `${sessionId}.jsonl`)

/** The log as its own words have it: every event, and where its last whole line ends. */
const eventsOf = (folder: string): { readonly events: ReadonlyArray<SessionEvent>; readonly bytes: Uint8Array } => {
  const log = logOf(folder)
  if (!existsSync(log)) return { events: [], bytes: new Uint8Array() }
  const bytes = readFileSync(log)
  const reader = new LogReader(0)
  const events = reader.push(bytes).map((line) => {
    const texts = new Map(
      [...line.spilled].map(([key, { hash }]) => [
        key,
        Bytes.decode(readFileSync(path.join(`${log}.blobs`, hash))).text
      ])
    )
    const event = restoreSpilled(line, texts)
    if (event._tag === "Failure") return assert.fail(event.failure._tag)
    return event.success
  })
  assert.isUndefined(reader.problem)
  return { events, bytes: bytes.subarray(0, reader.good) }
}

/** What one life left behind. */
interface Seen {
  readonly violations: ReadonlyArray<string>
  /** What it was doing. */
  readonly doing: Operation | undefined
  /** Whether the summarizing model had been asked in it. */
  readonly isAsked: boolean
  /** Whether there was a turn that a stored compression had left room for. */
  readonly isSpared: boolean
  readonly torn: boolean
  readonly known: Known
}

/** What was acknowledged is there, in its order, and behind it at most what was under way. */
const compare = (known: Known, { lines, stderr, wasKilled }: Life, folder: string) => {
  const violations: Array<string> = []
  const { bytes, events } = eventsOf(folder)
  const states: Array<Session> = [emptySession]
  for (const event of events) states.push(applyEvent(states.at(-1) ?? emptySession, event))
  const tags = events.map(({ _tag }) => letters[_tag]).join("")
  if (!wasKilled) violations.push(`it was not killed: ${stderr}`)
  if (!Buffer.from(bytes).subarray(0, known.bytes.length).equals(known.bytes)) violations.push("old lines have changed")
  let at = eventCount(known.bytes)
  let doing: Operation | undefined
  let isAsked = false
  let isBelow: boolean | undefined
  let isSpared = false
  for (const line of lines) {
    if (line._tag === "failed") violations.push(`${line.operation} failed: ${line.message}`)
    if (line._tag === "begin") doing = line.operation
    if (line._tag !== "failed") isAsked = line._tag === "call"
    if (line._tag !== "ack") continue
    const { operation } = line
    const from = at
    // The last that fits: a failure that was only noted changes nothing that is seen.
    const found = states.findLastIndex(
      (state, index) =>
        index >= from && writes[operation].done.test(tags.slice(from, index)) && seenOf(state) === line.seen
    )
    if (found < 0) {
      violations.push(`${operation} was acknowledged, and of it there is "${tags.slice(from)}"`)
      break
    }
    at = found
    for (const [id, hash] of line.entries) known.messages.set(id, hash)
    if (operation === "send" && line.calls > 0 && !/[CF]/.test(tags.slice(from, at))) {
      violations.push("a compression of a turn was paid for and not stored")
    }
    if (isBelow === true && line.calls > 0) violations.push("a stored compression was paid for again")
    isSpared ||= isBelow === true && tags.slice(0, from).includes("C")
    // Only for the turn after an opening.
    isBelow = operation === "open" ? line.isBelow : undefined
    doing = undefined
  }
  const rest = tags.slice(at)
  if (violations.length === 0 && !(doing === undefined ? /^$/ : writes[doing].under).test(rest)) {
    violations.push(`"${rest}" was written by ${doing ?? "nothing"}`)
  }
  return { violations, doing, isAsked, isSpared, bytes, last: states.at(-1) ?? emptySession }
}

const eventCount = (bytes: Uint8Array): number => bytes.reduce((count, byte) => (byte === 10 ? count + 1 : count), 0)

const stores = (folder: string) =>
  Layer.fresh(
    FileSessionStore.layer(folder).pipe(Layer.provide(FileTempStore.folders), Layer.provide(NodeServices.layer))
  )

/** Names that a kill may leave behind, at most one a kill: what was not yet a blob, a log or a lock, and the lock of who broke one. */
const leftover = /^(?:\.palimpsest-\w+-\d+-\w+-\w+\.tmp|s1\.lock\.\w+)$/

/** Opens the session as a new process would, and goes on in it. */
const reopen = Effect.fnUntraced(function* (folder: string, last: Session, known: Known, count: number) {
  // Nobody turns this clock: what is done does not wait.
  yield* TestClock.setTime(Number.MAX_SAFE_INTEGER)
  const violations: Array<string> = []
  const torn = yield* Effect.gen(function* () {
    const opened = yield* SessionStore.use((store) => store.open(sessionId))
    if (seenOf(opened.session) !== seenOf(last)) violations.push("the session opens as another than its log says")
    const whole = yield* opened.log.whole
    if (seenOf(whole) !== seenOf(last)) violations.push("the session is another than its log says")
    const there = new Map(
      entries(whole.conversation)
        .filter(isMessage)
        .map((entry) => [String(entry.id), hashOf(entry)])
    )
    for (const [id, hash] of known.messages) {
      if (there.get(id) !== hash) violations.push(`${id} was acknowledged and is ${there.has(id) ? "another" : "gone"}`)
    }
    const chat = yield* Chat.keep(opened)
    const problem = illegal(yield* chat.contents)
    if (problem !== undefined) violations.push(problem)
    yield* chat.append([{ content: user(text("after it")) }])
    return opened.torn > 0
  }).pipe(Effect.scoped, Effect.provide(stores(folder)))
  const blobs = path.join(folder, `${sessionId}.jsonl.blobs`)
  const names = [...readdirSync(folder), ...(existsSync(blobs) ? readdirSync(blobs) : [])]
  const others = names.filter((name) => !/^s1\.jsonl(?:\.blobs)?$|^[a-z2-7]{52}$/.test(name))
  violations.push(...others.filter((name) => !leftover.test(name)).map((name) => `left behind: ${name}`))
  if (others.length > count) violations.push(`${others.length} files left behind by ${count} kills`)
  return { torn, violations }
}, Effect.provide(Offline.layer))

const fresh = (): string => newFolder("kill-")

/** Looks at the files of a life in a copy, so that the next one finds them as they are. */
const look = Effect.fnUntraced(function* (folder: string, life: Life, known: Known, count: number) {
  const { bytes, last, ...compared } = compare(known, life, folder)
  const seen: Seen = { ...compared, torn: false, known: { ...known, bytes } }
  if (last.started === undefined || compared.violations.length > 0) return seen
  const copy = path.join(fresh(), "sessions")
  cpSync(folder, copy, { recursive: true })
  const { torn, violations } = yield* reopen(copy, last, known, count)
  return { ...seen, torn, violations }
})

/** A lock that is not written whole is not taken over for ten seconds, as somebody may be about to write it: those pass. */
const letTimePass = (folder: string): void => {
  const lock = path.join(folder, `${sessionId}.lock`)
  if (existsSync(lock) && !readFileSync(lock, "utf8").endsWith("}")) utimesSync(lock, 0, 0)
}

const nothing = (): Known => ({ bytes: new Uint8Array(), messages: new Map() })

/**
 * How a life ends: by itself, at a call of the disk and at a line by turns, which is the same every time; the last two of a
 * row by us, at some moment.
 */
const endOf = (seed: number, life: number): { readonly blow?: Blow; readonly death?: Death } => {
  const roll = chance(seed * 7919)
  if (life >= lives - 2) return { blow: { line: 1 + roll(40), millis: roll(30) / 10 } }
  if (life % 2 === 0) {
    // Every other one while the session is opened.
    const early: Death = { _tag: "call", number: 1 + roll(14), half: false }
    return { death: roll(2) === 0 ? early : { _tag: "call", number: 1 + roll(400), half: roll(4) > 0 } }
  }
  const kind = (["begin", "call", "ack"] as const)[roll(3)] ?? "ack"
  return { death: { _tag: "line", kind, number: 1 + roll(kind === "call" ? 8 : 20) } }
}

/** Some lives on the same files. */
const row = Effect.fnUntraced(function* (first: number) {
  const folder = path.join(fresh(), "sessions")
  const all: Array<Seen> = []
  for (let life = 0; life < lives; life += 1) {
    const seed = first + life
    const { blow, death } = endOf(seed, life)
    if (existsSync(folder)) letTimePass(folder)
    const lived = yield* live({ folder, seed, death }, blow)
    const seen = yield* look(folder, lived, all.at(-1)?.known ?? nothing(), life + 1)
    all.push({ ...seen, violations: seen.violations.map((violation) => `${seed}: ${violation}`) })
    if (seen.violations.length > 0) break
  }
  return all
})

describe("a killed process", () => {
  it.effect(
    `keeps every acknowledged turn and a valid conversation, and repeats no stored compression (${kills} kills)`,
    () =>
      Effect.gen(function* () {
        const firsts = Array.from({ length: kills / lives }, (_, index) => 1 + index * lives)
        const seen = (yield* Effect.forEach(firsts, row, { concurrency: 2 })).flat()
        assert.deepStrictEqual(
          seen.flatMap(({ violations }) => violations),
          []
        )
        assert.strictEqual(seen.length, kills)
        // They did hit what they were to hit.
        const inside = seen.flatMap(({ doing }) => doing ?? [])
        for (const operation of ["open", "send", "respond", "append"] as const) {
          assert.include(inside, operation)
        }
        assert.isAbove(seen.filter(({ doing }) => doing === undefined).length, 0)
        assert.isTrue(seen.some(({ torn }) => torn))
        assert.isTrue(seen.some(({ isAsked }) => isAsked))
        assert.isTrue(seen.some(({ isSpared }) => isSpared))
      }),
    kills * 20_000
  )

  it.effect("is detected when it acknowledges before it writes", function* () {
    const folder = path.join(fresh(), "sessions")
    // The line that says that the first turn is done is its last.
    const life = yield* live(
      { folder, seed: 1, isHasty: true, death: { _tag: "line", kind: "ack", number: 2 } },
      undefined
    )
    const { violations } = yield* look(folder, life, nothing(), 1)
    assert.deepStrictEqual(violations, [`send was acknowledged, and of it there is ""`])
  })
})
