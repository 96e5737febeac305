import { assert, layer } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Arbitrary, Context, Effect, Exit, FileSystem, Layer, Path, type PlatformError, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import { pid } from "node:process"
import { call, isResponse, type Part, text as textPart } from "../../src/domain/Content.ts"
import * as Chain from "../../src/domain/Chain.ts"
import * as Conversation from "../../src/domain/Conversation.ts"
import { type Entry, entryId } from "../../src/domain/Conversation.ts"
import { Handle } from "../../src/domain/Handle.ts"
import {
  emptySession,
  logVersion,
  type Session,
  type SessionEvent,
  type Started,
  step
} from "../../src/domain/Session.ts"
import { TokenCount } from "../../src/domain/Tokens.ts"
import * as FileTempStore from "../../src/layers/FileTempStore.ts"
import { SessionStore } from "../../src/services/SessionStore.ts"
import { BlobFolder } from "../../src/services/TempStore.ts"
import { text } from "./TempStore.contract.ts"

/** One implementation of SessionStore. */
export interface SessionStoreVariant {
  readonly name: string
  /** A layer over fresh storage. Providing the layer again is a restart: the sessions are still there. */
  readonly make: Effect.Effect<
    Layer.Layer<SessionStore>,
    PlatformError.PlatformError,
    Scope.Scope | FileSystem.FileSystem | Path.Path
  >
  /** Cases of each property. */
  readonly runs: number
}

/** The blobs of a session as files beside its log, over the file system of the context. */
export const fileBlobs: Layer.Layer<BlobFolder, never, FileSystem.FileSystem | Path.Path> = Layer.effect(
  BlobFolder,
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const platform = Layer.merge(Layer.succeed(FileSystem.FileSystem, fs), Layer.succeed(Path.Path, path))
    return { at: (folder) => Layer.provide(FileTempStore.layer(folder), platform) }
  })
)

export const started = (session: string): Started => ({
  _tag: "Started",
  version: logVersion,
  session,
  at: 1_763_000_000_000,
  estimator: "test"
})

export const entry = (sequence: number, parts: ReadonlyArray<Part>, source?: Entry["source"]): Entry => ({
  id: entryId(sequence),
  content: { role: sequence % 2 === 1 ? "user" : "model", parts },
  tokens: parts.map(() => 1),
  handles: parts.map(() => Handle.make("h_aaaaaaaaaa")),
  ...(source === undefined ? {} : { source })
})

export const appended = (sequence: number, ...parts: ReadonlyArray<Part>): SessionEvent => ({
  _tag: "Appended",
  entry: entry(sequence, parts)
})

export const fold = (events: ReadonlyArray<SessionEvent>): Session => events.reduce(step, emptySession)

/** The session that a new start finds, all of it. */
export const reopened = (id: string) =>
  Effect.scoped(
    SessionStore.use((store) =>
      Effect.gen(function* () {
        const { log, torn } = yield* store.open(id)
        return { session: yield* log.whole, torn }
      })
    )
  )

/** All of a session that what is sent from now on depends on. */
export const seen = (session: Session) => ({
  started: session.started,
  model: session.model,
  pins: Chain.toArray(session.pins),
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

/** What a part of each kind looks like around some text, and the JSON text it was read from where that says more. */
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
    return { part: JSON.parse(source), source }
  },
  () => ({ part: {} })
]

const shaped = Arbitrary.all({
  shape: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: shapes.length - 1 }))),
  text
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
    "Masked",
    "ModelSwitched",
    "Pinned",
    "Undone",
    "Redone"
  ])
)

const number = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 })))

interface Beat {
  readonly kind: SessionEvent["_tag"]
  readonly parts: ReadonlyArray<{ readonly part: Part; readonly source?: string }>
  readonly numbers: ReadonlyArray<number>
}

/** The event that a beat makes in a session; entries and parts are named by number, in the view or not. */
const eventOf = ({ kind, numbers, parts }: Beat, session: Session): SessionEvent => {
  const { next } = session.conversation
  const at = 1_763_000_000_000 + next
  const made = (sequence: number) => {
    const sources = parts.flatMap(({ source }, index) => (source === undefined ? [] : [[String(index), source]]))
    return entry(
      sequence,
      parts.map(({ part }) => part),
      sources.length === 0 ? undefined : Object.fromEntries(sources)
    )
  }
  const [first = 0, second = 0, ...rest] = numbers
  const ids = Conversation.view(session.conversation).map((item) => item.entry.id)
  const named = (n: number) => ids[n % Math.max(1, ids.length)] ?? entryId(n + 1)
  switch (kind) {
    case "Started":
    case "Appended": {
      const plain = made(next)
      // Some results are bounded when they come.
      const bounded = Object.fromEntries(
        plain.content.parts.flatMap((part, index) =>
          isResponse(part)
            ? [[String(index), { form: "head-tail-chars" as const, size: first, tokens: TokenCount.make(second) }]]
            : []
        )
      )
      return {
        _tag: "Appended",
        entry: Object.keys(bounded).length === 0 || first < 5 ? plain : { ...plain, bounded }
      }
    }
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
    case "ModelSwitched":
      return { _tag: kind, at, model: `model ${first}` }
    case "Masked":
      return {
        _tag: kind,
        at,
        shorten: rest.map((n, index) => ({
          entry: n === 9 ? entryId(next + 1) : named(n),
          part: index % 2,
          replacement: textPart(`masked ${next} ${n}`),
          tokens: TokenCount.make(n)
        }))
      }
    case "Pinned":
      return { _tag: kind, at, pin: { entry: named(first), part: 0, start: 0, end: second } }
    case "Compressed": {
      const [from, to] = [first % Math.max(1, ids.length), second % Math.max(1, ids.length)].sort((a, b) => a - b)
      return {
        _tag: kind,
        at,
        status: "COMPRESSED",
        strategy: "test",
        trigger: first < 5 ? "auto" : "manual",
        before: TokenCount.make(9),
        after: TokenCount.make(3),
        patch: {
          ...(first === 9 ? {} : { drop: { from: named(from ?? 0), to: named(to ?? 0) } }),
          insert: second === 9 ? [] : [{ ...made(next), author: "summary" }],
          // Some of them name what is in the view, some what left it, some what is not there yet.
          shorten: rest.map((n, index) => ({
            entry: n === 9 ? entryId(next + 1) : n === 8 ? entryId(1) : named(n),
            part: index % 2,
            replacement: textPart(`shortened ${next} ${n}`),
            tokens: TokenCount.make(n)
          }))
        }
      }
    }
  }
}

/** Histories of any kind: what a store has to keep, and what it must not trip over. */
export const histories: Arbitrary.Arbitrary<ReadonlyArray<SessionEvent>> = Arbitrary.array(
  Arbitrary.all({
    kind,
    parts: Arbitrary.array(shaped, { maxLength: 3 }),
    numbers: Arbitrary.array(number, { maxLength: 5 })
  }),
  { maxLength: 14 }
).pipe(
  Arbitrary.map((beats) => {
    let session = emptySession
    return beats.map((beat) => {
      const event = eventOf(beat, session)
      session = step(session, event)
      return event
    })
  })
)

/** What every SessionStore must do. */
export const sessionStoreContract = (variant: SessionStoreVariant) => {
  layer(NodeServices.layer)(variant.name, (it) => {
    it.effect("creates, appends, closes, and reads back after a restart", () =>
      Effect.gen(function* () {
        const storage = yield* variant.make
        const events = [appended(1, textPart("hello")), appended(2, textPart("x".repeat(9_000))), appended(3, {})]
        yield* Effect.gen(function* () {
          const store = yield* SessionStore
          const log = yield* store.create(started("s1"))
          assert.strictEqual(log.id, "s1")
          for (const event of events) yield* log.append(event)
        }).pipe(Effect.scoped, Effect.provide(storage))
        const found = yield* reopened("s1").pipe(Effect.provide(storage))
        assert.deepStrictEqual(found, { session: fold([started("s1"), ...events]), torn: 0 })
      })
    )

    it.effect("goes on where it stopped", () =>
      Effect.gen(function* () {
        const storage = yield* variant.make
        const events = [1, 2, 3, 4, 5].map((n) => appended(n, textPart(`turn ${n}`)))
        yield* Effect.scoped(SessionStore.use((store) => store.create(started("s1")))).pipe(Effect.provide(storage))
        for (const event of events) {
          yield* Effect.scoped(
            SessionStore.use((store) => Effect.flatMap(store.open("s1"), ({ log }) => log.append(event)))
          ).pipe(Effect.provide(storage))
        }
        const found = yield* reopened("s1").pipe(Effect.provide(storage))
        assert.deepStrictEqual(found.session, fold([started("s1"), ...events]))
      })
    )

    it.effect("lists newest first, and nothing at first", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        assert.deepStrictEqual(yield* store.list, [])
        for (const id of ["0193b", "0193c", "0193a"]) yield* store.create(started(id))
        assert.deepStrictEqual(yield* store.list, ["0193c", "0193b", "0193a"])
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("refuses to create what exists, open or closed, and leaves it as it was", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        const scope = yield* Scope.make()
        const log = yield* store.create(started("s1")).pipe(Scope.provide(scope))
        const create = Effect.flip(Effect.scoped(store.create(started("s1"))))
        assert.strictEqual((yield* create).reason._tag, "SessionExists")
        yield* log.append(appended(1, textPart("still mine")))
        yield* Scope.close(scope, Exit.void)
        assert.strictEqual((yield* create).reason._tag, "SessionExists")
        const found = yield* Effect.scoped(store.open("s1"))
        assert.deepStrictEqual(found.session, fold([started("s1"), appended(1, textPart("still mine"))]))
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("says which session is not there", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        const error = yield* Effect.flip(store.open("s1"))
        assert.deepStrictEqual([error.reason._tag, error.message], ["SessionNotFound", "there is no session s1"])
        assert.deepStrictEqual(yield* store.list, [])
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("takes no id that could be anything but a name", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        for (const id of ["", "..", "../s1", "a/b", "a\\b", "a.b", "a b", "é", "a\0", "a\n", "x".repeat(65)]) {
          assert.strictEqual((yield* Effect.flip(store.open(id))).reason._tag, "SessionNotFound")
          assert.strictEqual((yield* Effect.flip(store.create(started(id)))).reason._tag, "SessionUnavailable")
        }
        yield* store.create(started("x".repeat(64)))
        yield* store.create(started("019a8b3c-7d1e-7000-8000-000000000000"))
        assert.strictEqual((yield* store.list).length, 2)
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("has one writer a session, and another as soon as the first is done", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        yield* store.create(started("other"))
        const first = yield* Scope.make()
        yield* store.create(started("s1")).pipe(Scope.provide(first))
        const second = yield* Scope.make()
        for (let i = 0; i < 2; i += 1) {
          const error = yield* store.open("s1").pipe(Scope.provide(second), Effect.flip)
          assert.strictEqual(error.reason._tag, "SessionLocked")
        }
        yield* Scope.close(first, Exit.void)
        // In the scope where it failed before: a refusal leaves nothing behind.
        yield* store.open("s1").pipe(Scope.provide(second))
        assert.strictEqual((yield* Effect.flip(Effect.scoped(store.open("s1")))).reason._tag, "SessionLocked")
        yield* Scope.close(second, Exit.void)
        yield* Effect.scoped(store.open("s1"))
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("takes nothing from a writer whose scope is closed", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        const log = yield* Effect.scoped(store.create(started("s1")))
        const error = yield* Effect.flip(log.append(appended(1, textPart("too late"))))
        assert.strictEqual(error.reason._tag, "SessionUnavailable")
        assert.strictEqual(error.message, "session s1 was closed; open it again")
        assert.deepStrictEqual((yield* reopened("s1")).session, fold([started("s1")]))
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("appends in the order in which it was asked to, large and small", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        const events = Array.from({ length: 30 }, (_, index) =>
          appended(index + 1, textPart(index % 3 === 0 ? "x".repeat(20_000 + index) : `${index}`))
        )
        yield* Effect.scoped(
          Effect.flatMap(store.create(started("s1")), (log) =>
            Effect.forEach(events, log.append, { concurrency: "unbounded" })
          )
        )
        assert.deepStrictEqual((yield* reopened("s1")).session, fold([started("s1"), ...events]))
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("says of every session what a list shows, the one written last first", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        assert.deepStrictEqual(yield* store.summaries, [])
        const long = `  please\n\tfix \u001b[31mthis\u001b[0m: ${"x".repeat(300)}`
        yield* Effect.scoped(
          Effect.gen(function* () {
            const log = yield* store.create({ ...started("0190a"), model: "m1", cwd: "/home" })
            yield* log.append({ _tag: "Appended", entry: { ...entry(1, [textPart("where")]), author: "environment" } })
            yield* log.append(appended(2, textPart("no person's words")))
            yield* log.append(appended(3, call("shell", {})))
            yield* log.append({ _tag: "Answered", message: entry(5, [textPart(long)]), answer: entry(6, []) })
            yield* log.append(appended(7, textPart("later words")))
          })
        )
        yield* TestClock.adjust("1 second")
        yield* Effect.scoped(store.create(started("0190b")))
        const found = yield* store.summaries
        assert.deepStrictEqual(
          found.map(({ id }) => id).sort(),
          yield* Effect.map(store.list, (ids) => [...ids].sort())
        )
        assert.deepStrictEqual(yield* Effect.forEach(found, ({ id }) => store.summary(id)), found)
        for (const id of ["nowhere", "../0190a"]) {
          assert.strictEqual((yield* Effect.flip(store.summary(id))).reason._tag, "SessionNotFound")
        }
        const [a] = found.filter(({ id }) => id === "0190a")
        const [b] = found.filter(({ id }) => id === "0190b")
        assert.deepStrictEqual([a?.model, a?.cwd, a?.startedAt], ["m1", "/home", 1_763_000_000_000])
        assert.deepStrictEqual(a?.firstPrompt, `please fix this: ${"x".repeat(183)}`)
        assert.deepStrictEqual([a?.title, a?.holder, a?.problem], [undefined, undefined, undefined])
        assert.isAbove(a?.bytes ?? 0, b?.bytes ?? Infinity)
        assert.deepStrictEqual([b?.firstPrompt, b?.model, b?.cwd], [undefined, undefined, undefined])
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("says who writes a session at the moment", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        yield* TestClock.setTime(17)
        const held = Effect.map(store.summaries, ([only]) => only?.holder)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* store.create(started("s1"))
            assert.deepStrictEqual(yield* held, { pid, since: 17 })
          })
        )
        assert.isUndefined(yield* held)
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("gives a session a title of one line, also while somebody writes it", () =>
      Effect.gen(function* () {
        const store = yield* SessionStore
        const title = Effect.map(store.summaries, ([only]) => only?.title)
        const log = yield* store.create(started("s1"))
        for (const [given, kept] of [
          ["first", "first"],
          ["  two\nlines\u0007\u001b[2J and \u202ea tab\t ", "two lines\\u{7} and \\u{202e}a tab"],
          [`${"é".repeat(199)}😀`, "é".repeat(199)],
          ["x".repeat(5_000), "x".repeat(200)]
        ] as const) {
          yield* store.rename("s1", given)
          assert.strictEqual(yield* title, kept)
        }
        yield* log.append(appended(1, textPart("goes on")))
        yield* store.rename("s1", " \n ")
        assert.isUndefined(yield* title)
        assert.strictEqual((yield* Effect.flip(store.rename("s2", "x"))).reason._tag, "SessionNotFound")
        assert.strictEqual((yield* Effect.flip(store.rename("../s1", "x"))).reason._tag, "SessionNotFound")
      }).pipe(Effect.provide(Layer.unwrap(variant.make)))
    )

    it.effect("deletes a session for good, but not while somebody writes it", () =>
      Effect.gen(function* () {
        const storage = yield* variant.make
        yield* Effect.gen(function* () {
          const store = yield* SessionStore
          yield* Effect.scoped(
            Effect.gen(function* () {
              const log = yield* store.create(started("s1"))
              yield* log.append(appended(1, textPart("x".repeat(9_000))))
              yield* store.rename("s1", "a title")
              assert.strictEqual((yield* Effect.flip(store.remove("s1"))).reason._tag, "SessionLocked")
              yield* log.append(appended(2, textPart("still there")))
            })
          )
          yield* Effect.scoped(store.create(started("s2")))
          yield* store.remove("s1")
          assert.deepStrictEqual(yield* store.list, ["s2"])
          assert.strictEqual((yield* Effect.flip(store.remove("s1"))).reason._tag, "SessionNotFound")
          assert.strictEqual((yield* Effect.flip(store.remove(".."))).reason._tag, "SessionNotFound")
        }).pipe(Effect.provide(storage))
        yield* Effect.gen(function* () {
          const store = yield* SessionStore
          assert.strictEqual((yield* Effect.flip(store.open("s1"))).reason._tag, "SessionNotFound")
          yield* Effect.scoped(store.create(started("s1")))
          assert.deepStrictEqual((yield* store.summaries).map(({ id, title }) => [id, title]).sort(), [
            ["s1", undefined],
            ["s2", undefined]
          ])
        }).pipe(Effect.provide(storage))
      })
    )

    it.effect.prop(
      "law 1: reads any history back equal, and shows the model the same, opened again wherever one likes",
      [histories, Arbitrary.array(number, { maxLength: 4 })],
      ([events, stops]) =>
        Effect.gen(function* () {
          const storage = yield* variant.make
          const store = Context.get(yield* Layer.build(storage), SessionStore)
          yield* Effect.scoped(store.create(started("s1")))
          const cuts = [...new Set([...stops.map((stop) => stop % (events.length + 1)), events.length])]
          let from = 0
          for (const to of cuts.sort((a, b) => a - b)) {
            yield* Effect.scoped(
              Effect.gen(function* () {
                const opened = yield* store.open("s1")
                const told = fold([started("s1"), ...events.slice(0, from)])
                assert.deepStrictEqual(seen(opened.session), seen(told))
                if (opened.complete) assert.deepStrictEqual(opened.session, told)
                for (const event of events.slice(from, to)) yield* opened.log.append(event)
                assert.deepStrictEqual(yield* opened.log.whole, fold([started("s1"), ...events.slice(0, to)]))
              })
            )
            from = to
          }
          const { complete, session, torn } = yield* Effect.scoped(store.open("s1"))
          const told = fold([started("s1"), ...events])
          assert.deepStrictEqual({ ...seen(session), torn }, { ...seen(told), torn: 0 })
          if (complete) assert.deepStrictEqual(session, told)
          assert.deepStrictEqual(yield* reopened("s1").pipe(Effect.provide(storage)), { session: told, torn: 0 })
        }).pipe(Effect.scoped),
      { arbitrary: { runs: variant.runs } }
    )
  })
}
