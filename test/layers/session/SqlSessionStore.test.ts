import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Context, Effect, Exit, FileSystem, Layer, Option, Scope, Stream } from "effect"
import { Migrator, SqlClient } from "effect/sql"
import { execFileSync } from "node:child_process"
import { plainText, text as textPart, user } from "../../../src/domain/content/Content.ts"
import type { SessionEvent } from "../../../src/domain/session/Session.ts"
import { Chats, Palimpsest } from "../../../src/index.ts"
import * as SqliteClient from "../../../src/layers/platform/SqliteClient.ts"
import * as SqliteSessionStore from "../../../src/layers/session/SqliteSessionStore.ts"
import { migrations } from "../../../src/layers/session/SqlSessionSchema.ts"
import * as SqlSessionStore from "../../../src/layers/session/SqlSessionStore.ts"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { appended, sessionOf, started } from "../../../src/layers/testing/SessionHistories.ts"
import { SessionStore } from "../../../src/services/session/SessionStore.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** A database file that does not exist yet. */
const freshFile = FileSystem.FileSystem.use((fs) => fs.makeTempDirectoryScoped()).pipe(
  Effect.map((folder) => `${folder}/sessions.db`),
  Effect.provide(NodeServices.layer)
)

const events = [appended(1, textPart("hello")), appended(2, textPart("x".repeat(9_000)))]
const reload = SessionStore.use((store) => Effect.scoped(Effect.flatMap(store.open("s1"), ({ log }) => log.whole)))

describe("sessions in a database", () => {
  it.live("go on after the tables of an older version were migrated", function* () {
    const client = SqliteClient.layer(yield* freshFile)
    const [first] = Object.entries(migrations)
    yield* Migrator.make({})({
      loader: Migrator.fromRecord(Object.fromEntries(first === undefined ? [] : [first])),
      table: "palimpsest_migrations"
    }).pipe(Effect.provide(client))
    // What version 1 stored.
    const stored = SqlSessionStore.layer().pipe(Layer.provide(client))
    yield* SessionStore.use((store) =>
      Effect.scoped(Effect.flatMap(store.create(started("s1")), (log) => Effect.forEach(events, log.append)))
    ).pipe(Effect.provide(stored))
    yield* SqlClient.SqlClient.use((sql) =>
      Effect.all([
        sql`DROP INDEX palimpsest_checkpoints`,
        sql`DROP INDEX palimpsest_last_lines`,
        sql`DELETE FROM palimpsest_migrations WHERE migration_id > 1`
      ])
    ).pipe(Effect.provide(client))
    const found = yield* reload.pipe(Effect.provide(Layer.fresh(stored)))
    assert.deepStrictEqual(found, sessionOf([started("s1"), ...events]))
    const names = yield* SqlClient.SqlClient.use(
      (sql) => sql<{ name: string }>`SELECT name FROM sqlite_master
        WHERE name IN ('palimpsest_checkpoints', 'palimpsest_last_lines')`
    ).pipe(Effect.provide(client))
    assert.strictEqual(names.length, 2)
  })

  it.live("of two tenants with the same id have nothing in common", function* () {
    const client = yield* Layer.build(SqliteClient.layer(yield* freshFile))
    const storeOf = (tenant: string) =>
      Effect.map(
        Layer.build(Layer.fresh(SqlSessionStore.layer({ tenant })).pipe(Layer.provide(Layer.succeedContext(client)))),
        (context) => Context.get(context, SessionStore)
      )
    const [one, other, nobody] = [yield* storeOf("one"), yield* storeOf("other"), yield* storeOf("")]
    const add = (store: SessionStore["Service"], ...all: ReadonlyArray<SessionEvent>) =>
      Effect.scoped(Effect.flatMap(store.create(started("s1")), ({ append }) => Effect.forEach(all, append)))
    yield* add(one, ...events)
    assert.deepStrictEqual([yield* other.list, yield* nobody.list], [[], []])
    assert.strictEqual((yield* Effect.flip(other.summary("s1"))).reason._tag, "SessionNotFound")
    yield* add(other, appended(1, textPart("another")))
    yield* one.rename("s1", "a title")
    // Both are open at once, each by its own owner.
    yield* Effect.scoped(Effect.all([one.open("s1"), other.open("s1")]))
    assert.deepStrictEqual(yield* one.events("s1"), [started("s1"), ...events])
    assert.deepStrictEqual(yield* other.events("s1"), [started("s1"), appended(1, textPart("another"))])
    assert.deepStrictEqual(
      [(yield* one.summary("s1")).title, (yield* other.summary("s1")).title],
      ["a title", undefined]
    )
    assert.deepStrictEqual([(yield* one.blobs("s1")).length, (yield* other.blobs("s1")).length], [1, 0])
    yield* one.remove("s1")
    assert.deepStrictEqual([yield* one.list, yield* other.list], [[], ["s1"]])
    assert.strictEqual((yield* other.events("s1")).length, 2)
  })

  it.live("are not written within a transaction of the program, whose rollback would take them back", function* () {
    const client = SqliteClient.layer(yield* freshFile)
    const App = Palimpsest.layer({
      model: ScriptedModel.layer((_, n) => `answer ${n}`),
      store: SqlSessionStore.layer()
    }).pipe(Layer.provideMerge(client))
    const said = (words: string) => [{ content: user(textPart(words)) }]
    const reasonOf = (exit: Exit.Exit<unknown, { readonly reason?: { readonly _tag: string } }>) =>
      Exit.isSuccess(exit) ? "succeeded" : Option.getOrThrow(Cause.findErrorOption(exit.cause)).reason?._tag
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* SessionStore
      const chat = yield* Chats.open("a")
      yield* chat.append(said("first"))
      yield* Effect.scoped(Effect.andThen(Chats.open("b"), Effect.void))
      const refused: Record<string, unknown> = {}
      const note = <A, R>(name: string, write: Effect.Effect<A, unknown, R>) =>
        Effect.map(Effect.exit(write), (exit) => {
          refused[name] = reasonOf(exit as Exit.Exit<unknown, { readonly reason?: { readonly _tag: string } }>)
        })
      const closing = yield* Scope.make()
      yield* Effect.provideService(Chats.open("c"), Scope.Scope, closing)
      yield* sql
        .withTransaction(
          Effect.gen(function* () {
            yield* note("append", chat.append(said("inside")))
            yield* note("turn", Stream.runDrain(chat.send("a turn inside")))
            yield* note("compress", chat.compress({ forced: true }))
            yield* note("create", Effect.scoped(Chats.open("new")))
            yield* note("open", Effect.scoped(Chats.open("b")))
            yield* note("rename", store.rename("a", "title"))
            yield* note("remove", store.remove("b"))
            yield* note("blob", Effect.scoped(chat.append(said("y".repeat(20_000)))))
            yield* note("layer", Effect.provide(SessionStore, Layer.fresh(SqlSessionStore.layer())))
            assert.strictEqual((yield* store.list).length, 3)
            yield* Scope.close(closing, Exit.void)
            return yield* Effect.fail("my rule")
          })
        )
        .pipe(Effect.flip)
      const tag = "SessionInTransaction"
      assert.deepStrictEqual(refused, {
        append: tag,
        turn: tag,
        compress: tag,
        create: tag,
        open: tag,
        rename: tag,
        remove: tag,
        blob: tag,
        layer: "SessionUnavailable"
      })
      // What the chat has is what the database has, and it goes on.
      yield* chat.append(said("after"))
      yield* Stream.runDrain(chat.send("next turn"))
      const contents = yield* chat.contents
      assert.deepStrictEqual(contents.map(plainText), ["first", "after", "next turn", "answer 0"])
      assert.deepStrictEqual((yield* store.summary("a")).title, undefined)
      yield* Effect.scoped(Chats.open("c"))
    }).pipe(Effect.scoped, Effect.provide(App))
  })

  it.live("are read again by their chat when a rollback that it did not see took lines back", function* () {
    const client = SqliteClient.layer(yield* freshFile)
    const App = Palimpsest.layer({ model: ScriptedModel.layer(() => "answer"), store: SqlSessionStore.layer() }).pipe(
      Layer.provideMerge(client)
    )
    const said = (words: string) => [{ content: user(textPart(words)) }]
    yield* Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const chat = yield* Chats.open("a")
      yield* chat.append(said("first"))
      yield* sql`SAVEPOINT theirs`
      yield* chat.append(said("lost"))
      yield* chat.append(said("lost, too"))
      yield* sql`ROLLBACK TO theirs`
      yield* sql`RELEASE theirs`
      const error = yield* Effect.flip(chat.append(said("found out")))
      assert.include(error.message, "was changed by another program (4 lines expected, 2 found)")
      assert.deepStrictEqual((yield* chat.contents).map(plainText), ["first"])
      yield* Stream.runDrain(chat.send("and on"))
      assert.deepStrictEqual((yield* chat.contents).map(plainText), ["first", "and on", "answer"])
    }).pipe(Effect.scoped, Effect.provide(App))
    const again = Effect.scoped(Effect.flatMap(Chats.open("a"), (chat) => chat.contents))
    assert.deepStrictEqual((yield* Effect.provide(again, App)).map(plainText), ["first", "and on", "answer"])
  })

  it.live("of a newer version are refused", function* () {
    const client = SqliteClient.layer(yield* freshFile)
    const stored = SqlSessionStore.layer().pipe(Layer.provide(client))
    yield* SessionStore.use(({ list }) => list).pipe(Effect.provide(stored))
    yield* SqlClient.SqlClient.use(
      (sql) => sql`INSERT INTO palimpsest_migrations (migration_id, name) VALUES (999, 'later')`
    ).pipe(Effect.provide(client))
    const error = yield* Effect.flip(reload.pipe(Effect.provide(Layer.fresh(stored))))
    assert.include(error.message, "made by a newer version (its tables are version 999); update palimpsest")
  })

  it.live("take appends again when a full disk has room, and lose nothing", function* () {
    const file = yield* freshFile
    const client = yield* Layer.build(SqliteClient.layer(file))
    const sql = Layer.succeedContext(client)
    const pages = (count: number) =>
      SqlClient.SqlClient.use((_) => _.unsafe(`PRAGMA max_page_count = ${count}`)).pipe(Effect.provide(client))
    yield* Effect.gen(function* () {
      const store = yield* SessionStore
      const log = yield* store.create(started("s1"))
      yield* pages(1)
      let stored = 0
      let error
      while (error === undefined && stored < 100) {
        const exit = yield* Effect.result(log.append(appended(stored + 1, textPart("y".repeat(4_000)))))
        if (exit._tag === "Failure") error = exit.failure
        else stored += 1
      }
      assert.strictEqual(
        error?.message,
        "the session could not be written, and is unchanged: the database refused it (database or disk is full)"
      )
      yield* pages(10_000)
      yield* log.append(appended(stored + 1, textPart("y".repeat(4_000))))
      const all = Array.from({ length: stored + 1 }, (_, at) => appended(at + 1, textPart("y".repeat(4_000))))
      assert.deepStrictEqual(yield* log.whole, sessionOf([started("s1"), ...all]))
    }).pipe(Effect.scoped, Effect.provide(SqlSessionStore.layer().pipe(Layer.provide(sql))))
  })

  it.live("that cannot have a folder fail with one line", function* () {
    const store = SqliteSessionStore.layer("/proc/palimpsest/sessions.db")
    const error = yield* Effect.flip(Effect.scoped(Layer.build(store)))
    assert.match(error.message, /^the database \/proc\/palimpsest\/sessions\.db cannot be opened: [^\n]*$/)
  })

  const foreign = {
    "a view without an end":
      "drop table palimpsest_sessions; create view Palimpsest_Sessions as with recursive r(i) as (select 1 union all select i + 1 from r) select i as id from r",
    "a virtual table": "create virtual table palimpsest_lines using fts5 (line)",
    "a computed column": "alter table palimpsest_sessions add column other text as (hex(zeroblob(400000000)))",
    "a trigger": "create trigger t after insert on palimpsest_sessions begin delete from palimpsest_sessions; end"
  }
  it.live.each(Object.entries(foreign))("that somebody gave %s are refused in one line", function* ([, change]) {
    const file = yield* freshFile
    const { DatabaseSync } = process.getBuiltinModule("node:sqlite")
    const database = new DatabaseSync(file)
    database.exec(`create table palimpsest_sessions (id text, line text); ${change}`)
    database.close()
    const error = yield* Effect.flip(Effect.scoped(Layer.build(SqliteSessionStore.layer(file))))
    assert.match(error.message, /^the database \S+ cannot be opened: [^\n]*, which this program did not make$/)
  })

  it.live("are not looked for in a pipe", function* () {
    const file = yield* freshFile
    execFileSync("mkfifo", [file])
    const error = yield* Effect.flip(Effect.scoped(Layer.build(SqliteSessionStore.layer(file))))
    assert.include(error.message, "not a regular file")
  })
})
