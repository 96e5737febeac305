/** Limits the agents that run at once in all processes, by lock files. */

import { Effect, FileSystem, Path } from "effect"
import { diskErrorText } from "../../domain/text/DiskErrors.ts"
import { AgentFailure } from "../../services/agent/AgentRunner.ts"
import * as AgentSlots from "../../services/agent/AgentSlots.ts"
import * as FileLock from "../../services/platform/FileLock.ts"
import { Processes } from "../../services/platform/ProcessIdentity.ts"
import * as StaleFiles from "../../services/platform/StaleFiles.ts"
import * as ThisProcess from "../platform/ThisProcess.ts"

/** The file of a slot, or a lock under which such a file is removed. The first group is the slot's file. */
const slotFile = /^(\w+-\d+\.lock)(?:\.[a-z0-9]{1,60})?$/

/** Makes a name for slots that no other agent has: what their files in this home folder begin with. */
const newName = Effect.fnUntraced(function* (home: string) {
  const path = yield* Path.Path
  const { unique } = yield* Processes
  return path.join(home, "running", yield* unique)
}, ThisProcess.provide)

/**
 * Slots as lock files: as many as there are running agents. The name is an absolute path with which the files begin; absent, it is a new
 * one in the home folder. Files that ended processes left there are removed before the first slot is taken. Where no files can be written,
 * slots with a new name are those of this process alone, and other processes can take none.
 */
export const make = Effect.fnUntraced(function* (
  home: string,
  given: string | undefined
): Effect.fn.Return<AgentSlots.SharedSlots, never, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const name = given ?? (yield* newName(home))
  const folder = path.dirname(name)
  const swept = yield* Effect.cached(StaleFiles.sweep(folder, { lock: (file) => slotFile.exec(file)?.[1] }))
  const takeFirst = Effect.fnUntraced(function* (count: number) {
    yield* fs.makeDirectory(folder, { recursive: true, mode: 0o700 })
    yield* swept
    for (let slot = 1; slot <= count; slot += 1) {
      if ((yield* FileLock.tryAcquireRenewed(`${name}-${slot}.lock`)) === undefined) return true
    }
    return false
  })
  const alone = AgentSlots.inMemory()
  return {
    name,
    take: (count) =>
      takeFirst(count).pipe(
        Effect.catch((error) =>
          given === undefined
            ? alone.take(count)
            : new AgentFailure({ message: `running agents cannot be counted: ${diskErrorText(error)}` })
        ),
        ThisProcess.provide,
        Effect.provideService(FileSystem.FileSystem, fs),
        Effect.provideService(Path.Path, path)
      )
  }
})
