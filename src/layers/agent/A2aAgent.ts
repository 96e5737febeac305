/**
 * Runs remote agents over A2A with the client of `@a2a-js/sdk`, whose only dependency is `jose`. The SDK loads with this file, and this
 * file with the first remote agent. Supports servers of protocol 1.0 and 0.3.
 */

import {
  type Part,
  Role,
  SendMessageRequest,
  type StreamResponse,
  type Task as RemoteTask,
  TaskState,
  type TaskStatus
} from "@a2a-js/sdk"
import type { Client } from "@a2a-js/sdk/client"
import { Clock, Duration, Effect, Exit, Fiber, Ref, Result, Stream } from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type { RemoteAgent } from "../../domain/agent/AgentDefinition.ts"
import {
  afterEvent,
  answerLength,
  answerText,
  isOver,
  nothingYet,
  type RemoteEvent,
  type RemoteProgress,
  remoteResult,
  stageOf,
  thoughtOf
} from "../../domain/agent/RemoteProgress.ts"
import type { AgentFailure, AgentRunner, Task } from "../../services/agent/AgentRunner.ts"
import { type Header, headerOf } from "./A2aAuth.ts"
import {
  type LoadedCard,
  connect,
  type Endpoint,
  type Exchange,
  failed,
  failure,
  makeExchange,
  request
} from "./A2aConnection.ts"

/** The agent to reach, and the timeout. */
export interface A2aAgentOptions extends Pick<RemoteAgent, "name" | "card" | "auth"> {
  /** Fails for an address that must not be contacted. Runs before each message, for the address of the card and those that it names. */
  readonly checkAddress?: Endpoint["checkAddress"]
  /** How long the agent may stay silent before the task is given up. */
  readonly silenceTimeout?: Duration.Input | undefined
}

/** Characters of an answer. */
const maxAnswerChars = 8 * 1024 * 1024
const defaultSilenceTimeout: Duration.Input = "10 minutes"
/** The time limit for cancelling the remote task. */
const closeTimeout: Duration.Input = "5 seconds"
/** The interval at which a task that sends no updates is polled. */
const pollInterval: Duration.Input = "2 seconds"

/** Makes the runner of one remote agent. It keeps the context and an open task from call to call. */
export const make = Effect.fnUntraced(function* ({
  auth,
  card,
  name,
  silenceTimeout = defaultSilenceTimeout,
  checkAddress
}: A2aAgentOptions): Effect.fn.Return<AgentRunner, never, SecureRandom.SecureRandom> {
  const agent: A2aAgent = {
    name,
    where: card,
    checkAddress,
    loadedCard: yield* Ref.make<LoadedCard | undefined>(undefined),
    contact: yield* Ref.make<Contact>({ contextId: undefined, taskId: undefined }),
    credentials: yield* Effect.result(headerOf(name, auth)),
    silenceTimeout: Duration.fromInputUnsafe(silenceTimeout),
    random: yield* SecureRandom.SecureRandom
  }
  return { start: (task) => start(agent, task) }
})

/** A remote agent, and the state of a conversation with it across calls. */
interface A2aAgent extends Endpoint {
  readonly contact: Ref.Ref<Contact>
  /** Read once. Errors are reported when the agent is started, so an agent with a missing key does not affect others. */
  readonly credentials: Result.Result<Header | undefined, AgentFailure>
  readonly silenceTimeout: Duration.Duration
  readonly random: SecureRandom.SecureRandom["Service"]
}

interface Contact {
  readonly contextId: string | undefined
  /** The id of an unfinished task. */
  readonly taskId: string | undefined
}

const start = Effect.fn("A2aAgent.start")(function* (agent: A2aAgent, { activity, prompt }: Task) {
  yield* Effect.fromResult(agent.credentials)
  const id = yield* agent.random.uuidV7()
  const fiber = yield* Effect.forkScoped(sendMessage(agent, prompt, activity), { startImmediately: true })
  return {
    id: `${agent.name} ${id}`,
    result: Fiber.join(fiber),
    send: Effect.fn("A2aAgent.send")(function* (message: string) {
      return (yield* sendMessage(agent, message, activity)).text
    })
  }
})

/** One message to the agent, and the answer received so far. */
interface Delivery {
  readonly agent: A2aAgent
  readonly exchange: Exchange
  readonly received: Ref.Ref<RemoteProgress>
  readonly activity: Task["activity"]
}

/** Sends one message and collects the answer. */
const sendMessage = Effect.fnUntraced(function* (agent: A2aAgent, text: string, activity: Task["activity"]) {
  const header = yield* Effect.fromResult(agent.credentials)
  const began = yield* Clock.currentTimeMillis
  const received = yield* Ref.make(nothingYet)
  const outcome = yield* Effect.result(followTask({ agent, exchange: makeExchange(header), received, activity }, text))
  const progress = yield* Ref.get(received)
  if (Result.isFailure(outcome)) {
    if (/no longer has this task/.test(outcome.failure.message)) yield* forgetTask(agent)
    if (answerText(progress) === "") return yield* outcome.failure
  }
  return {
    ...remoteResult(progress, Result.isFailure(outcome) ? outcome.failure.message : undefined),
    turns: Math.max(1, progress.turns),
    duration: (yield* Clock.currentTimeMillis) - began,
    session: undefined
  }
})

/** Sends a message and follows the task until it ends or waits. A task without a listener is cancelled. */
const followTask = Effect.fnUntraced(
  function* (sent: Delivery, text: string) {
    const { agent, exchange } = sent
    const client = yield* connect(agent, exchange)
    const at = yield* Ref.get(agent.contact)
    const message = SendMessageRequest.fromJSON({
      message: {
        messageId: yield* agent.random.uuidV7(),
        ...(at.contextId === undefined ? {} : { contextId: at.contextId }),
        ...(at.taskId === undefined ? {} : { taskId: at.taskId }),
        role: Role.ROLE_USER,
        parts: [{ text, mediaType: "text/plain" }]
      }
    })
    yield* Stream.fromAsyncIterable(client.sendMessageStream(message), (error) => failure(agent, exchange, error)).pipe(
      Stream.timeoutOrElse({
        duration: agent.silenceTimeout,
        orElse: () => Stream.fail(failed(agent, `it sent nothing for ${Duration.format(agent.silenceTimeout)}`))
      }),
      Stream.map(eventOf),
      // A server may keep the connection open although nothing more is expected: it waits for authentication or for another message.
      Stream.takeUntil((event) => event !== undefined && "stage" in event && event.stage !== "working"),
      Stream.runForEach((event) => (event === undefined ? Effect.void : receive(sent, event)))
    )
    yield* poll(sent, client).pipe(
      Effect.timeoutOrElse({
        duration: agent.silenceTimeout,
        orElse: () => Effect.fail(failed(agent, `it did not finish within ${Duration.format(agent.silenceTimeout)}`))
      })
    )
  },
  Effect.scoped,
  // The socket is closed by now. The task need not continue without a listener.
  (work, { agent, exchange, received }) =>
    Effect.onExit(work, (exit) =>
      Effect.flatMap(Ref.get(received), ({ stage, taskId }) =>
        Exit.isSuccess(exit) || taskId === undefined || isOver(stage)
          ? Effect.void
          : Effect.andThen(forgetTask(agent), cancelTask(agent, taskId, exchange.header))
      )
    )
)

/** The task may continue without updates. Then it is polled. */
const poll = Effect.fnUntraced(function* (sent: Delivery, client: Client) {
  const { agent, exchange, received } = sent
  for (let at = yield* Ref.get(received); at.stage === "working"; at = yield* Ref.get(received)) {
    const { taskId } = at
    if (taskId === undefined) return yield* failed(agent, "it ended without an answer")
    const task = yield* request(agent, exchange, () => client.getTask({ tenant: "", id: taskId }))
    const event = taskEvent(task)
    yield* receive(sent, event)
    if (event.stage === "working") yield* Effect.sleep(pollInterval)
  }
})

/** Adds an event to the answer and reports it. */
const receive = Effect.fnUntraced(function* ({ activity, agent, received }: Delivery, event: RemoteEvent) {
  const now = yield* Ref.updateAndGet(received, (before) => afterEvent(before, event))
  yield* Ref.update(agent.contact, (before) => ({
    contextId: event.contextId === "" ? before.contextId : event.contextId,
    taskId: isOver(now.stage) ? undefined : now.taskId
  }))
  if (answerLength(now) > maxAnswerChars) {
    return yield* failed(agent, `it answered with more than ${maxAnswerChars / 1024 / 1024} Mi characters`)
  }
  const thought = thoughtOf(event)
  if (thought !== "") yield* activity({ _tag: "Thought", text: thought })
})

const forgetTask = ({ contact }: A2aAgent) => Ref.update(contact, (before) => ({ ...before, taskId: undefined }))

/** Asks the agent to stop a task. The agent may ignore it, so the wait is short. */
const cancelTask = (agent: A2aAgent, taskId: string, header: Header | undefined) =>
  Effect.gen(function* () {
    const exchange = makeExchange(header)
    const client = yield* connect(agent, exchange)
    yield* request(agent, exchange, () => client.cancelTask({ tenant: "", id: taskId, metadata: undefined }))
  }).pipe(Effect.scoped, Effect.interruptible, Effect.timeoutOption(closeTimeout), Effect.ignore)

const statusOf = (status: TaskStatus | undefined) => ({
  stage: stageOf(status === undefined ? undefined : TaskState[status.state]),
  text: textOf(status?.message?.parts)
})

const taskEvent = ({ artifacts, contextId, id, status }: RemoteTask) => ({
  _tag: "Task" as const,
  contextId,
  taskId: id,
  ...statusOf(status),
  artifacts: artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)] as const)
})

/** Returns the event of a response; undefined if it contains nothing. */
const eventOf = ({ payload }: StreamResponse): RemoteEvent | undefined => {
  switch (payload?.$case) {
    case "message": {
      const { contextId, parts, taskId } = payload.value
      return { _tag: "Message", contextId, taskId, text: textOf(parts) }
    }
    case "task":
      return taskEvent(payload.value)
    case "statusUpdate": {
      const { contextId, status, taskId } = payload.value
      return { _tag: "Status", contextId, taskId, ...statusOf(status) }
    }
    case "artifactUpdate": {
      const { append, artifact, contextId, taskId } = payload.value
      if (artifact === undefined) return undefined
      const { artifactId: id, name: title, parts } = artifact
      return { _tag: "Artifact", contextId, taskId, id, title, text: textOf(parts), append }
    }
    case undefined:
      return undefined
  }
}

const partText = ({ content, filename, mediaType }: Part): string => {
  switch (content?.$case) {
    case "text":
      return content.value
    case "url":
      return content.value
    case "data":
      return JSON.stringify(content.value, undefined, 2) ?? ""
    case "raw":
      return `[${[filename, mediaType].filter((word) => word !== "").join(", ") || "a file"}, ${content.value.length} bytes]`
    case undefined:
      return ""
  }
}

const textOf = (parts: ReadonlyArray<Part> | undefined): string =>
  (parts ?? [])
    .map(partText)
    .filter((text) => text !== "")
    .join("\n")
