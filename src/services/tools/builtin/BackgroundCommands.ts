/** The list of the shell commands that an agent started in the background. */

import { Context, Effect } from "effect"

/** A command that was started in the background. */
export interface BackgroundCommand {
  /** Its process group. */
  readonly id: number
  readonly command: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** How it ended; undefined while it runs. */
  readonly ended: Effect.Effect<string | undefined>
  /** The end of its output since it was started in the background, without secrets. */
  readonly output: Effect.Effect<string>
  /** Ends it and everything that it started. */
  readonly stop: Effect.Effect<void>
}

/** The commands that an agent started in the background, oldest first. */
export interface BackgroundCommandList {
  /** Adds a command that was just started. */
  readonly add: (command: BackgroundCommand) => Effect.Effect<void>
  /** The listed commands, those that ended included. */
  readonly all: Effect.Effect<ReadonlyArray<BackgroundCommand>>
}

/** Most commands in a list; of more, the oldest are forgotten. They run on. */
const maxListed = 50

/** Makes an empty list. */
export const make: Effect.Effect<BackgroundCommandList> = Effect.sync(() => {
  const commands: Array<BackgroundCommand> = []
  return {
    add: (command) =>
      Effect.sync(() => {
        commands.push(command)
        if (commands.length > maxListed) commands.shift()
      }),
    all: Effect.sync(() => [...commands])
  }
})

/** Where the shell tool lists what it starts in the background. Default: nowhere. */
export const BackgroundCommands = Context.Reference<BackgroundCommandList>(
  "palimpsest/services/tools/builtin/BackgroundCommands",
  { defaultValue: () => ({ add: () => Effect.void, all: Effect.succeed([]) }) }
)
