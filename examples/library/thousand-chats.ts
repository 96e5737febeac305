/**
 * A thousand chats in one database, before and after a restart.
 *
 *   node thousand-chats.ts
 *
 * It needs no key and no network: the model is scripted. The database is Node's own SQLite (Node 22.16 or newer). Every other
 * store has the same contract: files with `home: Home.layer("/var/lib/support")`, PostgreSQL with the layer of a SqlClient. It prints:
 *
 *   asked        … chats, two turns each
 *   restarted    … sessions; chat 17 has 4 messages, the last: "Order 17 is on its way."
 */
import { Console, Effect, Stream } from "effect"
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Chats, Content, Conversation, Palimpsest, Session } from "palimpsest"
import { SqliteSessionStore } from "palimpsest/node"
import { ScriptedModel } from "palimpsest/testing"

const database = join(mkdtempSync(join(tmpdir(), "chats-")), "chats.db")

/** Answers with the number of the order that it is asked about. */
const Model = ScriptedModel.layer(({ contents }) => `Order ${/\d+/.exec(JSON.stringify(contents))?.[0]} is on its way.`)

/** A process of its own, over the same database. */
const started = () => Effect.provide(Palimpsest.layer({ model: Model, store: SqliteSessionStore.layer(database) }), { local: true })

const ask = Effect.fn("ask")(function* (n: number) {
  const chat = yield* Chats.open(`customer-${n}`)
  yield* Stream.runDrain(chat.send(`Where is order ${n}?`))
  yield* Stream.runDrain(chat.send("And now?"))
}, Effect.scoped)

const customers = Array.from({ length: Number(process.argv[2] ?? 1_000) }, (_, n) => n)
await Effect.runPromise(Effect.forEach(customers, ask, { concurrency: 50, discard: true }).pipe(started()))
console.log(`asked        ${customers.length} chats, two turns each`)

const look = Effect.gen(function* () {
  const { length } = yield* Session.SessionStore.use(({ list }) => list)
  const entries = Conversation.entries(yield* Effect.flatMap(Chats.open("customer-17"), (chat) => chat.conversation))
  const last = entries.at(-1)
  const text = last === undefined ? "" : Content.plainText(last.content)
  yield* Console.log(`restarted    ${length} sessions; chat 17 has ${entries.length} messages, the last: "${text}"`)
})
await Effect.runPromise(look.pipe(Effect.scoped, started()))
