import {
  type AgentCard,
  type Message,
  type Part,
  Role,
  SendMessageRequest,
  type Task as RemoteTask,
  TaskState,
  type TaskStatus
} from "@a2a-js/sdk"
import * as sdk from "@a2a-js/sdk/client"
import {
  Clock,
  Config,
  Duration,
  Effect,
  Exit,
  Fiber,
  Option,
  Predicate,
  Redacted,
  Ref,
  Result,
  Schema,
  Stream,
  type Scope
} from "effect"
import * as SecureRandom from "effect/crypto/SecureRandom"
import { Buffer } from "node:buffer"
import type { AgentAuth, RemoteAgent } from "../../domain/agent/AgentDefinition.ts"
import { clipped } from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import {
  AgentFailure,
  type AgentResult,
  type AgentRunner,
  type Running,
  type Task,
  type TerminateReason
} from "../../services/agent/AgentRunner.ts"
import { bounded } from "../model/BoundedResponse.ts"

/**
 * A remote agent over A2A, by the client part of `@a2a-js/sdk`, which needs no other package than its own `jose`. The SDK is loaded with this
 * file, and this file with the first remote agent. Supports servers of protocol 1.0 and 0.3.
 *
 * One file: requests, their bounds and the events of one remote task belong to one exchange.
 */

/** The agent to reach, and the timeout. */
export interface A2aAgentOptions extends Pick<RemoteAgent, "name" | "card" | "auth"> {
  /** Fails for an address that must not be contacted. Runs before each message, for the address of the card and those that it names. */
  readonly reach?: ((url: URL) => Effect.Effect<unknown, { readonly message: string }>) | undefined
  /** How long the agent may stay silent before the task is given up. */
  readonly patience?: Duration.Input | undefined
}

/** Bytes of one response. The largest single event is 4 MiB, a limit of the SDK. */
const maxResponseBytes = 32 * 1024 * 1024
/** Characters of an answer. */
const maxAnswerChars = 8 * 1024 * 1024
const defaultSilenceTimeout: Duration.Input = "10 minutes"
/** The time limit for loading the card and for cancelling the remote task. */
const requestTimeout: Duration.Input = "30 seconds"
const closeTimeout: Duration.Input = "5 seconds"
/** The interval at which a task that sends no updates is polled. */
const pollInterval: Duration.Input = "2 seconds"

const failed = (message: string): AgentFailure => new AgentFailure({ message })

const clip = (text: string): string => clipped(text, 500)

/** A value of a definition, with `$NAME` and `${NAME}` replaced by environment variables. */
const valueOf = Effect.fnUntraced(function* (
  agent: string,
  field: string,
  text: string | undefined
): Effect.fn.Return<string, AgentFailure> {
  if (text === undefined) return yield* failed(`the auth of agent ${agent} lacks ${field}`)
  const name = /^\$(?:\{(\w+)\}|(\w+))$/.exec(text)
  const variable = name?.[1] ?? name?.[2]
  if (variable === undefined) return text
  const value = yield* Effect.option(Config.Redacted(variable))
  const filled = Option.match(value, { onNone: () => "", onSome: (secret) => Redacted.value(secret).trim() })
  return filled === "" ? yield* failed(`agent ${agent} wants the variable ${variable}, which is not set`) : filled
})

interface Header {
  readonly name: string
  readonly value: Redacted.Redacted<string>
}

const headerOf = Effect.fnUntraced(function* (
  agent: string,
  auth: AgentAuth | undefined
): Effect.fn.Return<Header | undefined, AgentFailure> {
  if (auth === undefined) return undefined
  const header = Effect.fnUntraced(function* (name: string, value: string): Effect.fn.Return<Header, AgentFailure> {
    // `fetch` would reject it with the value in the message.
    if (!/^[\x20-\x7e]+$/.test(value) || !/^[\w-]+$/.test(name)) {
      return yield* failed(
        `the auth of agent ${agent} cannot be sent as a header; check it for line ends and odd characters`
      )
    }
    return { name, value: Redacted.make(value) }
  })
  switch (auth.type) {
    case "apiKey":
      return yield* header(auth.name ?? "X-API-Key", yield* valueOf(agent, "key", auth.key))
    case "http": {
      const scheme = auth.scheme.toLowerCase()
      if (auth.value === undefined && scheme === "bearer") {
        return yield* header("Authorization", `Bearer ${yield* valueOf(agent, "token", auth.token)}`)
      }
      if (auth.value === undefined && scheme === "basic") {
        const user = yield* valueOf(agent, "username", auth.username)
        const password = yield* valueOf(agent, "password", auth.password)
        return yield* header("Authorization", `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`)
      }
      return yield* header("Authorization", `${auth.scheme} ${yield* valueOf(agent, "value", auth.value)}`)
    }
    case "google-credentials":
    case "oauth":
      return yield* failed(
        `agent ${agent} wants ${auth.type}, which is not supported here; give a token as http with scheme Bearer`
      )
  }
})

/** What happened to a request beyond what the SDK reports. */
interface Exchange {
  status: number | undefined
  /** Why this client aborted the request. */
  refusal: string | undefined
}

/** A `fetch` for a single host that authenticates, follows no redirection and limits the size of the response. */
const guarded =
  (
    isAllowed: (origin: string) => boolean,
    header: Header | undefined,
    signal: AbortSignal,
    exchange: Exchange
  ): typeof fetch =>
  (input, init) => {
    const refuse = (why: string) => {
      exchange.refusal = why
      return Promise.reject(new Error(why))
    }
    const { href, host, origin } = new URL(input instanceof Request ? input.url : input)
    if (!isAllowed(origin)) {
      return refuse(
        `its card sends us to ${host}, which is not where the card lies; give the card itself (agent_card_json) if that is meant`
      )
    }
    const headers = new Headers(init?.headers)
    if (header !== undefined) headers.set(header.name, Redacted.value(header.value))
    return fetch(href, { ...init, headers, redirect: "manual", signal }).then((response) => {
      exchange.status = response.status
      if (response.status < 300 || response.status >= 400) {
        const exceeded = () => {
          exchange.refusal = `it answered with more than ${maxResponseBytes / 1024 / 1024} MiB`
          return new Error(exchange.refusal)
        }
        return bounded(response, maxResponseBytes, exceeded, signal)
      }
      return refuse(`it sends us on to ${clip(response.headers.get("location") ?? "elsewhere")}, which is not followed`)
    })
  }

/** The fields of a card that are needed. The SDK does not validate them. */
const isCard = Schema.is(
  Schema.Struct({
    supportedInterfaces: Schema.Array(Schema.Struct({ url: Schema.String, protocolBinding: Schema.String }))
  })
)

const originOf = (url: string): string | undefined => Result.getOrUndefined(Result.try(() => new URL(url)))?.origin

const readJson = Schema.decodeUnknownEffect(fromJson(Schema.Unknown))

/** The code of a failed connection, which Node puts somewhere in the chain of causes. */
const codeOf = (error: unknown): string | undefined => {
  if (!Predicate.isObject(error)) return undefined
  if ("code" in error && Predicate.isString(error.code)) return error.code
  return "cause" in error ? codeOf(error.cause) : undefined
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const isOf = (error: unknown, name: string): boolean =>
  error instanceof Error && (error.name === name || (error.cause !== undefined && isOf(error.cause, name)))

/** The error message for the user. */
const errorText = (error: unknown, exchange: Exchange, header: Header | undefined): string => {
  if (exchange.refusal !== undefined) return exchange.refusal
  if (isOf(error, "TaskNotFoundError"))
    return "it no longer knows the task that this goes on with; say it again to begin anew"
  if (exchange.status === 401 || exchange.status === 403) {
    return header === undefined
      ? `it wants to know who asks (HTTP ${exchange.status}); give auth in the agent's definition`
      : `it refuses our credentials (HTTP ${exchange.status}); check the auth in the agent's definition`
  }
  if (exchange.status === 404) return "there is no agent at that address (HTTP 404); check its address"
  if (exchange.status === 429) return "it is asked too often (HTTP 429); try again later"
  if (exchange.status !== undefined && exchange.status >= 500) {
    return `it has trouble of its own (HTTP ${exchange.status}); try again later`
  }
  const message = messageOf(error)
  const code = codeOf(error)
  if (exchange.status === undefined) return `it cannot be reached (${code ?? clip(message)}); is it running?`
  if (code?.startsWith("UND_ERR") === true || message === "terminated") return "the connection broke off; try again"
  if (/maximum allowed size/.test(message)) return "it answered with an event of more than 4 MiB"
  if (error instanceof SyntaxError || /JSON|SSE|Content-Type/.test(message)) {
    return `its answer is not A2A (${clip(message)})`
  }
  return clip(message)
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

const messageText = (message: Message | undefined): string => textOf(message?.parts)

/** The stage of a task: working, waiting for input, waiting for authentication, or ended. */
type Stage = "working" | "asking" | "locked" | TerminateReason

/** The answer received so far. */
interface RemoteProgress {
  readonly taskId: string | undefined
  readonly stage: Stage
  /** The last text outside its artifacts. */
  readonly words: string
  readonly artifacts: ReadonlyMap<string, string>
  readonly turns: number
}

const nothingYet: RemoteProgress = { taskId: undefined, stage: "working", words: "", artifacts: new Map(), turns: 0 }

const wordsOf = ({ artifacts, words }: RemoteProgress): string =>
  [...artifacts.values(), ...(artifacts.size > 0 ? [] : [words])].filter((text) => text !== "").join("\n\n")

/** The state of a conversation with an agent across calls. */
interface Contact {
  readonly contextId: string | undefined
  /** The id of an unfinished task. */
  readonly taskId: string | undefined
}

const nonEmpty = (id: string): string | undefined => (id === "" ? undefined : id)

/** Makes the runner of one remote agent. It keeps the context and an open task from call to call. */
export const make = Effect.fnUntraced(function* ({
  auth,
  card: where,
  name,
  patience: silenceTimeout = defaultSilenceTimeout,
  reach
}: A2aAgentOptions): Effect.fn.Return<AgentRunner, never, SecureRandom.SecureRandom> {
  const random = yield* SecureRandom.SecureRandom
  const contact = yield* Ref.make<Contact>({ contextId: undefined, taskId: undefined })
  const agreedCard = yield* Ref.make<{ readonly card: AgentCard; readonly origins: ReadonlyArray<string> } | undefined>(
    undefined
  )
  // Read once and reported when the agent is started, so that an agent with a missing key does not affect others.
  const credentials = yield* Effect.result(headerOf(name, auth))
  const patience = Duration.fromInputUnsafe(silenceTimeout)
  const place = "url" in where ? where.url : "its card"

  const hide = (text: string, header: Header | undefined): string => {
    if (header === undefined) return text
    const secret = Redacted.value(header.value)
    const bare = secret.slice(secret.indexOf(" ") + 1)
    return text.replaceAll(secret, "<credentials>").replaceAll(bare, "<credentials>")
  }

  const failure = (error: unknown, exchange: Exchange, header: Header | undefined): AgentFailure =>
    failed(`agent ${name}: ${hide(errorText(error, exchange, header), header)}`)

  const check = (url: string): Effect.Effect<void, AgentFailure> =>
    reach === undefined
      ? Effect.void
      : reach(new URL(url)).pipe(
          Effect.mapError(({ message }) => failed(`agent ${name}: ${message}`)),
          Effect.asVoid
        )

  /** A client whose requests end with the scope. */
  const connect = Effect.fnUntraced(function* (
    exchange: Exchange,
    header: Header | undefined
  ): Effect.fn.Return<sdk.Client, AgentFailure, Scope.Scope> {
    const signal = yield* Effect.abortSignal
    const attempt = <A>(run: () => Promise<A>) =>
      Effect.tryPromise({ try: run, catch: (error) => failure(error, exchange, header) })
    const resolver = (fetchImpl: typeof fetch) =>
      new sdk.DefaultAgentCardResolver({ fetchImpl, legacyCompat: { enabled: true } })

    const load = Effect.gen(function* (): Effect.fn.Return<unknown, AgentFailure> {
      if ("json" in where) {
        const json = yield* Effect.mapError(readJson(where.json), () => failed(`the card of agent ${name} is not JSON`))
        return resolver(fetch).normalizeAgentCard(json)
      }
      const origin = originOf(where.url)
      if (origin === undefined) return yield* failed(`the address of agent ${name} is none: ${clip(where.url)}`)
      const fetchImpl = guarded((other) => other === origin, header, signal, exchange)
      yield* check(where.url)
      const isBare = new URL(where.url).pathname === "/"
      return yield* attempt(() => resolver(fetchImpl).resolve(where.url, isBare ? undefined : "")).pipe(
        Effect.timeoutOrElse({
          duration: requestTimeout,
          orElse: () =>
            Effect.fail(
              failed(
                `agent ${name} does not give its card within ${Duration.format(Duration.fromInputUnsafe(requestTimeout))}`
              )
            )
        })
      )
    })

    let current = yield* Ref.get(agreedCard)
    if (current === undefined) {
      const card = yield* load
      if (!isCard(card)) return yield* failed(`agent ${name}: what lies at ${clip(place)} is no agent card`)
      const origins = "url" in where ? [where.url] : card.supportedInterfaces.map(({ url }) => url)
      current = {
        // Fields missing in a card get the defaults of the protocol.
        card: resolver(fetch).normalizeAgentCard(card),
        origins: origins.flatMap((url) => originOf(url) ?? [])
      }
      yield* Ref.set(agreedCard, current)
    }
    const { card, origins } = current
    yield* Effect.forEach(origins, check, { discard: true })
    exchange.status = undefined
    const fetchImpl = guarded((origin) => origins.includes(origin), header, signal, exchange)
    const transport = { fetchImpl, legacyCompat: { enabled: true } }
    return yield* attempt(() =>
      new sdk.ClientFactory({
        transports: [new sdk.JsonRpcTransportFactory(transport), new sdk.RestTransportFactory(transport)],
        cardResolver: resolver(fetch)
      }).createFromAgentCard(card)
    )
  })

  /** Asks the agent to stop a task. The agent may ignore it, so the wait is short. */
  const cancel = (taskId: string, header: Header | undefined) =>
    Effect.gen(function* () {
      const exchange: Exchange = { status: undefined, refusal: undefined }
      const client = yield* connect(exchange, header)
      yield* Effect.tryPromise({
        try: () => client.cancelTask({ tenant: "", id: taskId, metadata: undefined }),
        catch: (error) => failure(error, exchange, header)
      })
    }).pipe(Effect.scoped, Effect.interruptible, Effect.timeoutOption(closeTimeout), Effect.ignore)

  /** Sends one message and collects the answer. */
  const talk = Effect.fnUntraced(function* (
    text: string,
    activity: Task["activity"]
  ): Effect.fn.Return<AgentResult, AgentFailure> {
    const header = yield* Effect.fromResult(credentials)
    const began = yield* Clock.currentTimeMillis
    const heard = yield* Ref.make(nothingYet)
    const exchange: Exchange = { status: undefined, refusal: undefined }

    const stageOf = (state: TaskState | undefined): Stage => {
      switch (state) {
        case TaskState.TASK_STATE_COMPLETED:
          return "GOAL"
        case TaskState.TASK_STATE_FAILED:
        case TaskState.TASK_STATE_REJECTED:
          return "ERROR"
        case TaskState.TASK_STATE_CANCELED:
          return "ABORTED"
        case TaskState.TASK_STATE_INPUT_REQUIRED:
          return "asking"
        case TaskState.TASK_STATE_AUTH_REQUIRED:
          return "locked"
        default:
          return "working"
      }
    }
    const isOver = (stage: Stage) => stage !== "working" && stage !== "asking" && stage !== "locked"

    const update = Effect.fnUntraced(function* (
      ids: { readonly contextId: string; readonly taskId: string },
      f: (before: RemoteProgress) => RemoteProgress
    ) {
      const taskId = nonEmpty(ids.taskId)
      const now = yield* Ref.updateAndGet(heard, (before) => f({ ...before, taskId: taskId ?? before.taskId }))
      yield* Ref.update(contact, (before) => ({
        contextId: nonEmpty(ids.contextId) ?? before.contextId,
        taskId: isOver(now.stage) ? undefined : now.taskId
      }))
      const size = [...now.artifacts.values()].reduce((sum, { length }) => sum + length, now.words.length)
      if (size > maxAnswerChars) {
        return yield* failed(`agent ${name}: it answered with more than ${maxAnswerChars / 1024 / 1024} Mi characters`)
      }
    })

    const statusOf =
      (status: TaskStatus | undefined) =>
      (before: RemoteProgress): RemoteProgress => {
        const statusText = messageText(status?.message)
        return {
          ...before,
          stage: stageOf(status?.state),
          words: statusText === "" ? before.words : statusText,
          turns: before.turns + (statusText === "" ? 0 : 1)
        }
      }

    const think = (thought: string) => (thought === "" ? Effect.void : activity({ _tag: "Thought", text: thought }))

    const hearTask = (task: RemoteTask) =>
      update({ contextId: task.contextId, taskId: task.id }, (before) => ({
        ...statusOf(task.status)(before),
        artifacts: new Map([
          ...before.artifacts,
          ...task.artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)] as const)
        ])
      }))

    const listen = Effect.gen(function* () {
      const client = yield* connect(exchange, header)
      const at = yield* Ref.get(contact)
      const request = SendMessageRequest.fromJSON({
        message: {
          messageId: yield* random.uuidV7(),
          ...(at.contextId === undefined ? {} : { contextId: at.contextId }),
          ...(at.taskId === undefined ? {} : { taskId: at.taskId }),
          role: Role.ROLE_USER,
          parts: [{ text, mediaType: "text/plain" }]
        }
      })
      yield* Stream.fromAsyncIterable(client.sendMessageStream(request), (error) =>
        failure(error, exchange, header)
      ).pipe(
        Stream.timeoutOrElse({
          duration: patience,
          orElse: () => Stream.fail(failed(`agent ${name}: it said nothing for ${Duration.format(patience)}`))
        }),
        // A server may keep the connection open although nothing more is expected: it waits for authentication or for another message.
        Stream.takeUntil(({ payload }) => {
          const status =
            payload?.$case === "task" || payload?.$case === "statusUpdate" ? payload.value.status : undefined
          return stageOf(status?.state) !== "working"
        }),
        Stream.runForEach(
          Effect.fnUntraced(function* ({ payload }) {
            switch (payload?.$case) {
              case "message": {
                const { contextId, taskId } = payload.value
                const replyText = messageText(payload.value)
                return yield* update({ contextId, taskId }, (before) => ({
                  ...before,
                  stage: "GOAL",
                  words: before.stage === "GOAL" && before.words !== "" ? `${before.words}\n${replyText}` : replyText,
                  turns: before.turns + 1
                }))
              }
              case "task":
                return yield* hearTask(payload.value)
              case "statusUpdate": {
                const { contextId, status, taskId } = payload.value
                yield* update({ contextId, taskId }, statusOf(status))
                return yield* stageOf(status?.state) === "working" ? think(messageText(status?.message)) : Effect.void
              }
              case "artifactUpdate": {
                const { append, artifact, contextId, taskId } = payload.value
                if (artifact === undefined) return
                const { artifactId, name: title } = artifact
                const artifactText = textOf(artifact.parts)
                yield* update({ contextId, taskId }, (before) => ({
                  ...before,
                  artifacts: new Map(before.artifacts).set(
                    artifactId,
                    append ? `${before.artifacts.get(artifactId) ?? ""}${artifactText}` : artifactText
                  )
                }))
                return yield* append ? Effect.void : think(`writes ${title === "" ? "an artifact" : title}`)
              }
              case undefined:
                return
            }
          })
        )
      )
      // The task may continue without updates. Then it is polled.
      const follow = Effect.gen(function* () {
        for (let at = yield* Ref.get(heard); at.stage === "working"; at = yield* Ref.get(heard)) {
          const { taskId } = at
          if (taskId === undefined) return yield* failed(`agent ${name}: it ended without an answer`)
          const task = yield* Effect.tryPromise({
            try: () => client.getTask({ tenant: "", id: taskId }),
            catch: (error) => failure(error, exchange, header)
          })
          yield* hearTask(task)
          if (stageOf(task.status?.state) === "working") yield* Effect.sleep(pollInterval)
        }
      })
      yield* follow.pipe(
        Effect.timeoutOrElse({
          duration: patience,
          orElse: () => Effect.fail(failed(`agent ${name}: it was not done within ${Duration.format(patience)}`))
        })
      )
    }).pipe(
      Effect.scoped,
      // The socket is closed by now. The task need not continue without a listener.
      Effect.onExit((exit) =>
        Effect.flatMap(Ref.get(heard), ({ stage, taskId }) =>
          Exit.isSuccess(exit) || taskId === undefined || isOver(stage)
            ? Effect.void
            : Effect.andThen(
                Ref.update(contact, (before) => ({ ...before, taskId: undefined })),
                cancel(taskId, header)
              )
        )
      )
    )

    const outcome = yield* Effect.result(listen)
    const now = yield* Ref.get(heard)
    const answerText = wordsOf(now)
    const result = (reason: TerminateReason, words: string): Effect.Effect<AgentResult> =>
      Effect.map(Clock.currentTimeMillis, (ended) => ({
        text: words,
        reason,
        turns: Math.max(1, now.turns),
        duration: ended - began,
        session: undefined
      }))
    const sofar = answerText === "" ? "" : `\n\nWhat there is so far:\n${answerText}`

    if (Result.isFailure(outcome)) {
      if (/no longer knows the task/.test(outcome.failure.message)) {
        yield* Ref.update(contact, (before) => ({ ...before, taskId: undefined }))
      }
      if (answerText === "") return yield* outcome.failure
      return yield* result("ERROR", `${outcome.failure.message}${sofar}`)
    }
    switch (now.stage) {
      case "working":
      case "GOAL":
        return yield* result("GOAL", answerText === "" ? "(it is done, and said nothing)" : answerText)
      case "asking": {
        const artifacts = [...now.artifacts.values()].join("\n\n")
        const question = now.words === "" ? "(it did not say what)" : now.words
        return yield* result(
          "GOAL",
          `${artifacts === "" ? "" : `${artifacts}\n\n`}The agent asks, before it can go on:\n${question}\n\n(What it is sent next is taken as the answer.)`
        )
      }
      case "locked":
        return yield* result(
          "ERROR",
          `The agent wants a permission that it has to be given elsewhere: ${now.words}${sofar}`
        )
      case "ABORTED":
        return yield* result("ABORTED", `The agent cancelled the task.${sofar}`)
      default:
        return yield* result(
          now.stage,
          `The agent could not do it: ${now.words}${now.artifacts.size === 0 ? "" : sofar}`
        )
    }
  })

  return {
    start: Effect.fn("A2aAgent.start")(function* ({
      activity,
      prompt
    }: Task): Effect.fn.Return<Running, AgentFailure, Scope.Scope> {
      yield* Effect.fromResult(credentials)
      const id = yield* random.uuidV7()
      const fiber = yield* Effect.forkScoped(talk(prompt, activity), { startImmediately: true })
      return {
        id: `${name} ${id}`,
        result: Fiber.join(fiber),
        send: Effect.fn("A2aAgent.send")(function* (message: string): Effect.fn.Return<string, AgentFailure> {
          return (yield* talk(message, activity)).text
        })
      }
    })
  }
})
