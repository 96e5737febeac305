/**
 * Runs an agent as a process of its own, which gets its definition and its task, and nothing of its parent's conversation. The process and all
 * its children die with the scope.
 */

import { Cause, Deferred, Duration, Effect, Exit, type FileSystem, Option, type Path, Ref, Scope, Stream } from "effect"
import { ChildProcess } from "effect/process"
import { type ChildProcessHandle, ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import path from "node:path"
import process from "node:process"
import type { LocalAgent } from "../../domain/agent/AgentDefinition.ts"
import { type AgentResult } from "../../domain/agent/AgentResult.ts"
import { firstUnits, lastUnits } from "../../domain/text/Bytes.ts"
import { AgentFailure, type ExternalRunner, type ParentShare, type Task } from "../../services/agent/AgentRunner.ts"
import { parseEvent, taskText } from "../../services/agent/ProcessAgentProtocol.ts"
import { findProgram } from "../../services/platform/ProgramLookup.ts"

/** Returns the last lines of a process's stderr. */
export const lastLines = (text: string): string => {
  const last = text.trim().split("\n").slice(-5).join("\n").trim()
  return last === "" ? "" : `; the last lines of its error output: ${last}`
}

const signals: ReadonlyMap<number, string> = new Map([
  [130, "it was interrupted"],
  [134, "it crashed"],
  [137, "it was killed, possibly because memory ran out"],
  [139, "it crashed"],
  [143, "it was terminated"]
])

/** Describes how a program ended. */
export const exitText = (program: string, code: number): string => {
  const why = signals.get(code)
  return `${program} ended with exit status ${code}${why === undefined ? "" : ` (${why})`}`
}

/** The process to run, and how. */
export interface ProcessAgentOptions {
  readonly definition: LocalAgent
  /** The program and its arguments. Absent: this program. */
  readonly command?: readonly [program: string, ...args: ReadonlyArray<string>] | undefined
  readonly cwd?: string | undefined
  /** Its environment. The spawner adds the agent's place (`AgentPlace`). */
  readonly env: Readonly<Record<string, string>>
}

/** Bytes of one line. An event with a whole answer is smaller. */
const maxLineBytes = 8 * 1024 * 1024
/** Characters of stderr that are kept for the error message. */
const maxStderrChars = 8_192
/** The time between the request to end and the kill. */
const terminationGrace: Duration.Input = "2 seconds"
/** The time beyond the agent's own limit: for its start and its last turn. */
const overtime = Duration.minutes(3)

const failed = (message: string): AgentFailure => new AgentFailure({ message })

/** The command that starts this program again, compiled or from source, with the same Node. */
const ownCommand = (name: string): readonly [string, ...ReadonlyArray<string>] => {
  const [node = process.execPath, script] = process.argv
  const program = script === undefined ? process.execArgv : [...process.execArgv, script]
  return [node, ...program, "agents", "run", "--process", name, "-"]
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

/** A process that was started, and what came of it. */
interface Started {
  readonly launch: Launch
  readonly task: Task
  readonly child: ChildProcessHandle
  /** The end of its stderr. */
  readonly complaint: Ref.Ref<string>
  readonly ended: Ref.Ref<AgentResult | undefined>
}

const encoder = new TextEncoder()

const spawn = Effect.fnUntraced(function* (
  { args, cwd, options, program, programFile, spawner }: Launch,
  input: string
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
    stdin: Stream.make(encoder.encode(input)),
    forceKillAfter: terminationGrace
  })
  return yield* Effect.mapError(spawner.spawn(command), ({ message }) =>
    failed(`${program} cannot be started: ${message}`)
  )
})

const onLine = Effect.fnUntraced(function* ({ ended, task }: Started, line: string) {
  const event = parseEvent(line)
  if (event === undefined) return yield* failed(`it wrote an invalid event: ${firstUnits(line, 200)}`)
  if (event._tag === "Working") return yield* task.activity(event.activity)
  const { duration, note, reason, text, turns } = event
  yield* Ref.set(ended, { text, reason, turns, duration, session: undefined, note })
})

const readEvents = (started: Started) =>
  lines(Stream.mapError(started.child.stdout, ({ message }) => failed(`what it says cannot be read: ${message}`))).pipe(
    Stream.runForEach((line) => onLine(started, line))
  )

const readComplaints = ({ child, complaint }: Started) =>
  child.stderr.pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Ref.update(complaint, (before) => lastUnits(before + text, maxStderrChars))),
    Effect.ignore
  )

/** Reads the process until it ends, and returns its result. */
const follow = Effect.fnUntraced(
  function* (started: Started) {
    const {
      child,
      ended,
      launch: { program }
    } = started
    const exit = Effect.mapError(child.exitCode, ({ message }) =>
      failed(`${program} was ended by a signal: ${message}`)
    )
    // A process it left behind may hold its output open; do not wait for that.
    const gone = Effect.andThen(Effect.exit(exit), Effect.sleep(terminationGrace))
    const output = Effect.all([readEvents(started), readComplaints(started)], { concurrency: 2, discard: true })
    yield* Effect.raceFirst(output, gone)
    const code = yield* exit
    if (code !== 0) return yield* failed(exitText(program, code))
    return (yield* Ref.get(ended)) ?? (yield* failed(`${program} ended without an answer`))
  },
  (work, { launch: { options } }) => {
    const limit = Duration.sum(Duration.minutes(options.definition.timeoutMinutes), overtime)
    return Effect.timeoutOrElse(work, {
      duration: limit,
      orElse: () => Effect.fail(failed(`it worked for ${Duration.format(limit)} and was ended`))
    })
  },
  (work, { complaint }) =>
    Effect.catch(work, ({ message }) =>
      Effect.flatMap(Ref.get(complaint), (words) => failed(`${message}${lastLines(words)}`))
    )
)

const start = Effect.fnUntraced(function* (launch: Launch, task: Task, share: ParentShare) {
  const { options, program } = launch
  // It ends as soon as it is not followed any more.
  const own = yield* Scope.fork(yield* Effect.scope)
  const started: Started = {
    launch,
    task,
    child: yield* Scope.provide(spawn(launch, taskText(options.definition, task.prompt, share)), own),
    complaint: yield* Ref.make(""),
    ended: yield* Ref.make<AgentResult | undefined>(undefined)
  }
  const result = yield* Deferred.make<AgentResult, AgentFailure>()
  yield* follow(started).pipe(
    Effect.onExit((exit) => {
      const outcome = Exit.isSuccess(exit)
        ? Deferred.succeed(result, exit.value)
        : Deferred.fail(
            result,
            Option.getOrElse(Cause.findErrorOption(exit.cause), () => failed(`${program} could not be followed`))
          )
      return Effect.andThen(outcome, Scope.close(own, Exit.void))
    }),
    Effect.ignore,
    Effect.forkScoped({ startImmediately: true })
  )
  return {
    id: `process ${started.child.pid}`,
    result: Deferred.await(result),
    send: () => failed(`${program} takes one task and no messages; start another agent for this`)
  }
})

/** Makes the runner of an agent in a process of its own. */
export const make = Effect.fnUntraced(function* (
  options: ProcessAgentOptions
): Effect.fn.Return<ExternalRunner, never, ChildProcessSpawner | FileSystem.FileSystem | Path.Path> {
  const context = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const [program, ...args] = options.command ?? ownCommand(options.definition.name)
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
  return { start: Effect.fn("ProcessAgent.start")((task, share) => start(launch, task, share)) }
})
