import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import * as ScriptedModel from "../../../src/layers/testing/ScriptedModel.ts"
import type { ModelRequest } from "../../../src/services/model/Model.ts"
import { type eventsOf, newHome, reading, type Server } from "../../support/server.ts"
import { overEachEngine, overEachStore, servingOver } from "../../support/serveStores.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/**
 * Questions of a turn that clients answer: calls of their own tools, and calls that need approval. The same over every store, which is tried with
 * what a restart finds again.
 */

const one = "/v1/sessions/one"
const lookUp = {
  name: "look_up_order",
  description: "Looks up an order",
  parameters: { type: "object", properties: { order: { type: "string" } }, required: ["order"] }
}

/** Calls of one answer. */
type Calls = ReadonlyArray<readonly [name: string, args: object, id: string]>

const calls = (...made: Calls) => ({
  content: {
    role: "model" as const,
    parts: made.map(([name, args, id]) => ({ functionCall: { name, args, id } }))
  },
  finishReason: "STOP",
  usage: null
})

/** The results of the calls in a request, by the ids of their calls. */
const resultsIn = ({ contents }: ModelRequest) =>
  Object.fromEntries(
    contents.flatMap(({ parts }) =>
      parts.flatMap(({ functionResponse }) =>
        functionResponse === undefined
          ? []
          : [[functionResponse.id ?? functionResponse.name, functionResponse.response]]
      )
    )
  )

/** Answers with these calls, and then with the results that came back, as JSON. */
const calling =
  (...made: Calls): ScriptedModel.Answers =>
  (request) => {
    const results = resultsIn(request)
    return Object.keys(results).length === 0 ? calls(...made) : JSON.stringify(results)
  }

const fieldsOf = (found: ReturnType<typeof eventsOf>[number] | undefined): Readonly<Record<string, unknown>> => ({
  ...found?.event
})

const said = (events: ReturnType<typeof eventsOf>) =>
  events.flatMap(({ event }) => (event._tag === "Content" ? [event.text ?? ""] : [])).join("")

/** The calls that are asked about. */
const open = async ({ ask }: Server): Promise<ReadonlyArray<string>> => {
  const { questions } = JSON.parse(await (await ask("GET", one)).text())
  return questions.map(({ call }: { readonly call: string }) => call)
}

const status = async (asking: Promise<Response>) => (await asking).status

const create = ({ ask }: Server, body: object) => ask("POST", "/v1/sessions", { body: { id: "one", ...body } })
const send = async ({ ask }: Server, id = "m1", text = "Where is order 7?") =>
  reading(await ask("POST", `${one}/messages`, { body: { id, text } }))
const answer = ({ ask }: Server, call: string, body: unknown) => status(ask("POST", `${one}/calls/${call}`, { body }))

const write = (file: string, id: string) => ["write_file", { file_path: file, content: "hello" }, id] as const
const deskSettings = { tools: true, drainSeconds: 0, tenants: {} }

const desk = (home: string, deadline?: number) => ({
  file: join(home, "tenants", "acme", "work", "note.txt"),
  body: { approvals: deadline === undefined ? {} : { deadline } }
})

overEachStore((store) => {
  const serving = servingOver(store)

  describe.concurrent(`questions and restarts over ${store._tag}`, () => {
    it.live("a call of the client's tool waits for the client, whose answer counts once", function* () {
      const shown: Array<ModelRequest["tools"]> = []
      const answers: ScriptedModel.Answers = (request, index) => {
        shown.push(request.tools)
        const script = calling(["look_up_order", { order: "7" }, "c1"])
        return typeof script === "function" ? script(request, index) : "none"
      }
      yield* serving({ answers }, async (server) => {
        assert.strictEqual((await create(server, { tools: [lookUp] })).status, 201)
        const stream = await send(server)
        const [question] = await stream.until("Question")
        assert.deepInclude(fieldsOf(question), {
          call: "c1",
          kind: "tool",
          name: "look_up_order",
          args: { order: "7" },
          detail: null
        })
        assert.deepStrictEqual(await open(server), ["c1"])
        assert.include(JSON.stringify(shown[0]), `"look_up_order","description":"Looks up an order"`)
        const result = { result: { state: "on its way", days: 2 } }
        assert.strictEqual(await answer(server, "c9", result), 404)
        assert.strictEqual(await answer(server, "c1", { decision: "allow" }), 400)
        assert.strictEqual(await answer(server, "c1", { other: 1 }), 400)
        assert.strictEqual(await answer(server, "c1", result), 204)
        await stream.until("TurnEnded")
        const tags = stream.events().map(({ event }) => event._tag)
        assert.isBelow(tags.indexOf("ToolCallRequest"), tags.indexOf("Question"))
        assert.strictEqual(said(stream.events()), JSON.stringify({ c1: result.result }))
        assert.strictEqual(await answer(server, "c1", { result: { days: 2, state: "on its way" } }), 204)
        assert.strictEqual(await answer(server, "c1", { result: { state: "lost" } }), 409)
        assert.strictEqual(await answer(server, "c1", { error: "none" }), 409)
        assert.deepStrictEqual(await open(server), [])
        assert.strictEqual(shown.length, 2)
      })
    })

    it.live("an open question is asked again after a restart, and an answered one is not", function* () {
      const home = newHome()
      const answers = calling(["look_up_order", { order: "7" }, "c1"], ["look_up_order", { order: "8" }, "c2"])
      const settings = { drainSeconds: 0 }
      const deadline = yield* serving({ home, answers, settings }, async (server) => {
        await create(server, { tools: [lookUp] })
        const stream = await send(server)
        const questions = await stream.until("Question", 2)
        assert.strictEqual(await answer(server, "c1", { result: "sent" }), 204)
        return questions.map(fieldsOf).find(({ call }) => call === "c2")?.["deadline"]
      })
      yield* serving({ home, answers, settings }, async (server) => {
        assert.strictEqual(await answer(server, "c1", { result: "sent" }), 204)
        assert.strictEqual(await answer(server, "c1", { result: "lost" }), 409)
        assert.deepStrictEqual(await open(server), ["c2"])
        const stream = await send(server)
        const questions = await stream.until("Question", store._tag === "Files" ? 1 : 2)
        assert.deepInclude(fieldsOf(questions.at(-1)), { call: "c2" })
        assert.strictEqual(fieldsOf(questions.at(-1))["deadline"], deadline)
        assert.strictEqual(await answer(server, "c2", { result: "packed" }), 204)
        await stream.until("TurnEnded")
        const tags = stream.events().map(({ event }) => event._tag)
        assert.strictEqual(tags.filter((tag) => tag === "TurnStarted").length, 1)
        assert.strictEqual(said(stream.events()), JSON.stringify({ c1: { output: "sent" }, c2: { output: "packed" } }))
      })
    })

    it.live("a stop does not wait for a turn that waits for its client", function* () {
      const home = newHome()
      const answers = calling(["look_up_order", { order: "7" }, "c1"])
      const began = yield* serving({ home, answers, settings: { drainSeconds: 60 } }, async (server) => {
        await create(server, { tools: [lookUp] })
        await (await send(server)).until("Question")
        return Date.now()
      })
      assert.isBelow(Date.now() - began, 10_000)
      yield* serving({ home, answers, settings: { drainSeconds: 0 } }, async (server) => {
        assert.strictEqual(await answer(server, "c1", { result: "sent" }), 204)
        const stream = await send(server)
        await stream.until("TurnEnded")
        assert.strictEqual(said(stream.events()), JSON.stringify({ c1: { output: "sent" } }))
      })
    })

    it.live("a stop does not wait longer once a turn asks its client", function* () {
      const sleeping = calls(["run_shell_command", { command: "sleep 2" }, "c1"])
      const asking = calls(["look_up_order", { order: "7" }, "c2"])
      const answers: ScriptedModel.Answers = (request) =>
        Object.keys(resultsIn(request)).length === 0 ? sleeping : asking
      const settings = { tools: true, approve: "all", drainSeconds: 60 } as const
      const began = yield* serving({ answers, settings }, async (server) => {
        await create(server, { tools: [lookUp] })
        await (await send(server)).until("ToolCallStarted")
        return Date.now()
      })
      assert.isBelow(Date.now() - began, 20_000)
    })

    it.live("an answer is taken while nobody works on the turn, also after its tool was removed", function* () {
      const home = newHome()
      const answers = calling(["look_up_order", { order: "7" }, "c1"])
      const settings = { drainSeconds: 0 }
      yield* serving({ home, answers, settings }, async (server) => {
        await create(server, { tools: [lookUp] })
        await (await send(server)).until("Question")
      })
      yield* serving({ home, answers, settings }, async (server) => {
        await server.ask("PATCH", one, { body: { tools: null } })
        assert.strictEqual(await answer(server, "c1", { result: "sent" }), 204)
        const stream = await send(server)
        await stream.until("TurnEnded")
        assert.strictEqual(said(stream.events()), JSON.stringify({ c1: { output: "sent" } }))
      })
    })

    if (store._tag === "Files")
      it.live("a new message gives up the question of a turn that was stopped", function* () {
        const home = newHome()
        const script = calling(["look_up_order", { order: "7" }, "c1"])
        const settings = { drainSeconds: 0 }
        yield* serving({ home, answers: script, settings }, async (server) => {
          await create(server, { tools: [lookUp] })
          await (await send(server)).until("Question")
        })
        const answers: ScriptedModel.Answers = (request) => JSON.stringify(resultsIn(request))
        yield* serving({ home, answers, settings }, async (server) => {
          const stream = await send(server, "m2", "Never mind.")
          await stream.until("TurnEnded")
          assert.include(said(stream.events()), "Operation Cancelled")
          assert.strictEqual(await answer(server, "c1", { result: "late" }), 409)
        })
      })
  })

  describe.concurrent(`approvals and restarts over ${store._tag}`, () => {
    it.live(
      "an approved call that was running is not carried out again, and the next one is still asked about",
      function* () {
        const home = newHome()
        const { body, file } = desk(home)
        const shell = ["run_shell_command", { command: `echo run >> ${file}; sleep 30` }, "c1"] as const
        const answers = calling(shell, write(`${file}.other`, "c2"))
        yield* serving({ home, answers, settings: deskSettings }, async (server) => {
          await create(server, body)
          const stream = await send(server)
          await stream.until("Question")
          assert.strictEqual(await answer(server, "c1", { decision: "allow" }), 204)
          await stream.until("ToolCallStarted")
          // The shell makes the file before it writes to it.
          while (!existsSync(file) || readFileSync(file, "utf8") === "") await setTimeout(20)
        })
        yield* serving({ home, answers, settings: deskSettings }, async (server) => {
          const stream = await send(server)
          await stream.until("Question", store._tag === "Files" ? 1 : 2)
          assert.deepStrictEqual(await open(server), ["c2"])
          assert.strictEqual(await answer(server, "c2", { decision: "allow" }), 204)
          await stream.until("TurnEnded")
          assert.include(said(stream.events()), "the server stopped while this call may have been running")
          assert.strictEqual(readFileSync(file, "utf8"), "run\n")
          assert.isTrue(existsSync(`${file}.other`))
        })
      }
    )

    it.live("a call that ended before a restart keeps its result, and does not run again", function* () {
      const home = newHome()
      const { body, file } = desk(home)
      const shell = ["run_shell_command", { command: `echo run >> ${file}; echo done` }, "c1"] as const
      const answers = calling(shell, ["look_up_order", { order: "7" }, "c2"])
      const free = { ...deskSettings, approve: "all" as const }
      yield* serving({ home, answers, settings: free }, async (server) => {
        await create(server, { ...body, tools: [lookUp] })
        await (await send(server)).until("Question")
      })
      yield* serving({ home, answers, settings: free }, async (server) => {
        assert.strictEqual(await answer(server, "c2", { result: "sent" }), 204)
        const stream = await send(server)
        await stream.until("TurnEnded")
        assert.include(said(stream.events()), "done")
        assert.include(said(stream.events()), "sent")
        assert.strictEqual(readFileSync(file, "utf8"), "run\n")
      })
    })

    it.live("a stop waits for a call of the server that runs beside a question", function* () {
      const home = newHome()
      const { body, file } = desk(home)
      const shell = ["run_shell_command", { command: `sleep 1; echo run >> ${file}` }, "c1"] as const
      const answers = calling(shell, ["look_up_order", { order: "7" }, "c2"])
      const free = { ...deskSettings, approve: "all" as const, drainSeconds: 20 }
      yield* serving({ home, answers, settings: free }, async (server) => {
        await create(server, { ...body, tools: [lookUp] })
        const stream = await send(server)
        await stream.until("Question")
        await stream.until("ToolCallStarted", 2)
      })
      assert.strictEqual(readFileSync(file, "utf8"), "run\n")
    })

    it.live("a question is open again after a restart, and its call runs once", function* () {
      const home = newHome()
      const { body, file } = desk(home)
      const answers = calling(write(file, "c1"), write(`${file}.other`, "c2"))
      yield* serving({ home, answers, settings: deskSettings }, async (server) => {
        await create(server, body)
        await (await send(server)).until("Question")
      })
      assert.isFalse(existsSync(file))
      yield* serving({ home, answers, settings: deskSettings }, async (server) => {
        assert.strictEqual(await answer(server, "c1", { decision: "allow" }), 204)
        const stream = await send(server)
        await stream.until("Question", store._tag === "Files" ? 1 : 2)
        assert.deepStrictEqual(await open(server), ["c2"])
        assert.strictEqual(await answer(server, "c2", { decision: "allow" }), 204)
        await stream.until("TurnEnded")
        assert.isTrue(existsSync(file) && existsSync(`${file}.other`))
        const ends = stream.events().filter(({ event }) => event._tag === "ToolCallResponse")
        assert.deepStrictEqual(
          ends.map(({ event }) => JSON.stringify(event).match(/"status":"\w+"/)?.[0]),
          [`"status":"success"`, `"status":"success"`]
        )
      })
    })
  })
})

overEachEngine((store) => {
  const serving = servingOver(store)

  describe.concurrent(`questions over ${store._tag}`, () => {
    it.live("what is nested too deep is refused as what it is", function* () {
      const answers = calling(["look_up_order", { order: "7" }, "c1"])
      yield* serving({ answers }, async (server) => {
        const nested = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
        const schema = (levels: number) => `{"type":"object","default":${nested(levels)}}`
        const tools = (levels: number) =>
          `{"tools":[{"name":"look_up_order","description":"","parameters":${schema(levels)}}]}`
        await create(server, {})
        const change = (body: string) => status(server.ask("PATCH", one, { body }))
        for (const levels of [900, 100_000]) {
          assert.strictEqual(await change(tools(levels)), 400)
          assert.strictEqual(await change(`{"responseSchema":${schema(levels)}}`), 400)
        }
        assert.strictEqual(await change(tools(190)), 200)
        const stream = await send(server)
        await stream.until("Question")
        const answerWith = (levels: number) =>
          status(server.ask("POST", `${one}/calls/c1`, { body: `{"result":${nested(levels)}}` }))
        for (const levels of [900, 100_000]) assert.strictEqual(await answerWith(levels), 400)
        assert.strictEqual(await answerWith(490), 204)
        const [end] = await stream.until("TurnEnded")
        assert.deepInclude(fieldsOf(end), { status: "answered" })
      })
    })

    it.live("several calls wait at the same time, and an error is told to the model", function* () {
      const answers = calling(["look_up_order", { order: "7" }, "c1"], ["look_up_order", { order: "8" }, "c2"])
      yield* serving({ answers }, async (server) => {
        await create(server, { tools: [lookUp] })
        const stream = await send(server)
        await stream.until("Question", 2)
        assert.strictEqual(await answer(server, "c2", { error: "there is no order 8" }), 204)
        assert.deepStrictEqual(await open(server), ["c1"])
        assert.strictEqual(await answer(server, "c1", { result: "sent" }), 204)
        await stream.until("TurnEnded")
        assert.strictEqual(
          said(stream.events()),
          JSON.stringify({ c1: { output: "sent" }, c2: { error: "there is no order 8" } })
        )
      })
    })

    it.live("a late answer to a question is none to a later one, whose call has the same id", function* () {
      const answers: ScriptedModel.Answers = (_request, index) =>
        index % 2 === 0 ? calls(["look_up_order", { order: "7" }, "c1"]) : "done"
      yield* serving({ answers }, async (server) => {
        await create(server, { tools: [lookUp] })
        const first = await send(server)
        await first.until("Question")
        assert.strictEqual(await answer(server, "c1", { result: "one" }), 204)
        await first.until("TurnEnded")
        const second = await send(server, "m2")
        const [question] = await second.until("Question")
        assert.strictEqual(fieldsOf(question)["call"], "c1~2")
        assert.strictEqual(await answer(server, "c1", { result: "one" }), 204)
        assert.deepStrictEqual(await open(server), ["c1~2"])
        assert.strictEqual(await answer(server, "c1~2", { result: "two" }), 204)
        await second.until("TurnEnded")
      })
    })

    it.live("two calls with the same id are two questions", function* () {
      const asked: Array<ModelRequest> = []
      const script = calling(["look_up_order", { order: "7" }, "c1"], ["look_up_order", { order: "8" }, "c1"])
      const answers: ScriptedModel.Answers = (request, index) => {
        asked.push(request)
        return typeof script === "function" ? script(request, index) : "none"
      }
      yield* serving({ answers }, async (server) => {
        await create(server, { tools: [lookUp] })
        const stream = await send(server)
        const ids = (await stream.until("Question", 2)).map((question) => String(fieldsOf(question)["call"]))
        assert.strictEqual(new Set(ids).size, 2)
        for (const id of ids) assert.strictEqual(await answer(server, id, { result: `of ${id}` }), 204)
        await stream.until("TurnEnded")
        const told = JSON.stringify(asked[1]?.contents)
        for (const id of ids) assert.include(told, `of ${id}`)
      })
    })

    it.live("at the deadline the model is told that nobody answered", function* () {
      const answers = calling(["look_up_order", { order: "7" }, "c1"])
      yield* serving({ answers }, async (server) => {
        await create(server, { tools: [{ ...lookUp, deadline: 300 }] })
        const stream = await send(server)
        await stream.until("TurnEnded")
        assert.include(said(stream.events()), "nobody answered look_up_order within 300ms")
        assert.strictEqual(await answer(server, "c1", { result: "late" }), 409)
        assert.deepStrictEqual(await open(server), [])
      })
    })

    it.live("a cancelled turn takes no answer", function* () {
      const answers = calling(["look_up_order", { order: "7" }, "c1"])
      yield* serving({ answers }, async (server) => {
        await create(server, { tools: [lookUp] })
        const stream = await send(server)
        await stream.until("Question")
        await server.ask("POST", `${one}/cancel`)
        const [end] = await stream.until("TurnEnded")
        assert.deepInclude(fieldsOf(end), { status: "cancelled" })
        assert.strictEqual(await answer(server, "c1", { result: "late" }), 409)
      })
    })

    it.live("a turn is cancelled as soon as its message is accepted", function* () {
      yield* serving({ answers: () => ScriptedModel.hang }, async (server) => {
        await create(server, {})
        const stream = await send(server)
        const cancelled = await server.ask("POST", `${one}/cancel`)
        assert.deepStrictEqual(await cancelled.json(), { cancelled: true })
        const [end] = await stream.until("TurnEnded")
        assert.deepInclude(fieldsOf(end), { status: "cancelled" })
        const again = await server.ask("POST", `${one}/cancel`)
        assert.deepStrictEqual(await again.json(), { cancelled: false })
      })
    })

    it.live("tools change between turns, and null removes them", function* () {
      const names: Array<string> = []
      const answers: ScriptedModel.Answers = ({ tools = [] }) => {
        names.push(
          JSON.stringify(tools)
            .match(/"name":"\w+"/g)
            ?.join() ?? "none"
        )
        return "answered"
      }
      yield* serving({ answers }, async (server) => {
        await create(server, {})
        await (await send(server, "m1")).until("TurnEnded")
        const change = (body: object) => status(server.ask("PATCH", one, { body }))
        assert.strictEqual(await change({ tools: [lookUp] }), 200)
        await (await send(server, "m2")).until("TurnEnded")
        assert.strictEqual(await change({ title: "Orders" }), 200)
        await (await send(server, "m3")).until("TurnEnded")
        assert.strictEqual(await change({ tools: null }), 200)
        await (await send(server, "m4")).until("TurnEnded")
        assert.deepStrictEqual(names, ["none", `"name":"look_up_order"`, `"name":"look_up_order"`, "none"])
        for (const tools of [
          [lookUp, lookUp],
          [{ ...lookUp, name: "a b" }],
          [{ ...lookUp, parameters: { type: "string" } }]
        ])
          assert.strictEqual(await change({ tools }), 400)
      })
    })
  })

  describe.concurrent(`approvals over ${store._tag}`, () => {
    it.live("an allowed call runs, a denied one does not, and the reason goes to the model", function* () {
      const home = newHome()
      const { body, file } = desk(home)
      const answers = calling(write(file, "c1"), write(`${file}.other`, "c2"))
      yield* serving({ home, answers, settings: deskSettings }, async (server) => {
        await create(server, body)
        const stream = await send(server)
        const [question] = await stream.until("Question")
        assert.deepInclude(fieldsOf(question), { call: "c1", kind: "approval", name: "write_file" })
        assert.include(JSON.stringify(question?.event), "hello")
        assert.isFalse(existsSync(file))
        assert.strictEqual(await answer(server, "c1", { result: 1 }), 400)
        assert.strictEqual(await answer(server, "c1", { decision: "allow" }), 204)
        await stream.until("Question", 2)
        assert.strictEqual(await answer(server, "c2", { decision: "deny", reason: "one note is enough" }), 204)
        await stream.until("TurnEnded")
        assert.isTrue(existsSync(file))
        assert.isFalse(existsSync(`${file}.other`))
        assert.include(said(stream.events()), "one note is enough")
        assert.strictEqual(await answer(server, "c2", { decision: "allow" }), 409)
      })
    })

    it.live("calls of two agents are two questions, also under the same id", function* () {
      const home = newHome()
      const { body, file } = desk(home)
      // The conversations of both agents look the same, so their calls have the same id.
      const answers: ScriptedModel.Answers = (request) => {
        const [result] = Object.values(resultsIn(request))
        const isAgent = JSON.stringify(request.tools).includes('"complete_task"')
        if (!isAgent) {
          if (result !== undefined) return "done"
          return calls(["generalist", { request: "first" }, "c1"], ["generalist", { request: "second" }, "c2"])
        }
        if (result !== undefined) return calls(["complete_task", { result: "written" }, "end"])
        const task = JSON.stringify(request.contents).includes("second") ? "second" : "first"
        return calls(write(`${file}.${task}`, "w1"))
      }
      yield* serving({ home, answers, settings: deskSettings }, async (server) => {
        await create(server, body)
        const stream = await send(server)
        const first = (await stream.until("Question")).map(fieldsOf).at(-1)
        assert.deepInclude(first, { name: "write_file", args: { file_path: `${file}.first`, content: "hello" } })
        assert.strictEqual(await answer(server, String(first?.["call"]), { decision: "allow" }), 204)
        const second = (await stream.until("Question", 2)).map(fieldsOf).at(-1)
        assert.strictEqual(await answer(server, String(second?.["call"]), { decision: "deny" }), 204)
        await stream.until("TurnEnded")
        assert.isTrue(existsSync(`${file}.first`))
        assert.isFalse(existsSync(`${file}.second`))
      })
    })

    it.live(
      "calls of agents, and those that hooks add, are asked about once each, also under the same id",
      function* () {
        const home = newHome()
        const { body, file } = desk(home)
        const added = { hookSpecificOutput: { tailToolCallRequest: { name: "write_file", args: write(file, "")[1] } } }
        writeFileSync(join(home, "hook.json"), JSON.stringify(added))
        const hook = {
          matcher: "list_directory",
          hooks: [{ type: "command", command: `cat ${join(home, "hook.json")}` }]
        }
        writeFileSync(join(home, "settings.json"), JSON.stringify({ hooks: { AfterTool: [hook] } }))
        const answers: ScriptedModel.Answers = ({ contents, tools }) => {
          const isAnswered = contents.at(-1)?.parts.some(({ functionResponse }) => functionResponse !== undefined)
          if (JSON.stringify(tools).includes('"complete_task"')) {
            return calls(isAnswered ? ["complete_task", { result: "none" }, "end"] : write(file, "w1"))
          }
          return isAnswered
            ? "done"
            : calls(["list_directory", { dir_path: "." }, "c1"], ["generalist", { request: "write" }, "c2"])
        }
        yield* serving({ home, answers, settings: deskSettings }, async (server) => {
          await create(server, body)
          const asked: Array<unknown> = []
          for (const message of ["m1", "m2"]) {
            const stream = await send(server, message)
            for (const count of [1, 2]) {
              const { call } = fieldsOf((await stream.until("Question", count)).at(-1))
              asked.push(call)
              assert.strictEqual(await answer(server, String(call), { decision: "deny" }), 204)
            }
            await stream.until("TurnEnded")
          }
          assert.deepStrictEqual(asked, ["c1.1", "generalist.2", "c1.1~2", "generalist.2~2"])
        })
      }
    )

    it.live("without approvals, and at the deadline, a call is denied", function* () {
      const home = newHome()
      const { body, file } = desk(home, 200)
      const answers = calling(write(file, "c1"))
      yield* serving({ home, answers, settings: deskSettings }, async (server) => {
        await create(server, {})
        const first = await send(server)
        await first.until("TurnEnded")
        assert.notInclude(
          first.events().map(({ event }) => event._tag),
          "Question"
        )
        await server.ask("DELETE", one)
        await create(server, body)
        const second = await send(server)
        await second.until("TurnEnded")
        assert.include(said(second.events()), "nobody answered")
        assert.isFalse(existsSync(file))
      })
    })
  })
})
