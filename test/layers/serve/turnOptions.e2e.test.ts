import { Effect } from "effect"
import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import type { Answers } from "../../../src/layers/testing/ScriptedModel.ts"
import type { ModelRequest } from "../../../src/services/model/Model.ts"
import { eventsOf, type Server } from "../../support/server.ts"
import { overEachEngine, servingOver } from "../../support/serveStores.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** How turns are answered: instruction, agent, model, parameters, schema and files. The same in one process and in a cluster. */

const one = "/v1/sessions/one"
const schema = {
  type: "object",
  properties: { mood: { type: "string" } },
  required: ["mood"],
  additionalProperties: false
}
const base64 = (text: string) => Buffer.from(text).toString("base64")

overEachEngine((store) => {
  describe.concurrent(`the options of a turn over ${store._tag}`, () => {
    /** Runs requests against a server, and returns what its model was asked. */
    const serving = (use: (ask: Server["ask"], home: string) => Promise<void>) => {
      const asked: Array<ModelRequest> = []
      const answers: Answers = (request) => {
        asked.push(request)
        return `{"mood": "calm"}`
      }
      return Effect.as(
        servingOver(store)({ answers }, ({ ask }, home) => use(ask, home)),
        asked
      )
    }
    const send = async (ask: Server["ask"], id: string, body: object = {}) => {
      const response = await ask("POST", `${one}/messages`, { body: { id, text: "Hello", ...body } })
      const text = await response.text()
      const last = eventsOf(text).at(-1)?.event._tag
      return { status: response.status, text, last }
    }

    it.live("a message's options replace those of its session, for its turn", function* () {
      let usual = ""
      const asked = yield* serving(async (ask) => {
        const session = { instruction: "You sell tea.", model: "gemini-2.5-pro", generation: { temperature: 0.5 } }
        const made = async (body: object) => JSON.parse(await (await ask("POST", "/v1/sessions", { body })).text())
        usual = (await made({ id: "plain" })).model
        assert.strictEqual((await made({ id: "one", ...session })).model, "gemini-2.5-pro")
        assert.strictEqual((await send(ask, "m1")).last, "TurnEnded")
        const options = {
          instruction: "You sell coffee.",
          model: "gemini-2.5-flash",
          generation: { maxOutputTokens: 50 },
          responseSchema: schema
        }
        await send(ask, "m2", options)
        await send(ask, "m3")
        await ask("PATCH", one, { body: { instruction: null, model: "gemini-3-pro", generation: null } })
        await send(ask, "m4")
        const removed = await ask("PATCH", one, { body: { model: null } })
        assert.strictEqual(JSON.parse(await removed.text()).model, usual)
        await send(ask, "m5")
      })
      assert.deepStrictEqual(
        asked.map(({ generation, model }) => [model, generation]),
        [
          ["gemini-2.5-pro", { temperature: 0.5 }],
          ["gemini-2.5-flash", { maxOutputTokens: 50, responseSchema: schema }],
          ["gemini-2.5-pro", { temperature: 0.5 }],
          ["gemini-3-pro", undefined],
          [usual, undefined]
        ]
      )
      assert.deepStrictEqual(
        asked.slice(0, 3).map(({ systemInstruction }) => systemInstruction),
        ["You sell tea.", "You sell coffee.", "You sell tea."]
      )
      assert.notInclude(asked[3]?.systemInstruction ?? "", "You sell")
      assert.notInclude(JSON.stringify(asked[0]?.contents), "session_context")
    })

    it.live("an agent gives its instruction, model and parameters; an unknown one is refused", function* () {
      const asked = yield* serving(async (ask) => {
        await ask("POST", "/v1/sessions", { body: { id: "one" } })
        const refused = await send(ask, "m1", { agent: "nobody" })
        assert.strictEqual(refused.status, 400, refused.text)
        assert.include(refused.text, "generalist")
        assert.strictEqual((await send(ask, "m2", { agent: "generalist" })).last, "TurnEnded")
        await send(ask, "m3", { agent: "generalist", generation: { temperature: 0.1 } })
      })
      assert.strictEqual(asked.length, 2)
      assert.isDefined(asked[0]?.generation?.topP)
      assert.strictEqual(asked[1]?.generation?.temperature, 0.1)
      assert.strictEqual(asked[0]?.systemInstruction, asked[1]?.systemInstruction)
    })

    it.live("the model of a new session replaces that of its agent", function* () {
      const asked = yield* serving(async (ask, home) => {
        const agents = path.join(home, "tenants", "acme", "agents")
        mkdirSync(agents, { recursive: true })
        writeFileSync(
          path.join(agents, "seller.md"),
          "---\nname: seller\ndescription: Sells\nmodel: gemini-2.5-pro\n---\nSell tea.\n"
        )
        const session = { id: "one", agent: "seller" }
        await ask("POST", "/v1/sessions", { body: session })
        await send(ask, "m1")
        await ask("DELETE", one)
        await ask("POST", "/v1/sessions", { body: { ...session, model: "gemini-3-pro" } })
        await send(ask, "m1")
      })
      assert.deepStrictEqual(
        asked.map(({ model }) => model),
        ["gemini-2.5-pro", "gemini-3-pro"]
      )
    })

    it.live("the session's model decides who writes summaries, whatever model one message has", function* () {
      const asked = yield* serving(async (ask, home) => {
        writeFileSync(path.join(home, "settings.json"), JSON.stringify({ strategy: "gemini" }))
        await ask("POST", "/v1/sessions", { body: { id: "one", model: "gemini-2.5-flash-lite" } })
        await send(ask, "m1")
        await send(ask, "m2", { model: "gemini-2.5-pro" })
        await ask("POST", `${one}/compress`, { body: {} })
      })
      assert.deepStrictEqual(
        asked.slice(0, 3).map(({ model }) => model),
        ["gemini-2.5-flash-lite", "gemini-2.5-pro", "gemini-2.5-flash-lite"]
      )
    })

    it.live("files of text go along by their names, large ones as blobs", function* () {
      const long = `the end of ${"a long file. ".repeat(2_000)}`
      const asked = yield* serving(async (ask) => {
        await ask("POST", "/v1/sessions", { body: { id: "one" } })
        const media = [
          { mimeType: "text/csv", name: "orders.csv", data: base64("id,state\n7,\u00fcberf\u00e4llig") },
          { mimeType: "application/json", data: base64(`{"a":1}`) },
          { mimeType: "text/plain", name: "long.txt", data: base64(long) }
        ]
        assert.strictEqual((await send(ask, "m1", { media })).last, "TurnEnded")
        const exported = await (await ask("GET", `${one}/export`)).text()
        assert.include(exported, "a long file. a long file.")
        const binary = { mimeType: "text/plain", data: Buffer.from([0xff, 0xfe, 0]).toString("base64") }
        assert.strictEqual((await send(ask, "m2", { media: [binary] })).status, 400)
        for (const name of ["a/b", "a\nb", ""])
          assert.strictEqual((await send(ask, "m2", { media: [{ ...media[0], name }] })).status, 400)
      })
      const texts = asked[0]?.contents.at(-1)?.parts.map(({ text }) => text)
      assert.deepStrictEqual(texts?.slice(0, 3), [
        "Hello",
        "[file orders.csv]\nid,state\n7,\u00fcberf\u00e4llig",
        `[file application/json]\n{"a":1}`
      ])
      assert.strictEqual(texts?.[3], `[file long.txt]\n${long}`)
    })

    it.live("what cannot be an option is refused", function* () {
      yield* serving(async (ask) => {
        await ask("POST", "/v1/sessions", { body: { id: "one" } })
        for (const body of [
          { generation: { temperature: 3 } },
          { generation: { maxOutputTokens: 0 } },
          { model: "" },
          { model: "shop/x" },
          { responseSchema: "none" },
          { responseSchema: { description: "x".repeat(40_000) } },
          { agent: "../x" },
          { instruction: 7 }
        ])
          assert.strictEqual((await send(ask, "m1", body)).status, 400, JSON.stringify(body))
        for (const [method, place] of [
          ["POST", "/v1/sessions"],
          ["PATCH", one]
        ] as const) {
          const refused = await ask(method, place, { body: { model: "shop/x" } })
          assert.strictEqual(refused.status, 400)
          assert.include(await refused.text(), "there is no provider shop (known: ")
        }
        assert.strictEqual((await send(ask, "m1")).last, "TurnEnded")
      })
    })
  })
})
