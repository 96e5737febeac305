import {
  Cause,
  Clock,
  Deferred,
  Duration,
  Effect,
  type FileSystem,
  Option,
  type Path,
  Queue,
  Ref,
  Schema,
  type Scope,
  Stream
} from "effect"
import { ChildProcess } from "effect/process"
import { type ChildProcessHandle, ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import path from "node:path"
import process from "node:process"
import {
  activityOf,
  exitText,
  isEnd,
  lastLines,
  nothingYet,
  processResult,
  progressAfter
} from "../../domain/agent/ProcessProgress.ts"
import { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { firstUnits, lastUnits } from "../../domain/text/Bytes.ts"
import { fromJson } from "../../domain/text/JsonText.ts"
import type { ApprovalMode } from "../../domain/tools/Approval.ts"
import {
  AgentFailure,
  type AgentResult,
  type AgentRunner,
  type Running,
  type Task
} from "../../services/agent/AgentRunner.ts"
import { findProgram } from "../../services/platform/ProgramLookup.ts"

/**
 * Runs an agent as a process of its own. Its task goes in over stdin, its events come out as lines of JSON, and nothing of the parent's conversation
 * reaches it. The process and all its children die with the scope.
 */

/** The process to run, and how. */
export interface ProcessAgentOptions {
  /** The program and its arguments. Absent: this program, as `ask --stream-json`. */
  readonly command?: readonly [program: string, ...args: ReadonlyArray<string>] | undefined
  /** What the program may do without approval, as in `--approve`: it cannot ask the user. Absent: nothing. */
  readonly approve?: ApprovalMode | undefined
  readonly cwd?: string | undefined
  /** Its whole environment. No other variables are passed on. */
  readonly env: Readonly<Record<string, string>>
  /**
   * Whether it reads lines `{"message": …}` from stdin and answers each; the first is the task. Otherwise the task is all of its stdin, and it
   * accepts no further messages.
   */
  readonly takesMessages?: boolean | undefined
  /** How long it may stay silent before it is ended. */
  readonly silenceTimeout?: Duration.Input | undefined
}

/** Bytes of one line. An event with a whole answer is smaller. */
const maxLineBytes = 8 * 1024 * 1024
/** Characters of stderr that are kept for the error message. */
const maxStderrChars = 8_192
const defaultSilenceTimeout: Duration.Input = "10 minutes"
/** The time between the request to end and the kill. */
const terminationGrace: Duration.Input = "2 seconds"

const failed = (message: string): AgentFailure => new AgentFailure({ message })

/** The command that starts this program again, compiled or from source, with the same Node. */
const ownCommand = (approve: ApprovalMode): readonly [string, ...ReadonlyArray<string>] => {
  const [node = process.execPath, script] = process.argv
  return [
    node,
    ...process.execArgv,
    ...(script === undefined ? [] : [script]),
    "ask",
    "--stream-json",
    "--approve",
    approve
  ]
}

/** Splits pieces of bytes into lines. A line beyond the limit fails before it fills the memory. */
const lines = (stream: Stream.Stream<Uint8Array, AgentFailure>): Stream.Stream<string, AgentFailure> =>
  Stream.suspend(() => {
    const decoder = new TextDecoder()
    let rest: Array<string> = []
    let length = 0
    return stream.pipe(
      Stream.mapEffect((bytes) => {
        const [first = "", ...more] = decoder.decode(bytes, { stream: true }).split("\n")
        length += first.length
        if (length > maxLineBytes) {
          return Effect.fail(
            failed(`it wrote a line of more than ${maxLineBytes / 1024 / 1024} MiB, which is not an event`)
          )
        }
        rest.push(first)
        const last = more.pop()
        if (last === undefined) return Effect.succeed<ReadonlyArray<string>>([])
        const whole = [rest.join(""), ...more]
        rest = [last]
        length = last.length
        return Effect.succeed<ReadonlyArray<string>>(whole)
      }),
      Stream.flatMap((whole) => Stream.fromIterable(whole)),
      Stream.concat(
        Stream.suspend(() => {
          const last = rest.join("") + decoder.decode()
          return last === "" ? Stream.empty : Stream.make(last)
        })
      ),
      Stream.filter((line) => line.trim() !== "")
    )
  })

const readEvent = Schema.decodeUnknownOption(fromJson(Schema.toCodecJson(ChatEvent)))
const readTagged = Schema.decodeUnknownOption(fromJson(Schema.Struct({ _tag: Schema.String })))

/** Parses an event. Returns undefined for one that this version does not know: it is skipped. */
const eventOf = (line: string): Effect.Effect<ChatEvent | undefined, AgentFailure> => {
  const event = readEvent(line)
  if (Option.isSome(event)) return Effect.succeed(event.value)
  const eventTags: ReadonlyArray<string> = Object.keys(ChatEvent.cases)
  return Option.match(readTagged(line), {
    onNone: () => Effect.fail(failed(`it wrote an invalid event: ${firstUnits(line, 200)}`)),
    onSome: ({ _tag }) =>
      eventTags.includes(_tag)
        ? Effect.fail(failed(`it wrote a broken event ${_tag}: ${firstUnits(line, 200)}`))
        : Effect.undefined
  })
}

/** The callers that wait for an answer, in order; or why there will be no answer. */
type Waiting = ReadonlyArray<Deferred.Deferred<AgentResult, AgentFailure>> | AgentFailure

/** The program to start, and what it needs. */
interface Launch {
  readonly options: ProcessAgentOptions
  readonly program: string
  readonly args: ReadonlyArray<string>
  /** The folder it starts in. Programs in it are not started. */
  readonly cwd: string
  readonly spawner: ChildProcessSpawner["Service"]
  /** The file of the program, if there is one. */
  readonly programFile: Effect.Effect<string | undefined>
}

/** A process that was started, and how far it is. */
interface Started {
  readonly program: string
  readonly task: Task
  readonly takesMessages: boolean
  readonly silenceTimeout: Duration.Duration
  readonly startedAt: number
  readonly child: ChildProcessHandle
  readonly input: Queue.Queue<Uint8Array, Cause.Done>
  /** The end of its stderr. */
  readonly complaint: Ref.Ref<string>
  readonly progress: Ref.Ref<typeof nothingYet>
  /** One caller for each message sent: each gets the next answer. The first message is the task. */
  readonly waiting: Ref.Ref<Waiting>
}

const encoder = new TextEncoder()
const messageLine = (message: string) => encoder.encode(`${JSON.stringify({ message })}\n`)

const spawn = Effect.fnUntraced(function* (
  { args, cwd, options, program, programFile, spawner }: Launch,
  input: Queue.Dequeue<Uint8Array, Cause.Done>
) {
  const file = yield* programFile
  if (file === undefined) {
    return yield* failed(`${program} cannot be started: there is no such program in PATH outside of ${cwd}`)
  }
  const command = ChildProcess.make(file, args, {
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { ...options.env },
    extendEnv: false,
    // A child that does not read its input still ends; unread input is not a failure.
    stdin: Stream.fromQueue(input),
    forceKillAfter: terminationGrace
  })
  return yield* Effect.mapError(spawner.spawn(command), ({ message }) =>
    failed(`${program} cannot be started: ${message}`)
  )
})

/** Answers the caller that waits longest with the output since the last answer. */
const answer = Effect.fnUntraced(function* ({ progress, startedAt, waiting }: Started) {
  const now = yield* Clock.currentTimeMillis
  const result = processResult(yield* Ref.getAndSet(progress, nothingYet), now - startedAt)
  const first = yield* Ref.modify(
    waiting,
    (state): [Deferred.Deferred<AgentResult, AgentFailure> | undefined, Waiting] =>
      state instanceof AgentFailure ? [undefined, state] : [state[0], state.slice(1)]
  )
  if (first !== undefined) yield* Deferred.succeed(first, result)
})

const onLine = Effect.fnUntraced(function* (started: Started, line: string) {
  const event = yield* eventOf(line)
  if (event === undefined) return
  const now = yield* Ref.updateAndGet(started.progress, (before) => progressAfter(before, event))
  const activity = activityOf(event)
  if (activity !== undefined) yield* started.task.activity(activity)
  if (started.takesMessages && isEnd(event, now)) yield* answer(started)
})

const readEvents = (started: Started) =>
  lines(Stream.mapError(started.child.stdout, ({ message }) => failed(`what it says cannot be read: ${message}`))).pipe(
    Stream.timeoutOrElse({
      duration: started.silenceTimeout,
      orElse: () => Stream.fail(failed(`it said nothing for ${Duration.format(started.silenceTimeout)} and was ended`))
    }),
    Stream.runForEach((line) => onLine(started, line))
  )

const readComplaints = ({ child, complaint }: Started) =>
  child.stderr.pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Ref.update(complaint, (before) => lastUnits(before + text, maxStderrChars))),
    Effect.ignore
  )

/** Reads the process until it ends, and fails with the reason why it can answer no more. */
const follow = (started: Started): Effect.Effect<never, AgentFailure> =>
  Effect.gen(function* (): Effect.fn.Return<never, AgentFailure> {
    const { child, program, progress } = started
    const exit = Effect.mapError(child.exitCode, ({ message }) =>
      failed(`${program} was ended by a signal: ${message}`)
    )
    // A process it left behind may hold its output open; do not wait for that.
    const gone = Effect.andThen(Effect.exit(exit), Effect.sleep(terminationGrace))
    const output = Effect.all([readEvents(started), readComplaints(started)], { concurrency: 2, discard: true })
    yield* Effect.raceFirst(output, gone)
    const code = yield* exit
    if (code !== 0) return yield* failed(exitText(program, code))
    if ((yield* Ref.get(progress)).reason === undefined) return yield* failed(`${program} ended without an answer`)
    yield* answer(started)
    return yield* failed(`${program} has ended; start another`)
  }).pipe(
    Effect.catch((failure) =>
      Effect.gen(function* () {
        const { stop } = yield* Ref.get(started.progress)
        const stopText = stop === undefined ? "" : `: ${stop}`
        return yield* failed(`${failure.message}${stopText}${lastLines(yield* Ref.get(started.complaint))}`)
      })
    )
  )

/** Fails all callers that still wait, and all later ones. */
const close = Effect.fnUntraced(function* (
  { child, input, program, waiting }: Started,
  cause: Cause.Cause<AgentFailure>
) {
  const failure = Option.getOrElse(Cause.findErrorOption(cause), () => failed(`${program} could not be followed`))
  const left = yield* Ref.getAndSet(waiting, failure)
  if (!(left instanceof AgentFailure)) {
    yield* Effect.forEach(left, (one) => Deferred.fail(one, failure), { discard: true })
  }
  yield* Queue.end(input)
  // A process that violated the protocol is killed.
  const isRunning = yield* Effect.orElseSucceed(child.isRunning, () => false)
  if (isRunning) yield* Effect.ignore(child.kill({ forceKillAfter: terminationGrace }))
})

const send = Effect.fnUntraced(function* (
  { input, program, takesMessages, waiting }: Started,
  message: string
): Effect.fn.Return<string, AgentFailure> {
  if (!takesMessages) return yield* failed(`${program} takes one task and no messages; start another agent for this`)
  const reply = yield* Deferred.make<AgentResult, AgentFailure>()
  const isOver = yield* Ref.modify(waiting, (state): [boolean, Waiting] =>
    state instanceof AgentFailure ? [true, state] : [false, [...state, reply]]
  )
  if (isOver) return yield* failed(`${program} has ended; start another agent for this`)
  yield* Queue.offer(input, messageLine(message))
  return (yield* Deferred.await(reply)).text
})

const start = Effect.fnUntraced(function* (
  launch: Launch,
  task: Task
): Effect.fn.Return<Running, AgentFailure, Scope.Scope> {
  const { options, program } = launch
  const { takesMessages = false } = options
  const startedAt = yield* Clock.currentTimeMillis
  const input = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  yield* Queue.offer(input, takesMessages ? messageLine(task.prompt) : encoder.encode(task.prompt))
  if (!takesMessages) yield* Queue.end(input)
  const result = yield* Deferred.make<AgentResult, AgentFailure>()
  const started: Started = {
    program,
    task,
    takesMessages,
    silenceTimeout: Duration.fromInputUnsafe(options.silenceTimeout ?? defaultSilenceTimeout),
    startedAt,
    child: yield* spawn(launch, input),
    input,
    complaint: yield* Ref.make(""),
    progress: yield* Ref.make(nothingYet),
    waiting: yield* Ref.make<Waiting>([result])
  }
  yield* Effect.forkScoped(
    Effect.catchCause(follow(started), (cause) => close(started, cause)),
    { startImmediately: true }
  )
  return {
    id: `process ${started.child.pid}`,
    result: Deferred.await(result),
    send: Effect.fn("ProcessAgent.send")((message) => send(started, message))
  }
})

/** Makes the runner of agents in processes of their own. */
export const make = Effect.fnUntraced(function* (
  options: ProcessAgentOptions
): Effect.fn.Return<AgentRunner, never, ChildProcessSpawner | FileSystem.FileSystem | Path.Path> {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const [program, ...args] = options.command ?? ownCommand(options.approve ?? "none")
  const cwd = path.resolve(options.cwd ?? ".")
  const lookup = findProgram(program, { path: options.env["PATH"] ?? "", excludedFolders: [cwd] })
  const launch: Launch = {
    options,
    program,
    args,
    cwd,
    spawner: yield* ChildProcessSpawner,
    programFile: yield* Effect.cached(Effect.provideContext(lookup, context))
  }
  return { start: Effect.fn("ProcessAgent.start")((task) => start(launch, task)) }
})
