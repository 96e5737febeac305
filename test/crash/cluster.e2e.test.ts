import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { setTimeout as wait } from "node:timers/promises"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import { program } from "../cli/program.ts"
import { textsOf } from "../cli/scene.ts"
import { needs } from "../support/machine.ts"
import { newFolder } from "../support/paths.ts"
import { freePort, postgresServer } from "../support/postgres.ts"
import { eventsOf } from "../support/server.ts"
import { askProcess, ended, type ServerProcess, startProcess } from "../support/serverProcess.ts"

/**
 * Two runners and a front over PostgreSQL, in which runners are killed, stopped and suspended and the database is restarted, while
 * clients talk and compress: every acknowledged message is in its session once, with the answer that its client saw.
 * `npm run test:crash -- cluster` kills 100 times and restarts the database 20 times, or as often as the variables KILLS and RESTARTS say.
 */

const isLong = process.env["MODE"] === "kills"
const kills = Number(process.env["KILLS"] ?? (isLong ? 100 : 1))
const restarts = Number(process.env["RESTARTS"] ?? 20)

const filler = "Some words that say little. ".repeat(40)

/** A model that streams in pieces. Every third answer differs when it is asked for again. */
const slowModel = Effect.gen(function* () {
  let asked = 0
  return yield* FakeGemini.make((request) => {
    if (request.method === "countTokens") return FakeGemini.tokens(100)
    if (request.method === "generateContent") {
      return FakeGemini.json(
        FakeGemini.response([{ text: "<state_snapshot><overall_goal>To talk.</overall_goal></state_snapshot>" }])
      )
    }
    asked += 1
    const [name = ""] = /message-\S+/.exec(textsOf(request).at(-1) ?? "") ?? []
    const words = ["An ", "answer ", "to ", name, asked % 3 === 0 ? ` asked ${asked}` : "", " with ", "an ", "end."]
    const pieces = words.filter((word) => word !== "")
    const pause = FakeGemini.wait(Effect.sleep("40 millis"))
    return [
      FakeGemini.streamHead,
      ...pieces.flatMap((text, index) => [
        pause,
        FakeGemini.event(FakeGemini.response([{ text }], { finishReason: index === pieces.length - 1 ? "STOP" : null }))
      ])
    ]
  })
})

interface Turn {
  readonly message: string
  readonly text: string
  readonly status: string
}

/** Reads a turn to its end. Returns what a person saw; a broken connection is taken up after the last event. */
const reading = async (front: ServerProcess, session: string, message: string, text: string): Promise<Turn> => {
  let shown = ""
  let lastId: string | undefined
  for (;;) {
    const headers = lastId === undefined ? {} : { "last-event-id": lastId }
    try {
      const place = `/${session}/messages`
      const response = await askProcess(front, "POST", place, { id: message, text }, headers)
      if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`)
      let buffer = ""
      const decoder = new TextDecoder()
      for await (const bytes of response.body ?? []) {
        buffer += decoder.decode(bytes, { stream: true })
        const end = buffer.lastIndexOf("\n\n")
        if (end < 0) continue
        const whole = buffer.slice(0, end + 2)
        buffer = buffer.slice(whole.length)
        for (const { event, id } of eventsOf(whole)) {
          lastId = id ?? lastId
          if (event._tag === "Content") shown += event.text ?? ""
          if (event._tag === "Retry" || event._tag === "Reset") shown = ""
          if (event._tag !== "TurnEnded") continue
          const status = String(Reflect.get(event, "status"))
          // A message that failed is sent again.
          if (status === "failed") {
            shown = ""
            throw new Error(status)
          }
          return { message, text: shown, status }
        }
      }
    } catch {
      // The server says that it cannot now, or the connection broke.
    }
    await wait(200)
  }
}

/** A cluster with its clients, until the scope ends. */
const cluster = Effect.gen(function* () {
  const { bundle } = yield* program
  const database = yield* postgresServer
  const fake = yield* slowModel
  // Also those that were killed: a failed test shows what they said.
  const running = new Set<ServerProcess>()
  yield* Effect.addFinalizer(() => Effect.promise(() => Promise.all([...running].map((one) => ended(one, "SIGKILL")))))
  const start = async (...args: ReadonlyArray<string>) => {
    const server = await startProcess(bundle, {
      home: newFolder(),
      model: fake.url,
      args: ["--store", database.url, ...args]
    })
    running.add(server)
    return server
  }
  const runner = async () => start("--runner", "--address", `127.0.0.1:${await Effect.runPromise(freePort)}`)
  const runners = yield* Effect.promise(async () => [await runner(), await runner()])
  const front = yield* Effect.promise(() => start("--front"))
  const ends = { isOver: false }
  /** One client: sends a message after the other, and compresses now and then. Returns what it saw. */
  const talk = async (session: string): Promise<ReadonlyArray<Turn>> => {
    // Without the database, a session cannot be created.
    while (![201, 409].includes((await askProcess(front, "POST", "", { id: session })).status)) await wait(200)
    const turns: Array<Turn> = []
    while (!ends.isOver) {
      const message = `m${turns.length}`
      turns.push(await reading(front, session, message, `message-${session}-${turns.length} ${filler}`))
      if (turns.length % 7 === 0) await (await askProcess(front, "POST", `/${session}/compress`, {})).text()
    }
    return turns
  }
  /** What each client saw is what its session holds. */
  const check = async (session: string, turns: ReadonlyArray<Turn>) => {
    const response = await askProcess(front, "GET", `/${session}?messages=1000&chars=100000`)
    const view: {
      readonly messages: ReadonlyArray<{
        readonly author: string | null
        readonly role: string
        readonly messageId: string | null
        readonly parts: ReadonlyArray<{ readonly text: string }>
      }>
    } = JSON.parse(await response.text())
    const talked = view.messages.filter(({ author }) => author === null)
    assert.deepStrictEqual(
      talked.map(({ messageId, role }) => (role === "user" ? messageId : role)),
      turns.flatMap(({ message }) => [message, "model"])
    )
    const answers = talked.flatMap(({ parts, role }) =>
      role === "model" ? [parts.map(({ text }) => text).join("")] : []
    )
    assert.deepStrictEqual(
      turns.map(({ status, text }) => [status, text]),
      answers.map((text) => ["answered", text])
    )
  }
  const said = () => [...running].map(({ errors }) => errors()).filter((text) => /ERROR|WARN|serve:/.test(text))
  return { database, front, runner, runners, ends, talk, check, said }
})

const sessions = ["a", "b", "c", "d"]

/** Lets clients talk while something happens, and checks what they saw. */
const during = (happening: (made: Effect.Success<typeof cluster>) => Promise<void>) =>
  Effect.flatMap(cluster, (made) =>
    Effect.promise(async () => {
      try {
        const talks = sessions.map(made.talk)
        await wait(500)
        await happening(made)
        made.ends.isOver = true
        const hung = wait(120_000, undefined, { ref: false }).then(() => {
          throw new Error("a client waits in vain")
        })
        const all = await Promise.race([Promise.all(talks), hung])
        for (const [index, session] of sessions.entries()) await made.check(session, all[index] ?? [])
        if (isLong) process.stdout.write(`${all.flat().length} messages in ${sessions.length} sessions\n`)
      } catch (error) {
        process.stderr.write(`${made.said().join("\n")}\n`)
        throw error
      }
    })
  ).pipe(Effect.scoped)

needs("PostgreSQL")("a cluster over PostgreSQL", () => {
  it.live(
    `loses no message when runners are killed (${kills} kills), and none when one hands its sessions over`,
    () =>
      during(async ({ runner, runners }) => {
        for (let kill = 0; kill < kills; kill += 1) {
          await wait(Math.random() * (isLong ? 3_000 : 500))
          const [victim] = runners.splice(Math.floor(Math.random() * runners.length), 1)
          if (victim !== undefined) await ended(victim, "SIGKILL")
          runners.push(await runner())
        }
        const [leaving] = runners.splice(0, 1)
        if (leaving === undefined) return
        assert.strictEqual(await ended(leaving, "SIGTERM"), 143)
        assert.notMatch(leaving.errors(), /ERROR|defect/i)
      }),
    120_000 + kills * 30_000
  )

  if (!isLong) return

  it.live(
    "refuses the writes of a runner that was suspended",
    () =>
      during(async ({ runner, runners }) => {
        const [suspended] = runners
        suspended?.child.kill("SIGSTOP")
        // Its locks expire, and the other one takes over.
        await wait(12_000)
        suspended?.child.kill("SIGCONT")
        await wait(5_000)
        runners.push(await runner())
      }),
    300_000
  )

  it.live(
    `waits for a database that is restarted (${restarts} restarts)`,
    () =>
      during(async ({ database }) => {
        for (let time = 0; time < restarts; time += 1) {
          await Effect.runPromise(database.restart)
          await wait(1_000 + Math.random() * 4_000)
        }
      }),
    300_000 + restarts * 15_000
  )
})
