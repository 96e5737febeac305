import { type AgentCard, type Message, type Part, Role, type Task as RemoteTask, TaskState } from "@a2a-js/sdk"
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  ServerCallContext
} from "@a2a-js/sdk/server"
import { ConfigProvider, Deferred, Effect, Exit, Fiber, Scope } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { TestClock } from "effect/testing"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Activity } from "../../../src/domain/chat/ChatEvent.ts"
import * as A2aAgent from "../../../src/layers/agent/A2aAgent.ts"
import type { Task } from "../../../src/services/agent/AgentRunner.ts"
import { listening } from "../../support/loopback.ts"
import { assert, describe, it } from "../../support/vitest.ts"

// What an agent says

const text = (value: string): Part => ({
  content: { $case: "text", value },
  metadata: undefined,
  filename: "",
  mediaType: "text/plain"
})

const message = ({ contextId, taskId }: RequestContext, ...parts: ReadonlyArray<Part>): Message => ({
  messageId: "m1",
  contextId,
  taskId,
  role: Role.ROLE_AGENT,
  parts: [...parts],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: []
})

/** What a script of the agent can say. */
const voice = (context: RequestContext, bus: ExecutionEventBus) => {
  const { contextId, taskId } = context
  const asked = context.userMessage.parts
    .map(({ content }) => (content?.$case === "text" ? content.value : ""))
    .join("")
  const status = (state: TaskState, said?: string) => ({
    state,
    message: said === undefined ? undefined : message(context, text(said)),
    timestamp: undefined
  })
  return {
    asked,
    contextId,
    taskId,
    begin: () =>
      bus.publish(
        AgentEvent.task({
          id: taskId,
          contextId,
          status: status(TaskState.TASK_STATE_SUBMITTED),
          artifacts: [],
          history: [],
          metadata: undefined
        })
      ),
    status: (state: TaskState, said?: string) =>
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, said), metadata: undefined })),
    artifact: (artifactId: string, parts: ReadonlyArray<Part>, append = false) =>
      bus.publish(
        AgentEvent.artifactUpdate({
          taskId,
          contextId,
          artifact: {
            artifactId,
            name: artifactId,
            description: "",
            parts: [...parts],
            metadata: undefined,
            extensions: []
          },
          append,
          lastChunk: true,
          metadata: undefined
        })
      ),
    say: (...parts: ReadonlyArray<Part>) => bus.publish(AgentEvent.message(message(context, ...parts))),
    finished: () => bus.finished()
  }
}
type Voice = ReturnType<typeof voice>

const card = (url: string, streaming: boolean): AgentCard => ({
  name: "remote",
  description: "",
  supportedInterfaces: [{ url, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" }],
  provider: undefined,
  version: "1",
  capabilities: { streaming, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [],
  signatures: []
})

// Servers on loopback

interface Request {
  readonly url: string
  readonly headers: IncomingMessage["headers"]
  readonly body: string
}

const bodyOf = (request: IncomingMessage): Promise<string> =>
  new Promise((resolve) => {
    let body = ""
    request.on("data", (chunk: Buffer) => (body += chunk.toString()))
    request.on("end", () => resolve(body))
  })

/** A server that answers by `answer`; its address, and what it was asked. */
const serve = Effect.fnUntraced(function* (
  answer: (request: Request, response: ServerResponse, address: string) => void | Promise<void>
) {
  const requests: Array<Request> = []
  const address: string = yield* listening((incoming, response) => {
    void bodyOf(incoming).then((body) => {
      const request = { url: incoming.url ?? "", headers: incoming.headers, body }
      requests.push(request)
      return answer(request, response, address)
    })
  })
  return { address, requests }
})

const json = (response: ServerResponse, status: number, value: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(typeof value === "string" ? value : JSON.stringify(value))
}

/** A server that has a card, and answers what it is asked by `answer`. */
const rpc = (streaming: boolean, answer: (request: Request, response: ServerResponse) => void) =>
  serve((request, response, own) =>
    request.url.endsWith("agent-card.json")
      ? json(response, 200, card(`${own}/rpc`, streaming))
      : answer(request, response)
  )

interface Script {
  readonly execute: (voice: Voice) => void | Promise<void>
  readonly cancel?: (taskId: string) => void
  readonly streaming?: boolean
  /** Is told when the client goes away before the answer is complete. */
  readonly gone?: () => void
}

/** A server of the SDK, mounted on Node's own. */
const agentServer = ({ cancel, execute, gone, streaming = true }: Script) => {
  let handler: JsonRpcTransportHandler | undefined
  const executor: AgentExecutor = {
    execute: (context, bus) => Promise.resolve(execute(voice(context, bus))),
    cancelTask: (taskId, bus) => {
      cancel?.(taskId)
      bus.publish(
        AgentEvent.statusUpdate({
          taskId,
          contextId: "",
          status: { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: undefined },
          metadata: undefined
        })
      )
      bus.finished()
      return Promise.resolve()
    }
  }
  return serve(async ({ body, url }, response, address) => {
    const own = card(`${address}/rpc`, streaming)
    if (url.endsWith("agent-card.json")) return json(response, 200, own)
    handler ??= new JsonRpcTransportHandler(new DefaultRequestHandler(own, new InMemoryTaskStore(), executor))
    const answer = await handler.handle(body, new ServerCallContext({ requestedVersion: "1.0" }))
    if (!(Symbol.asyncIterator in answer)) return json(response, 200, answer)
    response.on("close", () => {
      if (!response.writableFinished) gone?.()
    })
    response.writeHead(200, { "content-type": "text/event-stream" })
    for await (const event of answer) response.write(`data: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
}

// Our side

const quiet: Omit<Task, "prompt"> = { activity: () => Effect.void, waiting: (work) => work }
const live = SecureRandom.layerWebCrypto

const toUrl = (address: string, more: Partial<A2aAgent.A2aAgentOptions> = {}) =>
  A2aAgent.make({
    name: "remote",
    card: { url: `${address}/.well-known/agent-card.json` },
    auth: undefined,
    ...more
  }).pipe(Effect.provide(live))

const ask = (address: string, prompt = "hello", more: Partial<A2aAgent.A2aAgentOptions> = {}) =>
  Effect.gen(function* () {
    const { start } = yield* toUrl(address, more)
    return yield* (yield* start({ ...quiet, prompt })).result
  }).pipe(Effect.scoped)

/** A task that has reported its first activity, in a scope of its own. */
const working = Effect.fnUntraced(function* (address: string) {
  const begun = yield* Deferred.make<void>()
  const scope = yield* Scope.make()
  const { start } = yield* toUrl(address)
  const activity = () => Effect.asVoid(Deferred.succeed(begun, undefined))
  yield* Scope.provide(start({ ...quiet, prompt: "x", activity }), scope)
  yield* Deferred.await(begun)
  return scope
})

const refusal = (address: string, more: Partial<A2aAgent.A2aAgentOptions> = {}) =>
  Effect.map(Effect.flip(ask(address, "hello", more)), (error) => error.message)

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } = TaskState

describe("an agent over A2A", () => {
  for (const streaming of [true, false]) {
    it.effect(`answers with a message${streaming ? ", streaming" : ""}`, function* () {
      const { address, requests } = yield* agentServer({
        streaming,
        execute: ({ asked, say }) => say(text(`you said ${asked}`))
      })
      const { duration, ...result } = yield* ask(address, "grüße")
      assert.isAtLeast(duration, 0)
      assert.deepStrictEqual(result, { text: "you said grüße", reason: "GOAL", turns: 1, session: undefined })
      assert.deepStrictEqual(
        requests.map(({ url }) => url),
        ["/.well-known/agent-card.json", "/rpc"]
      )
    })

    it.effect(`answers with a task${streaming ? ", streaming" : ""}: its artifacts are the result`, function* () {
      const { address } = yield* agentServer({
        streaming,
        execute: ({ artifact, begin, status }) => {
          begin()
          status(TASK_STATE_WORKING, "I read the files")
          artifact("report", [text("one ")])
          artifact("report", [text("two")], true)
          artifact("data", [
            { ...text(""), content: { $case: "data", value: { n: 1 } } },
            {
              ...text(""),
              content: { $case: "raw", value: Buffer.from("abc") },
              filename: "a.png",
              mediaType: "image/png"
            },
            { ...text(""), content: { $case: "url", value: "https://example.com/x" } }
          ])
          status(TASK_STATE_COMPLETED, "all done")
        }
      })
      const { reason, text: said } = yield* ask(address)
      assert.strictEqual(reason, "GOAL")
      // A task that comes whole keeps the pieces of an artifact apart.
      assert.match(said, /^one \n?two\n/)
      assert.include(said, '"n": 1')
      assert.include(said, "[a.png, image/png, 3 bytes]")
      assert.include(said, "https://example.com/x")
    })
  }

  it.effect("reports status messages and artifacts as they arrive", function* () {
    const seen: Array<Activity> = []
    const { address } = yield* agentServer({
      execute: ({ artifact, begin, status }) => {
        begin()
        status(TASK_STATE_WORKING, "I read the files")
        artifact("report", [text("one")])
        status(TASK_STATE_COMPLETED)
      }
    })
    const { start } = yield* toUrl(address)
    yield* (yield* start({
      ...quiet,
      prompt: "x",
      activity: (activity) => Effect.sync(() => void seen.push(activity))
    })).result
    assert.deepStrictEqual(seen, [
      { _tag: "Thought", text: "I read the files" },
      { _tag: "Thought", text: "writes report" }
    ])
  })

  it.effect("returns a question as the result; the next message answers it, in the same task", function* () {
    const tasks: Array<string> = []
    const contexts: Array<string> = []
    const { address } = yield* agentServer({
      execute: ({ asked, begin, contextId, status, taskId }) => {
        tasks.push(taskId)
        contexts.push(contextId)
        begin()
        if (asked === "book") status(TASK_STATE_INPUT_REQUIRED, "for which day?")
        else status(TASK_STATE_COMPLETED, `booked for ${asked}`)
      }
    })
    const { start } = yield* toUrl(address)
    const first = yield* start({ ...quiet, prompt: "book" })
    assert.include((yield* first.result).text, "for which day?")
    assert.strictEqual(yield* first.send("Monday"), "booked for Monday")
    const second = yield* start({ ...quiet, prompt: "Tuesday" })
    assert.strictEqual((yield* second.result).text, "booked for Tuesday")
    const [one, two, three] = tasks
    assert.strictEqual(one, two)
    assert.notStrictEqual(two, three)
    assert.strictEqual(new Set(contexts).size, 1)
  })

  it.effect("stops waiting for a task that needs a key, although the server keeps the connection open", function* () {
    const { address } = yield* agentServer({
      execute: ({ begin, status }) => {
        begin()
        status(TaskState.TASK_STATE_AUTH_REQUIRED, "sign in at example.com")
        return new Promise(() => {})
      }
    })
    const { reason, text: said } = yield* ask(address)
    assert.strictEqual(reason, "ERROR")
    assert.include(said, "sign in at example.com")
  })

  it.effect("polls a task without updates until it is done", function* () {
    let looks = 0
    const task = (state: string) => ({ id: "t1", contextId: "c1", status: { state }, artifacts: [], history: [] })
    const { address } = yield* rpc(false, ({ body }, response) => {
      const { id, method } = JSON.parse(body)
      if (method === "GetTask") looks += 1
      const state = looks > 2 ? "TASK_STATE_COMPLETED" : "TASK_STATE_WORKING"
      json(response, 200, { jsonrpc: "2.0", id, result: method === "GetTask" ? task(state) : { task: task(state) } })
    })
    const fiber = yield* Effect.forkChild(ask(address, "hello", { silenceTimeout: "1000 days" }))
    while (fiber.pollUnsafe() === undefined) {
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      if (looks > 0) yield* TestClock.adjust("2 seconds")
    }
    assert.strictEqual((yield* Fiber.join(fiber)).reason, "GOAL")
    assert.strictEqual(looks, 3)
  })
})

describe("interruption", () => {
  it.effect("cancels the remote task and closes the socket", function* () {
    const cancelled = yield* Deferred.make<string>()
    const gone = yield* Deferred.make<void>()
    let id = ""
    const { address, requests } = yield* agentServer({
      execute: ({ begin, status, taskId }) => {
        id = taskId
        begin()
        status(TASK_STATE_WORKING, "this takes long")
        return new Promise(() => {})
      },
      cancel: (taskId) => Deferred.doneUnsafe(cancelled, Exit.succeed(taskId)),
      gone: () => Deferred.doneUnsafe(gone, Exit.void)
    })
    const scope = yield* working(address)
    yield* Scope.close(scope, Exit.void)
    assert.strictEqual(yield* Deferred.await(cancelled), id)
    yield* Deferred.await(gone)
    assert.include(requests.at(-1)?.body ?? "", "CancelTask")
  })

  it.effect("waits a limited time for a server that does not confirm the cancel", function* () {
    const cancelling = yield* Deferred.make<void>()
    const { address } = yield* rpc(true, ({ body }, response) => {
      const { id, method } = JSON.parse(body)
      if (method === "CancelTask") {
        Deferred.doneUnsafe(cancelling, Exit.void)
        return
      }
      response.writeHead(200, { "content-type": "text/event-stream" })
      const statusUpdate = {
        taskId: "t1",
        contextId: "c1",
        status: { state: "TASK_STATE_WORKING", message: { parts: [{ text: "hm" }] } }
      }
      response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { statusUpdate } })}\n\n`)
    })
    const scope = yield* working(address)
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void))
    yield* Deferred.await(cancelling)
    yield* TestClock.adjust("5 seconds")
    assert.isTrue(Exit.isSuccess(yield* Fiber.await(closing)))
  })

  it.effect("closes the socket of a server that never answers", function* () {
    const asked = yield* Deferred.make<void>()
    const gone = yield* Deferred.make<void>()
    const { address } = yield* rpc(true, (_request, response) => {
      response.on("close", () => Deferred.doneUnsafe(gone, Exit.void))
      Deferred.doneUnsafe(asked, Exit.void)
    })
    const fiber = yield* Effect.forkChild(ask(address))
    yield* Deferred.await(asked)
    yield* Fiber.interrupt(fiber)
    yield* Deferred.await(gone)
    assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
  })

  it.effect("gives up a server that falls silent, and keeps its messages", function* () {
    const begun = yield* Deferred.make<void>()
    const { address } = yield* agentServer({
      execute: ({ artifact, begin, status }) => {
        begin()
        artifact("report", [text("half of it")])
        status(TASK_STATE_WORKING, "and now")
        return new Promise(() => {})
      }
    })
    const { start } = yield* toUrl(address, { silenceTimeout: "1 minute" })
    const running = yield* start({
      ...quiet,
      prompt: "x",
      activity: (activity) =>
        activity._tag === "Thought" && activity.text === "and now"
          ? Effect.asVoid(Deferred.succeed(begun, undefined))
          : Effect.void
    })
    yield* Deferred.await(begun)
    const fiber = yield* Effect.forkChild(running.result)
    while (fiber.pollUnsafe() === undefined) {
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      yield* TestClock.adjust("1 second")
    }
    const { reason, text: said } = yield* Fiber.join(fiber)
    assert.strictEqual(reason, "ERROR")
    assert.include(said, "sent nothing for 1m")
    assert.include(said, "half of it")
  })
})

describe("credentials", () => {
  const variables = ConfigProvider.layer(
    ConfigProvider.fromUnknown({ REMOTE_KEY: "key-123", REMOTE_USER: "ann", REMOTE_PASSWORD: "pässword", ODD: "a\nb" })
  )
  const cases: ReadonlyArray<
    readonly [name: string, auth: A2aAgent.A2aAgentOptions["auth"], header: string, value: string]
  > = [
    ["a key", { type: "apiKey", key: "$REMOTE_KEY" }, "x-api-key", "key-123"],
    ["a key by its header", { type: "apiKey", key: "${REMOTE_KEY}", name: "X-Other" }, "x-other", "key-123"],
    ["a bearer", { type: "http", scheme: "Bearer", token: "$REMOTE_KEY" }, "authorization", "Bearer key-123"],
    [
      "a name and a password",
      { type: "http", scheme: "basic", username: "$REMOTE_USER", password: "$REMOTE_PASSWORD" },
      "authorization",
      `Basic ${Buffer.from("ann:pässword").toString("base64")}`
    ]
  ]
  it.effect.each(cases)("are sent as %s, with every request", variables, function* ([, auth, header, value]) {
    const { address, requests } = yield* agentServer({ execute: ({ say }) => say(text("ok")) })
    assert.strictEqual((yield* ask(address, "x", { auth })).text, "ok")
    assert.deepStrictEqual(
      requests.map(({ headers }) => headers[header]),
      [value, value]
    )
  })

  it.effect("that are missing or invalid are reported before anything is sent", variables, function* () {
    const { address, requests } = yield* agentServer({ execute: ({ say }) => say(text("ok")) })
    assert.include(yield* refusal(address, { auth: { type: "apiKey", key: "$NOWHERE" } }), "NOWHERE, which is not set")
    assert.include(yield* refusal(address, { auth: { type: "http", scheme: "Bearer" } }), "lacks token")
    assert.include(yield* refusal(address, { auth: { type: "apiKey", key: "$ODD" } }), "cannot be sent")
    assert.include(yield* refusal(address, { auth: { type: "oauth" } }), "not supported")
    assert.deepStrictEqual(requests, [])
  })

  it.effect("go to no other server and into no message", variables, function* () {
    const elsewhere = yield* agentServer({ execute: ({ say }) => say(text("caught")) })
    const { address } = yield* serve((_, response) => json(response, 200, card(`${elsewhere.address}/rpc`, true)))
    const auth = { type: "apiKey", key: "$REMOTE_KEY" } as const
    assert.include(yield* refusal(address, { auth }), "comes from another one")
    const redirecting = yield* serve((_, response) => {
      response.writeHead(302, { location: `${elsewhere.address}/.well-known/agent-card.json` })
      response.end()
    })
    assert.include(yield* refusal(redirecting.address, { auth }), "redirects are not followed")
    assert.deepStrictEqual(elsewhere.requests, [])
    const echo = yield* rpc(true, ({ headers }, response) => json(response, 400, `no: ${String(headers["x-api-key"])}`))
    assert.notInclude(yield* refusal(echo.address, { auth }), "key-123")
  })

  it.effect("a forbidden address is not contacted, whether it has the card or is named in it", function* () {
    const { address, requests } = yield* agentServer({ execute: ({ say }) => say(text("ok")) })
    const asked: Array<string> = []
    const checkAddress = (url: URL) =>
      Effect.andThen(
        Effect.sync(() => asked.push(url.origin)),
        Effect.fail({ message: `${url.host} is refused` })
      )
    const host = new URL(address).host
    const given = { json: JSON.stringify(card(`${address}/rpc`, true)) }
    assert.strictEqual(yield* refusal(address, { checkAddress }), `agent remote: ${host} is refused`)
    assert.strictEqual(yield* refusal(address, { checkAddress, card: given }), `agent remote: ${host} is refused`)
    assert.deepStrictEqual(asked, [address, address])
    assert.deepStrictEqual(requests, [])
    assert.strictEqual((yield* ask(address, "x", { checkAddress: () => Effect.void })).text, "ok")
  })
})

describe("errors are described", () => {
  it.effect("for a card", function* () {
    const answering = (status: number, body: unknown) =>
      Effect.flatMap(
        serve((_, response) => json(response, status, body)),
        ({ address }) => refusal(address)
      )
    assert.include(yield* answering(404, "no"), "no agent at that address")
    assert.include(yield* answering(401, "no"), "requires authentication")
    assert.include(yield* answering(500, "no"), "the server failed")
    assert.include(yield* answering(200, "<html>"), "not A2A")
    assert.include(yield* answering(200, { name: "x" }), "is not an agent card")
    assert.include(yield* refusal("http://127.0.0.1:1"), "cannot be reached")
    assert.include(yield* refusal("nowhere"), "the address of agent remote is invalid")
    assert.include(yield* refusal("", { card: { json: "{" } }), "is not JSON")
    assert.include(yield* refusal("", { card: { json: "[]" } }), "is not an agent card")
  })

  const sse = (response: ServerResponse, ...pieces: ReadonlyArray<string>) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    for (const piece of pieces) response.write(piece)
    response.end()
  }
  const piece = (id: unknown) =>
    `data: ${JSON.stringify({
      jsonrpc: "2.0",
      id,
      result: {
        artifactUpdate: {
          taskId: "",
          contextId: "c",
          artifact: { artifactId: "a", parts: [{ text: "half of it" }] }
        }
      }
    })}\n\n`
  const answers: ReadonlyArray<
    readonly [name: string, answer: (response: ServerResponse, id: unknown) => void, says: ReadonlyArray<string>]
  > = [
    ["a page", (response) => json(response, 200, "<html>"), ["not A2A"]],
    [
      "broken JSON after a piece",
      (response, id) => sse(response, piece(id), "data: {\n\n"),
      ["not A2A", "Partial result:\nhalf of it"]
    ],
    [
      "a connection that breaks off",
      (response, id) => {
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(piece(id), () => response.destroy())
      },
      ["broke off", "half of it"]
    ],
    ["nothing", (response) => sse(response), ["ended without an answer"]],
    [
      "an error of the protocol",
      (response, id) => json(response, 200, { jsonrpc: "2.0", id, error: { code: -32603, message: "out of memory" } }),
      ["out of memory"]
    ],
    [
      "a redirection",
      (response) => {
        response.writeHead(307, { location: "http://169.254.169.254/" })
        response.end()
      },
      ["not followed"]
    ],
    ["an event without end", (response) => sse(response, `data: ${"x".repeat(5_000_000)}`), ["more than 4 MiB"]],
    [
      "events without end",
      (response, id) => sse(response, ...Array.from({ length: 40 }, () => `${piece(id)}: ${"x".repeat(1_000_000)}\n`)),
      ["more than 32 MiB", "half of it"]
    ]
  ]
  it.effect.each(answers)("with %s as a response", function* ([, answer, says]) {
    const { address } = yield* rpc(true, ({ body }, response) => answer(response, JSON.parse(body).id))
    const said = yield* ask(address).pipe(
      Effect.map(({ reason, text: words }) => `${reason} ${words}`),
      Effect.catch((error) => Effect.succeed(error.message))
    )
    for (const words of says) assert.include(said, words)
  })

  it.effect("and a huge response that does not stream is cut off", function* () {
    const { address } = yield* rpc(false, (_request, response) => {
      json(response, 200, `{"jsonrpc":"2.0","id":1,"result":"${"x".repeat(40_000_000)}"}`)
    })
    assert.include(yield* refusal(address), "more than 32 MiB")
  })

  it.effect("and a task that the server forgot is started again", function* () {
    const bodies: Array<string> = []
    const { address } = yield* rpc(false, ({ body }, response) => {
      bodies.push(body)
      const { id } = JSON.parse(body)
      const task: Pick<RemoteTask, "id" | "contextId"> = { id: "t1", contextId: "c1" }
      json(
        response,
        200,
        bodies.length === 1
          ? { jsonrpc: "2.0", id, result: { task: { ...task, status: { state: "TASK_STATE_INPUT_REQUIRED" } } } }
          : bodies.length === 2
            ? { jsonrpc: "2.0", id, error: { code: -32001, message: "Task not found" } }
            : { jsonrpc: "2.0", id, result: { task: { ...task, status: { state: "TASK_STATE_COMPLETED" } } } }
      )
    })
    const { start } = yield* toUrl(address)
    const { result, send } = yield* start({ ...quiet, prompt: "x" })
    yield* result
    assert.include((yield* Effect.flip(send("y"))).message, "no longer has this task")
    yield* send("z")
    assert.include(bodies[1] ?? "", '"taskId":"t1"')
    assert.notInclude(bodies[2] ?? "", "t1")
    assert.include(bodies[2] ?? "", '"contextId":"c1"')
  })
})
