import path from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setTimeout } from "node:timers/promises"
import { eventsOf, newHome, type Server, serving, tokens } from "../../support/server.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Sessions as entities over one database. `npm run test:crash` kills servers that share one. */

const store = { _tag: "Sqlite" } as const
const messages = "/v1/sessions/one/messages"

const tags = (text: string) => eventsOf(text).map(({ event }) => event._tag)
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
const said = (text: string) => eventsOf(text).flatMap(({ event }) => (event._tag === "Content" ? [event.text] : []))
const read = (asking: Promise<Response>) => asking.then((response) => response.text())

describe("a server over SQLite", () => {
  it.live("answers a message once, keeps tenants apart, and finds everything again", function* () {
    const home = newHome()
    const answers = ["first", "a dot", "second"]
    const talk = async ({ ask }: Server) => {
      await ask("POST", "/v1/sessions", { body: { id: "one" } })
      const first = await read(ask("POST", messages, { body: { id: "m1", text: "Hello" } }))
      assert.deepStrictEqual([said(first), tags(first).at(-1)], [["first"], "TurnEnded"])
      assert.deepStrictEqual(said(await read(ask("POST", messages, { body: { id: "m1", text: "Hello" } }))), ["first"])
      const media = [{ mimeType: "image/png", data: pixel }]
      const seen = await read(ask("POST", messages, { body: { id: "m2", text: "What is this?", media } }))
      assert.strictEqual(tags(seen).at(-1), "TurnEnded")
      assert.include(await read(ask("GET", "/v1/sessions/one/export?format=contents")), pixel)
      assert.strictEqual((await ask("GET", "/v1/sessions/one", { token: tokens.zeta })).status, 404)
      assert.strictEqual((await ask("POST", messages, { token: tokens.zeta, body: { text: "x" } })).status, 404)
      // Another tenant may have a session of the same id.
      assert.strictEqual((await ask("POST", "/v1/sessions", { token: tokens.zeta, body: { id: "one" } })).status, 201)
      const theirs = await read(ask("POST", messages, { token: tokens.zeta, body: { id: "m1", text: "Hi" } }))
      assert.deepStrictEqual(said(theirs), ["second"])
    }
    yield* serving({ home, store, answers }, talk)
    // A model without answers: to ask it would be a failure.
    yield* serving({ home, store, answers: [] }, async ({ ask }) => {
      assert.deepStrictEqual(said(await read(ask("POST", messages, { body: { id: "m1", text: "Hello" } }))), ["first"])
      assert.strictEqual((await ask("POST", messages, { body: { id: "m1", text: "Other words" } })).status, 409)
      const fork = await ask("POST", "/v1/sessions/one/fork", { body: { id: "two" } })
      assert.strictEqual(fork.status, 201)
      assert.include(await read(ask("GET", "/v1/sessions/two/export?format=claude")), "first")
      assert.strictEqual((await ask("DELETE", "/v1/sessions/one")).status, 204)
      assert.strictEqual((await ask("GET", "/v1/sessions/one")).status, 404)
      assert.include(await read(ask("GET", "/v1/sessions/one", { token: tokens.zeta })), "second")
    })
  })

  it.live("answers messages after a restart that it had accepted but not answered", function* () {
    const home = newHome()
    const settings = { drainSeconds: 0 }
    yield* serving({ home, store, settings, answers: () => ({ _tag: "Hang" }) }, async ({ ask }) => {
      await ask("POST", "/v1/sessions", { body: { id: "one" } })
      await ask("POST", messages, { body: { id: "m1", text: "Hello" } })
    })
    const text = yield* serving({ home, store, answers: ["at last"] }, ({ ask }) =>
      read(ask("GET", `${messages}/m1/events`))
    )
    assert.deepStrictEqual([said(text), tags(text).at(-1)], [["at last"], "TurnEnded"])
  })

  it.live("answers a message whose events another opening of the session has taken over", function* () {
    const home = newHome()
    const file = path.join(home, "elsewhere", "chats.db")
    let asked = 0
    const answers = () => {
      asked += 1
      const database = new DatabaseSync(file)
      database.exec("UPDATE palimpsest_turn_owners SET owner = 'another'")
      database.close()
      return "the answer"
    }
    const text = yield* serving({ home, store: { ...store, file }, answers }, async ({ ask }) => {
      await ask("POST", "/v1/sessions", { body: { id: "one" } })
      return read(ask("POST", messages, { body: { id: "m1", text: "Hello" } }))
    })
    assert.deepStrictEqual([said(text).at(-1), tags(text).at(-1), asked], ["the answer", "TurnEnded", 1])
  })

  it.live("forgets the engine's messages of days ago, and still answers no message twice", function* () {
    const home = newHome()
    const file = path.join(home, "elsewhere", "chats.db")
    const elsewhere = { ...store, file } as const
    const hello = ({ ask }: Server) => read(ask("POST", messages, { body: { id: "m1", text: "Hello" } }))
    yield* serving({ home, store: elsewhere, answers: ["first"] }, async (server) => {
      await server.ask("POST", "/v1/sessions", { body: { id: "one" } })
      await hello(server)
    })
    const database = new DatabaseSync(file)
    const count = () =>
      ["cluster_messages", "cluster_replies"].map((table) => {
        const [row] = database.prepare(`SELECT COUNT(*) AS count FROM ${table}`).all()
        return Number(row?.["count"])
      })
    assert.deepStrictEqual(count(), [1, 1])
    // Ids begin with the time in milliseconds.
    const age = (2n * 86_400_000n) << 22n
    database.exec(`UPDATE cluster_messages SET id = id - ${age}`)
    database.exec(`UPDATE cluster_replies SET request_id = request_id - ${age}`)
    const text = yield* serving({ home, store: elsewhere, answers: [] }, async (server) => {
      while (count().some((rows) => rows > 0)) await setTimeout(20)
      return hello(server)
    })
    database.close()
    assert.deepStrictEqual(said(text), ["first"])
  })
})
