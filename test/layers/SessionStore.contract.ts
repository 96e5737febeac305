import { assert, layer } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Arbitrary, Effect, Exit, type FileSystem, Layer, type Path, type PlatformError, Schema, Scope } from "effect"
import { call, type Part, text as textPart } from "../../src/domain/Content.ts"
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
import { SessionStore } from "../../src/services/SessionStore.ts"
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

/** The session that a new start finds. */
export const reopened = (id: string) =>
  Effect.scoped(SessionStore.use((store) => Effect.map(store.open(id), ({ session, torn }) => ({ session, torn }))))

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
  Schema.Literals(["Appended", "Appended", "Compressed", "CompressionFailed", "Undone", "Redone"])
)

/** Histories of any kind, valid in their ids, as far as a store can care. */
export const histories: Arbitrary.Arbitrary<ReadonlyArray<SessionEvent>> = Arbitrary.array(
  Arbitrary.all({ kind, parts: Arbitrary.array(shaped, { maxLength: 3 }) }),
  { maxLength: 8 }
).pipe(
  Arbitrary.map((drafts) => {
    let sequence = 0
    return drafts.map(({ kind, parts }): SessionEvent => {
      const at = 1_763_000_000_000 + sequence
      switch (kind) {
        case "Undone":
        case "Redone":
          return { _tag: kind, at }
        case "CompressionFailed":
          return { _tag: kind, at, status: "NOOP", forced: false, tokens: TokenCount.make(sequence) }
      }
      sequence += 1
      const sources = parts.flatMap(({ source }, index) => (source === undefined ? [] : [[String(index), source]]))
      const made = entry(
        sequence,
        parts.map(({ part }) => part),
        sources.length === 0 ? undefined : Object.fromEntries(sources)
      )
      if (kind === "Appended") return { _tag: kind, entry: made }
      return {
        _tag: kind,
        at,
        status: "COMPRESSED",
        strategy: "test",
        trigger: "auto",
        before: TokenCount.make(9),
        after: TokenCount.make(3),
        patch: { insert: [made], shorten: [], drop: { from: entryId(1), to: entryId(1) } }
      }
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

    it.effect.prop(
      "reads any history back equal",
      [histories],
      ([events]) =>
        Effect.gen(function* () {
          const storage = yield* variant.make
          yield* SessionStore.use((store) =>
            Effect.flatMap(store.create(started("s1")), (log) => Effect.forEach(events, log.append))
          ).pipe(Effect.scoped, Effect.provide(storage))
          const found = yield* reopened("s1").pipe(Effect.provide(storage))
          assert.deepStrictEqual(found, { session: fold([started("s1"), ...events]), torn: 0 })
        }).pipe(Effect.scoped),
      { arbitrary: { runs: variant.runs }, timeout: 120_000 }
    )
  })
}
