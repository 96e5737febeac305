import { utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { ServeSettings } from "../../../src/domain/serve/ServeSettings.ts"
import type { Answers } from "../../../src/layers/testing/ScriptedModel.ts"
import { newHome, reading, type Server, tokens } from "../../support/server.ts"
import { overEachStore, servingOver } from "../../support/serveStores.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Sessions as records of a product: metadata, lists, and everything of a tenant, exported and deleted. The same over every store. */

interface Row {
  readonly id: string
  readonly title: string | null
  readonly metadata: Readonly<Record<string, string>>
}

overEachStore((store) => {
  describe.concurrent(`records over ${store._tag}`, () => {
    const servingStore = servingOver(store)
    const serving = (
      answers: Answers,
      use: (server: Server, home: string) => Promise<void>,
      limits: NonNullable<ServeSettings["limits"]> = {}
    ) => servingStore({ answers, settings: { drainSeconds: 0, limits } }, use)
    const json = async (asking: Promise<Response>) => JSON.parse(await (await asking).text())

    it.live("of two changes at the same time none is lost", function* () {
      yield* serving([], async ({ ask }) => {
        await ask("POST", "/v1/sessions", { body: { id: "one" } })
        const changes = [{ metadata: { customer: "7" } }, { instruction: "Be brief." }, { approvals: {} }]
        await Promise.all(changes.map(async (body) => ask("PATCH", "/v1/sessions/one", { body })))
        const { record } = await json(ask("GET", "/v1/sessions/one"))
        assert.deepStrictEqual(record, Object.assign({}, ...changes))
      })
    })

    it.live("a client that reads a new session, and follows it from there, misses no event", function* () {
      yield* serving(["answered"], async ({ ask }) => {
        await ask("POST", "/v1/sessions", { body: { id: "one" } })
        const { lastEvent } = await json(ask("GET", "/v1/sessions/one"))
        await (await ask("POST", "/v1/sessions/one/messages", { body: { text: "Hello" } })).text()
        const stream = reading(await ask("GET", "/v1/sessions/one/events", { headers: { "last-event-id": lastEvent } }))
        await stream.until("TurnEnded")
        const tags = stream.events().map(({ event }) => event._tag)
        assert.deepStrictEqual(
          tags.filter((tag) => tag !== "Ping"),
          ["TurnStarted", "ModelInfo", "Content", "Finished", "TurnEnded"]
        )
      })
    })

    it.live("a client that goes on from what it read before a restart is told of what happened since", function* () {
      const home = newHome()
      const serve = <A>(use: (server: Server) => Promise<A>) =>
        servingStore({ home, answers: ["answered"], settings: { drainSeconds: 0 } }, use)
      const before = yield* serve(async ({ ask }) => {
        await ask("POST", "/v1/sessions", { body: { id: "one" } })
        return json(ask("GET", "/v1/sessions/one"))
      })
      yield* serve(async ({ ask }) => {
        await (await ask("POST", "/v1/sessions/one/messages", { body: { id: "m1", text: "Hello" } })).text()
      })
      yield* serve(async ({ ask }) => {
        const after = async ({ lastEvent }: { readonly lastEvent: string }) =>
          reading(await ask("GET", "/v1/sessions/one/events", { headers: { "last-event-id": lastEvent } }))
        const read = await after(await json(ask("GET", "/v1/sessions/one")))
        const away = await after(before)
        await ask("POST", "/v1/sessions/one/messages", { body: { id: "m2", text: "And now?" } })
        await Promise.all([read.until("TurnStarted"), away.until("TurnStarted")])
        const [missed, told] = [away, read].map((stream) => stream.events().find(({ event }) => event._tag !== "Ping"))
        assert.deepInclude(told, { message: "m2", event: { _tag: "TurnStarted", text: "And now?" } })
        assert.isTrue(missed?.event._tag === "Reset" || missed?.message === "m1")
      })
    })

    it.live("metadata are in lists, change and are removed, and go along with a fork", function* () {
      yield* serving(["answered"], async ({ ask }) => {
        const metadata = { customer: "7", "order.state": "open" }
        const created: Row = await json(ask("POST", "/v1/sessions", { body: { id: "one", title: "Tea", metadata } }))
        assert.deepStrictEqual(created.metadata, metadata)
        await (await ask("POST", "/v1/sessions/one/messages", { body: { text: "Hello" } })).text()
        const forked: Row = await json(ask("POST", "/v1/sessions/one/fork", { body: { id: "two" } }))
        assert.deepStrictEqual(forked.metadata, metadata)
        const change = async (body: object): Promise<Row> => json(ask("PATCH", "/v1/sessions/one", { body }))
        assert.deepInclude(await change({ metadata: { customer: "8" } }), { title: "Tea", metadata: { customer: "8" } })
        assert.deepStrictEqual((await change({ title: "Coffee" })).metadata, { customer: "8" })
        const rows: ReadonlyArray<Row> = (await json(ask("GET", "/v1/sessions"))).sessions
        const listed = Object.fromEntries(rows.map((row) => [row.id, row.metadata]))
        assert.deepStrictEqual(listed, { one: { customer: "8" }, two: metadata })
        assert.deepStrictEqual((await change({ metadata: null })).metadata, {})
        const many = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`k${at}`, "v"]))
        for (const bad of [many, { "a b": "x" }, { a: "x".repeat(513) }, { a: 1 }]) {
          assert.strictEqual((await ask("PATCH", "/v1/sessions/one", { body: { metadata: bad } })).status, 400)
        }
      })
    })

    it.live("an export has every session of the tenant, and no other's", function* () {
      yield* serving(
        () => "the answer",
        async ({ ask }, home) => {
          for (const id of ["one", "two"]) {
            await ask("POST", "/v1/sessions", { body: { id, title: `Title ${id}`, metadata: { of: id } } })
            await (await ask("POST", `/v1/sessions/${id}/messages`, { body: { text: `words of ${id}` } })).text()
          }
          await ask("POST", "/v1/sessions", { body: { id: "theirs" }, token: tokens.zeta })
          const response = await ask("GET", "/v1/export")
          assert.strictEqual(response.headers.get("content-type"), "application/x-ndjson")
          const lines = (await response.text())
            .trimEnd()
            .split("\n")
            .map((line): Readonly<Record<string, unknown>> => JSON.parse(line))
          const heads = lines.filter(({ _tag }) => _tag === "Session")
          assert.deepStrictEqual(heads.map(({ id }) => id).sort(), ["one", "two"])
          assert.deepInclude(
            heads.find(({ id }) => id === "two"),
            { title: "Title two", record: { metadata: { of: "two" } } }
          )
          const text = JSON.stringify(lines)
          assert.notInclude(text, home)
          for (const words of ["words of one", "words of two", "the answer"]) assert.include(text, words)
          assert.strictEqual(lines.filter(({ _tag }) => _tag === "Started").length, 2)
          assert.notInclude(text, "theirs")
          const one = await (await ask("GET", "/v1/sessions/one/export")).text()
          assert.include(lines.map((line) => JSON.stringify(line)).join("\n"), one.split("\n")[1] ?? "none")
        }
      )
    })

    it.live("an export goes on after a session that cannot be read, and says which", function* () {
      yield* serving(["answered"], async ({ ask }, home) => {
        for (const id of ["one", "two", "three"]) {
          await ask("POST", "/v1/sessions", { body: { id, metadata: { of: id } } })
        }
        if (store._tag === "Files") {
          writeFileSync(join(home, "tenants", "acme", "served", "one.json"), "broken")
          writeFileSync(join(home, "tenants", "acme", "sessions", "two.jsonl"), `{"_tag":"Nothing"}\nbroken\n{}\n`)
        } else {
          store.query(
            home,
            "UPDATE palimpsest_lines SET line = 'broken' WHERE session IN (SELECT session FROM palimpsest_sessions WHERE id = 'two')"
          )
          store.query(home, "UPDATE palimpsest_session_records SET record = 'broken' WHERE session = 'one'")
        }
        const lines = (await (await ask("GET", "/v1/export")).text()).trimEnd().split("\n")
        const heads = lines.map((line) => JSON.parse(line)).filter(({ _tag }) => _tag === "Session")
        const problem = "it cannot be read"
        assert.deepStrictEqual(Object.fromEntries(heads.map(({ id, problem: why, record }) => [id, { record, why }])), {
          one: { record: null, why: problem },
          two: { record: { metadata: { of: "two" } }, why: problem },
          three: { record: { metadata: { of: "three" } }, why: undefined }
        })
        assert.strictEqual(lines.filter((line) => JSON.parse(line)._tag === "Started").length, 2)
      })
    })

    it.live("a record that cannot be read is a failure, and not an empty one", function* () {
      yield* serving(["answered"], async ({ ask }, home) => {
        const tools = [{ name: "look_up", description: "Looks up", parameters: { type: "object" } }]
        for (const id of ["one", "two"]) await ask("POST", "/v1/sessions", { body: { id, tools } })
        if (store._tag === "Files") {
          writeFileSync(join(home, "tenants", "acme", "served", "two.json"), `{"tools":`)
        } else {
          store.query(home, "UPDATE palimpsest_session_records SET record = '{\"tools\":' WHERE session = 'two'")
        }
        const two = "/v1/sessions/two"
        assert.strictEqual((await ask("GET", two)).status, 502)
        assert.strictEqual((await ask("PATCH", two, { body: { metadata: { of: "two" } } })).status, 502)
        assert.strictEqual((await ask("POST", `${two}/fork`, { body: {} })).status, 502)
        const listed: ReadonlyArray<Row & { readonly problem: string | null }> = (
          await json(ask("GET", "/v1/sessions"))
        ).sessions
        const problems = { one: null, two: "it cannot be read" }
        assert.deepStrictEqual(Object.fromEntries(listed.map(({ id, problem }) => [id, problem])), problems)
        const lines = (await (await ask("GET", "/v1/export")).text()).trimEnd().split("\n")
        const heads = lines.map((line) => JSON.parse(line)).filter(({ _tag }) => _tag === "Session")
        assert.deepStrictEqual(Object.fromEntries(heads.map(({ id, problem = null }) => [id, problem])), problems)
        assert.strictEqual(lines.filter((line) => line.includes(`"_tag":"Started"`)).length, 2)
        // It is deleted like any other, and the next session of this id begins with a new one.
        assert.strictEqual((await ask("DELETE", two)).status, 204)
        assert.strictEqual((await ask("POST", "/v1/sessions", { body: { id: "two" } })).status, 201)
        assert.deepStrictEqual((await json(ask("GET", two))).record, {})
      })
    })

    it.live("later pages have what was changed here after the first one", function* () {
      yield* serving([], async ({ ask }) => {
        for (const id of ["a", "b", "c", "d"]) {
          await ask("POST", "/v1/sessions", { body: { id, title: `Title ${id}` } })
          await new Promise((resolve) => setTimeout(resolve, 5))
        }
        const page = async (cursor: string | null): Promise<{ next: string | null; sessions: ReadonlyArray<Row> }> =>
          json(ask("GET", `/v1/sessions?limit=1${cursor === null ? "" : `&cursor=${cursor}`}`))
        const rest = async (cursor: string | null): Promise<ReadonlyArray<string>> => {
          const { next, sessions } = await page(cursor)
          const shown = sessions.map(({ metadata, title }) => `${title}${metadata["of"] ?? ""}`)
          return next === null ? shown : [...shown, ...(await rest(next))]
        }
        const { next } = await page(null)
        assert.deepStrictEqual(await rest(next), ["Title c", "Title b", "Title a"])
        await ask("PATCH", "/v1/sessions/b", { body: { title: "Tea" } })
        await ask("PATCH", "/v1/sessions/a", { body: { metadata: { of: "7" } } })
        assert.deepStrictEqual(await rest(next), ["Title c", "Tea", "Title a7"])
        await ask("DELETE", "/v1/sessions/c")
        assert.deepStrictEqual(await rest(next), ["Tea", "Title a7"])
        await ask("POST", "/v1/sessions", { body: { id: "e", title: "Title e" } })
        assert.deepStrictEqual(await rest(null), ["Title e", "Title d", "Tea", "Title a7"])
      })
    })

    it.live("what was set for a session goes with it, also when the settings retain it no more", function* () {
      const home = newHome()
      writeFileSync(join(home, "settings.json"), JSON.stringify({ sessionRetention: { maxCount: 1 } }))
      for (const id of ["one", "two"]) {
        yield* servingStore({ home, settings: { drainSeconds: 0 } }, async ({ ask }) => {
          await ask("POST", "/v1/sessions", { body: { id, metadata: { of: `ZANZIBAR-${id}` } } })
          await (await ask("POST", `/v1/sessions/${id}/messages`, { body: { text: "Hello" } })).text()
          const listed: ReadonlyArray<Row> = (await json(ask("GET", "/v1/sessions"))).sessions
          assert.deepStrictEqual(
            listed.map((row) => row.id),
            [id]
          )
        })
        // Days later.
        if (store._tag === "Files") {
          utimesSync(join(home, "tenants", "acme", "sessions", `${id}.jsonl`), 1, 1)
        } else {
          store.query(home, "UPDATE palimpsest_lines SET at = 1000")
        }
      }
      const left = store.stored(home)
      assert.include(left, "ZANZIBAR-two")
      assert.notInclude(left, "ZANZIBAR-one")
    })

    if (store._tag === "Files")
      it.live(
        "the user's own store is open for every request, and what was set for a session goes with it",
        function* () {
          const home = newHome()
          writeFileSync(join(home, "settings.json"), JSON.stringify({ store: `sqlite:${join(home, "own.db")}` }))
          yield* servingStore({ home, settings: { drainSeconds: 0 } }, async ({ ask }) => {
            const token = tokens.local
            await ask("POST", "/v1/sessions", { token, body: { id: "one", metadata: { of: "ZANZIBAR" } } })
            assert.include(store.stored(home), "ZANZIBAR")
            const { sessions } = await json(ask("GET", "/v1/sessions", { token }))
            assert.deepStrictEqual(
              sessions.map(({ id }: Row) => id),
              ["one"]
            )
            assert.strictEqual((await ask("DELETE", "/v1/sessions/one", { token })).status, 204)
            assert.notInclude(store.stored(home), "ZANZIBAR")
          })
        }
      )

    it.live("a session is deleted, or the message that was sent at the same time begins its turn", function* () {
      yield* serving(
        () => ({ _tag: "Hang" }),
        async ({ ask }) => {
          for (const round of [0, 3, 6, 10, 15, 22]) {
            const one = `/v1/sessions/s${round}`
            await ask("POST", "/v1/sessions", { body: { id: `s${round}` } })
            const sending = ask("POST", `${one}/messages`, { body: { id: "m1", text: "Hello" } })
            await new Promise((resolve) => setTimeout(resolve, round))
            const { status } = await ask("DELETE", one)
            const sent = await sending
            if (status === 204) {
              await sent.text()
              assert.strictEqual((await ask("GET", one)).status, 404)
            } else {
              assert.deepStrictEqual(await json(ask("POST", `${one}/cancel`)), { cancelled: true })
              await sent.text()
            }
          }
        }
      )
    })

    it.live("a deletion that is refused because a turn runs keeps no event from its clients", function* () {
      yield* serving(
        () => ({ _tag: "Hang" }),
        async ({ ask }) => {
          await ask("POST", "/v1/sessions", { body: { id: "one" } })
          const sent = await ask("POST", "/v1/sessions/one/messages", { body: { text: "Hello" } })
          // Until the first events are stored and sent.
          await new Promise((resolve) => setTimeout(resolve, 300))
          assert.strictEqual((await ask("DELETE", "/v1/sessions/one")).status, 409)
          assert.deepStrictEqual(await json(ask("POST", "/v1/sessions/one/cancel")), { cancelled: true })
          assert.include(await sent.text(), "event: TurnEnded")
        }
      )
    })

    it.live("a deletion gives back the turn of a message that no runner had begun", function* () {
      yield* serving(
        () => ({ _tag: "Hang" }),
        async ({ ask }) => {
          const create = (id: string) => ask("POST", "/v1/sessions", { body: { id } })
          const send = (id: string) => ask("POST", `/v1/sessions/${id}/messages`, { body: { text: "Hello" } })
          for (let round = 0; round < 6; round += 1) {
            const [gone, next] = [`gone${round}`, `next${round}`]
            await create(gone)
            const sending = send(gone)
            await new Promise((resolve) => setTimeout(resolve, round))
            if ((await ask("DELETE", `/v1/sessions/${gone}`)).status !== 204)
              await ask("POST", `/v1/sessions/${gone}/cancel`)
            await (await sending).text()
            await create(next)
            let sent = await send(next)
            while (sent.status === 429) {
              await new Promise((resolve) => setTimeout(resolve, 100))
              sent = await send(next)
            }
            assert.deepStrictEqual(await json(ask("POST", `/v1/sessions/${next}/cancel`)), { cancelled: true })
            await sent.text()
          }
        },
        { turns: 1 }
      )
    })

    if (store._tag !== "Files")
      it.live("a deletion of the tenant ends the messages that wait for their turn too", function* () {
        yield* serving(
          () => ({ _tag: "Hang" }),
          async ({ ask }, home) => {
            await ask("POST", "/v1/sessions", { body: { id: "one" } })
            const send = (text: string) => ask("POST", "/v1/sessions/one/messages", { body: { text } })
            const first = await send("a")
            const others = [send("b"), send("c")]
            // Until both are stored and wait behind the first.
            const sent = "SELECT COUNT(*) FROM cluster_messages WHERE tag = 'Send'"
            while (Number(store.query(home, sent)[0]) < 3) await new Promise((resolve) => setTimeout(resolve, 10))
            const deleted = await ask("DELETE", "/v1/tenant")
            assert.strictEqual(deleted.status, 200, await deleted.text())
            await Promise.all([first, ...(await Promise.all(others))].map((response) => response.body?.cancel()))
            assert.deepStrictEqual((await json(ask("GET", "/v1/sessions"))).sessions, [])
          }
        )
      })

    if (store._tag !== "Files") {
      it.live("a deletion that the database cut short is taken up again", function* () {
        yield* serving(
          () => "an answer",
          async ({ ask }, home) => {
            const left = () => {
              for (const id of ["one", "two"]) {
                store.query(
                  home,
                  `INSERT INTO palimpsest_session_records VALUES ('acme', '${id}', '{"instruction":"ZANZIBAR"}')`
                )
              }
            }
            await ask("GET", "/v1/sessions")
            // What a failure between the deletion of a session and that of its record leaves.
            left()
            assert.include(store.stored(home), "ZANZIBAR")
            for (const id of ["one", "two"]) {
              assert.strictEqual((await ask("DELETE", `/v1/sessions/${id}`)).status, 404)
            }
            assert.notInclude(store.stored(home), "ZANZIBAR")
            left()
            assert.deepStrictEqual(await json(ask("DELETE", "/v1/tenant")), { sessions: 0 })
            assert.notInclude(store.stored(home), "ZANZIBAR")
          }
        )
      })
    }

    it.live("a deleted tenant leaves no word behind, also of a turn that runs", function* () {
      const word = "ZANZIBAR"
      const other = "MOGADISHU"
      const answers: Answers = ({ contents }) => {
        const asked = JSON.stringify(contents.at(-1))
        if (asked.includes("hang")) return { _tag: "Hang" }
        if (!asked.includes("look")) return `Of ${asked.includes(other) ? other : word}.`
        const functionCall = { name: "look_up", args: { of: word }, id: "c1" }
        return { content: { role: "model", parts: [{ functionCall }] }, finishReason: "STOP", usage: null }
      }
      const large = Buffer.from(`${word} and more. `.repeat(2_000)).toString("base64")
      yield* serving(answers, async ({ ask }, home) => {
        const tools = [{ name: "look_up", description: `Looks up ${word}`, parameters: { type: "object" } }]
        const made = { title: `About ${word}`, metadata: { of: word }, instruction: word, tools }
        for (const id of ["one", "a_b", "axb"]) await ask("POST", "/v1/sessions", { body: { id, ...made } })
        const media = [{ mimeType: "text/plain", name: `${word}.txt`, data: large }]
        const send = (id: string, body: object, token: string = tokens.acme) =>
          ask("POST", `/v1/sessions/${id}/messages`, { body, token })
        await (await send("one", { id: "m1", text: word, media })).text()
        await (await ask("POST", "/v1/sessions/one/compress", { body: {} })).text()
        const waiting = await send("a_b", { text: `look up ${word}` })
        const hanging = await send("axb", { text: `hang with ${word}` })
        await ask("POST", "/v1/sessions", { body: { id: "one", title: other }, token: tokens.zeta })
        await (await send("one", { text: other }, tokens.zeta)).text()
        assert.include(store.stored(home), word)
        assert.strictEqual((await ask("DELETE", "/v1/tenant", { token: tokens.local })).status, 400)
        assert.deepStrictEqual(await json(ask("DELETE", "/v1/tenant")), { sessions: 3 })
        await Promise.all([waiting.body?.cancel(), hanging.body?.cancel()])
        assert.deepStrictEqual((await json(ask("GET", "/v1/sessions"))).sessions, [])
        const left = store.stored(home)
        assert.notInclude(left, word)
        assert.include(left, other)
        assert.include(await (await ask("GET", "/v1/sessions/one", { token: tokens.zeta })).text(), other)
        // The tenant may begin again.
        assert.strictEqual((await ask("POST", "/v1/sessions", { body: { id: "one" } })).status, 201)
        assert.include(await (await send("one", { id: "m1", text: "anew" })).text(), "TurnEnded")
      })
    })
  })
})
