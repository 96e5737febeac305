import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { program } from "../cli/program.ts"
import { results, says, textsOf } from "../cli/scene.ts"
import { needs } from "../support/machine.ts"
import { newFolder } from "../support/paths.ts"
import { freePort, postgresServer } from "../support/postgres.ts"
import { eventsOf } from "../support/server.ts"
import { askProcess as ask, ended, startProcess } from "../support/serverProcess.ts"

/**
 * A server over SQLite that is killed at random moments while messages are sent to it: every acknowledged message is in the
 * session once, with one answer, whatever was killed. `npm run test:crash` kills it 100 times.
 */

const kills = process.env["MODE"] === "kills" ? 100 : 1

describe("a server that is killed", () => {
  it.live(
    `answers every acknowledged message once (${kills} kills)`,
    () =>
      Effect.gen(function* () {
        const { bundle } = yield* program
        const fake = yield* FakeGemini.make(({ method }) =>
          method === "streamGenerateContent" ? says("An answer.") : FakeGemini.tokens(100)
        )
        yield* Effect.promise(async () => {
          const home = newFolder()
          const start = () => startProcess(bundle, { home, model: fake.url, args: ["--store", "sqlite"] })
          let server = await start()
          await ask(server, "POST", "", { id: "one" })
          const acknowledged: Array<string> = []
          for (let kill = 0; kill < kills; kill += 1) {
            const id = `m${kill}`
            const sent = ask(server, "POST", "/one/messages", { id, text: `Message ${kill}` }).then(
              async (response) => {
                // The head of the answer comes when the message is stored.
                if (response.status === 200) acknowledged.push(id)
                await response.text()
              },
              () => {}
            )
            await new Promise((resolve) => setTimeout(resolve, Math.random() * 400))
            await Promise.all([ended(server, "SIGKILL"), sent.catch(() => {})])
            server = await start()
          }
          // The stream of a message ends when it is answered.
          for (const id of acknowledged) await (await ask(server, "GET", `/one/messages/${id}/events`)).text()
          const view: {
            readonly messages: ReadonlyArray<{ readonly role: string; readonly messageId: string | null }>
          } = JSON.parse(await (await ask(server, "GET", "/one?messages=1000")).text())
          await ended(server, "SIGKILL")
          const ids = view.messages.flatMap(({ messageId }) => (messageId === null ? [] : [messageId]))
          assert.deepStrictEqual([...new Set(ids)], ids)
          for (const id of acknowledged) assert.include(ids, id)
          assert.deepStrictEqual(
            view.messages.map(({ role }) => role),
            ids.flatMap(() => ["user", "model"])
          )
        })
      }),
    60_000 + kills * 20_000
  )

  it.live(
    "goes on with the stream of an answer where it ended",
    () =>
      Effect.gen(function* () {
        const { bundle } = yield* program
        let isFirst = true
        const part = (text: string, finishReason: string | null = null) =>
          FakeGemini.event(FakeGemini.response([{ text }], { finishReason }))
        const fake = yield* FakeGemini.make(({ method }) => {
          if (method !== "streamGenerateContent") return FakeGemini.tokens(100)
          if (!isFirst) return [FakeGemini.streamHead, part("One, "), part("two, three"), part(".", "STOP")]
          isFirst = false
          return [FakeGemini.streamHead, part("One, "), part("two, "), FakeGemini.stall]
        })
        yield* Effect.promise(async () => {
          const home = newFolder()
          const start = () => startProcess(bundle, { home, model: fake.url, args: ["--store", "sqlite"] })
          const first = await start()
          await ask(first, "POST", "", { id: "one" })
          const response = await ask(first, "POST", "/one/messages", { id: "m", text: "Count." })
          let seen = ""
          const decoder = new TextDecoder()
          for await (const bytes of response.body ?? []) {
            seen += decoder.decode(bytes, { stream: true })
            if (seen.includes("two") && seen.endsWith("\n\n")) break
          }
          await ended(first, "SIGKILL")
          const next = await start()
          const lastId = eventsOf(seen).findLast(({ id }) => id !== undefined)?.id ?? ""
          const rest = await ask(next, "GET", "/one/messages/m/events", undefined, { "last-event-id": lastId })
          const events = [...eventsOf(seen), ...eventsOf(await rest.text())]
          await ended(next, "SIGKILL")
          const texts = events.flatMap(({ event }) => (event._tag === "Content" ? [event.text] : []))
          assert.strictEqual(texts.join(""), "One, two, three.")
          const tags = events.map(({ event }) => event._tag)
          assert.notInclude(tags, "Reset")
          assert.strictEqual(tags.filter((tag) => tag === "TurnStarted").length, 1)
          const ids = events.flatMap(({ id }) => (id === undefined ? [] : [id]))
          assert.deepStrictEqual([...new Set(ids)], ids)
        })
      }),
    120_000
  )

  for (const store of ["sqlite", "files"]) {
    it.live(
      `asks its clients again, and takes each answer once, over ${store} (${kills} kills)`,
      () =>
        Effect.gen(function* () {
          const { bundle } = yield* program
          const home = newFolder()
          const log = path.join(home, "ran.txt")
          const fake = yield* FakeGemini.make((request) => {
            if (request.method !== "streamGenerateContent") return FakeGemini.tokens(100)
            const told = results(request)
            if (told.length > 0) return says(JSON.stringify(told))
            const round =
              textsOf(request)
                .join("\n")
                .match(/Round \d+/g)
                ?.at(-1)
                ?.slice(6) ?? ""
            const call = (name: string, args: object) => ({ functionCall: { id: `${name}-${round}`, name, args } })
            return FakeGemini.sse(
              FakeGemini.response([
                call("look_up", { round }),
                call("run_shell_command", { command: `echo ${round} >> ran.txt` })
              ])
            )
          })
          yield* Effect.promise(async () => {
            const args = ["--store", store, "--tools"]
            const start = () => startProcess(bundle, { home, model: fake.url, args })
            let server = await start()
            const parameters = { type: "object", properties: { round: { type: "string" } } }
            const tools = [{ name: "look_up", description: "Looks up", parameters }]
            await ask(server, "POST", "", { id: "one", tools, approvals: {} })
            /** Sends the message of a round, and answers what it asks, until the turn ends or the server does. */
            const play = async (round: number) => {
              const response = await ask(server, "POST", "/one/messages", { id: `m${round}`, text: `Round ${round}` })
              let seen = ""
              const answered = new Set<string>()
              const decoder = new TextDecoder()
              for await (const bytes of response.body ?? []) {
                seen += decoder.decode(bytes, { stream: true })
                for (const { event } of eventsOf(seen.slice(0, seen.lastIndexOf("\n\n") + 2))) {
                  const call = "call" in event && typeof event.call === "string" ? event.call : ""
                  if (event._tag !== "Question" || answered.has(call)) continue
                  answered.add(call)
                  const body = call.startsWith("look_up") ? { result: `found ${round}` } : { decision: "allow" }
                  const place = `/one/calls/${call}`
                  const { status } = await ask(server, "POST", place, body)
                  // One that was acknowledged before is acknowledged again.
                  assert.strictEqual(status, 204)
                  const other = call.startsWith("look_up") ? { result: "other" } : { decision: "deny" }
                  assert.strictEqual((await ask(server, "POST", place, other)).status, 409)
                }
              }
              return eventsOf(seen).flatMap(({ event }) => (event._tag === "Content" ? [event.text ?? ""] : []))
            }
            for (let round = 0; round < kills; round += 1) {
              const playing = play(round).catch((error: unknown) => {
                if (error instanceof Error && error.name === "AssertionError") throw error
              })
              await new Promise((resolve) => setTimeout(resolve, Math.random() * 1_500))
              await ended(server, "SIGKILL")
              await playing
              server = await start()
              const words = (await play(round)).join("")
              assert.include(words, `found ${round}`)
              const ran = existsSync(log) ? readFileSync(log, "utf8").split("\n") : []
              const times = ran.filter((line) => line === String(round)).length
              // A call that was running is not carried out again.
              assert.strictEqual(times === 1 || words.includes("the server stopped while this call"), true, words)
              assert.isAtMost(times, 1)
            }
            await ended(server, "SIGKILL")
          })
        }),
      60_000 + kills * 20_000
    )
  }
})

needs("PostgreSQL")("a runner that is killed while its turn waits", () => {
  it.live(
    "leaves the question to another runner, which takes the answer",
    () =>
      Effect.gen(function* () {
        const { bundle } = yield* program
        const database = yield* postgresServer
        const fake = yield* FakeGemini.make((request) => {
          if (request.method !== "streamGenerateContent") return FakeGemini.tokens(100)
          const told = results(request)
          if (told.length > 0) return says(JSON.stringify(told))
          return FakeGemini.sse(FakeGemini.response([{ functionCall: { id: "c1", name: "look_up", args: {} } }]))
        })
        yield* Effect.promise(async () => {
          const start = (...args: ReadonlyArray<string>) =>
            startProcess(bundle, { home: newFolder(), model: fake.url, args: ["--store", database.url, ...args] })
          const runner = async () => start("--runner", "--address", `127.0.0.1:${await Effect.runPromise(freePort)}`)
          const front = await start("--front")
          const first = await runner()
          const tools = [{ name: "look_up", description: "Looks up", parameters: { type: "object" } }]
          await ask(front, "POST", "", { id: "one", tools })
          const response = await ask(front, "POST", "/one/messages", {
            id: "m",
            text: "Look.",
            responseSchema: { type: "object" }
          })
          let seen = ""
          let second: Awaited<ReturnType<typeof runner>> | undefined
          const decoder = new TextDecoder()
          for await (const bytes of response.body ?? []) {
            seen += decoder.decode(bytes, { stream: true })
            if (!seen.includes("event: Question") || second !== undefined) continue
            second = await runner()
            await ended(first, "SIGKILL")
            const answered = await ask(front, "POST", "/one/calls/c1", { result: "found" })
            assert.strictEqual(answered.status, 204, await answered.text())
          }
          const events = eventsOf(seen).map(({ event }) => event)
          assert.strictEqual(events.filter(({ _tag }) => _tag === "Question").length, 1)
          assert.strictEqual(events.at(-1)?._tag, "TurnEnded")
          assert.include(events.flatMap(({ text = "" }) => text).join(""), "found")
          assert.strictEqual((await ask(front, "POST", "/one/calls/c1", { result: "found" })).status, 204)
          assert.strictEqual((await ask(front, "POST", "/one/calls/c1", { result: "other" })).status, 409)
          await Promise.all([front, second].flatMap((one) => (one === undefined ? [] : [ended(one, "SIGKILL")])))
        })
      }),
    240_000
  )
})
