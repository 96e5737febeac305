import { Effect } from "effect"
import { setTimeout as wait } from "node:timers/promises"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import { newHome, startServer } from "../../support/server.ts"
import { overEachStore } from "../../support/serveStores.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Two requests about one session at the same time. The same over every store. */

overEachStore((store) => {
  describe(`two requests at once over ${store._tag}`, () => {
    it.live("are both answered, and the session works on or is gone", function* () {
      const home = newHome()
      const { ask } = yield* startServer({
        home,
        store: yield* store.at(home),
        answers: (request) =>
          JSON.stringify(request.contents.at(-1)).includes("wait") ? ScriptedModel.hang : "an answer ".repeat(50),
        settings: { drainSeconds: 0, limits: { requests: 100_000, turns: 1_000 } }
      })
      const send = async (id: string, message: string, text: string) =>
        ask("POST", `/v1/sessions/${id}/messages`, { body: { id: message, text } })
      const acts: Readonly<Record<string, (id: string) => Promise<Response>>> = {
        send: (id) => send(id, "m2", "Hello"),
        wait: (id) => send(id, "m3", "wait"),
        cancel: (id) => ask("POST", `/v1/sessions/${id}/cancel`),
        compress: (id) => ask("POST", `/v1/sessions/${id}/compress`, { body: {} }),
        remove: (id) => ask("DELETE", `/v1/sessions/${id}`)
      }
      const pairs = Object.keys(acts).flatMap((one) => Object.keys(acts).map((other) => [one, other] as const))
      const play = async (one: string, other: string, index: number) => {
        const id = `s${index}`
        const what = `${one} and ${other}`
        await ask("POST", "/v1/sessions", { body: { id } })
        await (await send(id, "m1", "First")).text()
        const first = acts[one]?.(id)
        await wait(index % 4)
        const second = acts[other]?.(id)
        const answers = Promise.all(
          [first, second].map(async (asked) => {
            const { status = 0 } = (await asked) ?? {}
            const said = (await (await asked)?.text()) ?? ""
            // A message whose session is being deleted is refused with 503.
            if (status !== 503) assert.isBelow(status, 500, `${what}: ${said}`)
            assert.notInclude(said, "another process", what)
          })
        )
        // Ends the turns that wait, one after the other.
        const over = answers.then(() => true)
        while (what.includes("wait") && !(await Promise.race([over, wait(20, false)]))) {
          await ask("POST", `/v1/sessions/${id}/cancel`)
        }
        await over
        const last = await send(id, "m9", "After")
        const events = await last.text()
        if (last.status !== 404) assert.include(events, `"status":"answered"`, what)
      }
      // Each pair has a session of its own.
      yield* Effect.forEach(pairs, ([one, other], index) => Effect.promise(() => play(one, other, index)), {
        concurrency: 5,
        discard: true
      })
    })
  })
})
