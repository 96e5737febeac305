import { Deferred, Effect, Layer, PlatformError, Queue, Sink, Stream } from "effect"
import { type ChildProcess, ChildProcessSpawner } from "effect/process"

/** Processes that are not started: a test says what each prints and how it ends. */

/** What a process prints, and how it ends. */
export interface Played {
  readonly out?: string
  readonly err?: string
  /** What it prints for a line of its input. */
  readonly replies?: (line: string) => string
  /** The output on descriptor 3. */
  readonly third?: string
  /** The exit code, a signal, or how long it takes; absent: it ends with 0. */
  readonly ends?: number | `SIG${string}` | Effect.Effect<number>
}

const bytes = (text = "") => (text === "" ? Stream.empty : Stream.make(new TextEncoder().encode(text)))

const endedBy = (signal: string) =>
  PlatformError.systemError({
    _tag: "Unknown",
    module: "ChildProcess",
    method: "exitCode",
    cause: new Error(`Process was killed with signal: '${signal}'`)
  })

/** Plays each process. Undefined: there is no such program; an error: why it cannot be started. */
export const layer = (
  play: (command: ChildProcess.StandardCommand) => Played | PlatformError.PlatformError | undefined
): Layer.Layer<ChildProcessSpawner.ChildProcessSpawner> => {
  let pid = 100
  return Layer.succeed(
    ChildProcessSpawner.ChildProcessSpawner,
    ChildProcessSpawner.make(
      Effect.fnUntraced(function* (command) {
        const played = command._tag === "StandardCommand" ? play(command) : undefined
        if (played === undefined) {
          return yield* PlatformError.systemError({ _tag: "NotFound", module: "ChildProcess", method: "spawn" })
        }
        if (played instanceof PlatformError.PlatformError) return yield* played
        const { ends = 0, err, out, replies, third } = played
        const said = yield* Queue.unbounded<Uint8Array>()
        const killed = yield* Deferred.make<never, PlatformError.PlatformError>()
        const kill = Effect.asVoid(Deferred.fail(killed, endedBy("SIGTERM")))
        const over =
          typeof ends === "number"
            ? Effect.succeed(ends)
            : typeof ends === "string"
              ? Effect.fail(endedBy(ends))
              : Effect.raceFirst(ends, Deferred.await(killed))
        const done = yield* Deferred.make<ChildProcessSpawner.ExitCode, PlatformError.PlatformError>()
        yield* Effect.forkDetach(Deferred.into(Effect.map(over, ChildProcessSpawner.ExitCode), done), {
          startImmediately: true
        })
        yield* Effect.addFinalizer(() => kill)
        return ChildProcessSpawner.makeHandle({
          pid: ChildProcessSpawner.ProcessId((pid += 1)),
          exitCode: Deferred.await(done),
          isRunning: Effect.map(Deferred.isDone(done), (isDone) => !isDone),
          kill: () => kill,
          stdin:
            replies === undefined
              ? Sink.drain
              : Sink.forEach((chunk: Uint8Array) =>
                  Effect.forEach(new TextDecoder().decode(chunk).trimEnd().split("\n"), (line) =>
                    Queue.offer(said, new TextEncoder().encode(replies(line)))
                  )
                ),
          stdout:
            replies === undefined
              ? bytes(out)
              : Stream.concat(bytes(out), Stream.interruptWhen(Stream.fromQueue(said), Deferred.await(done))),
          stderr: bytes(err),
          all: bytes((out ?? "") + (err ?? "")),
          getInputFd: () => Sink.drain,
          getOutputFd: () => bytes(third),
          unref: Effect.succeed(Effect.void)
        })
      })
    )
  )
}
