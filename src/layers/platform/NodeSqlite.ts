/** Node's own SQLite, where this Node has one (without a flag from 22.13 on). */

import { Effect } from "effect"
import process from "node:process"
import type { DatabaseSync } from "node:sqlite"

type Sqlite = { readonly DatabaseSync: typeof DatabaseSync }

const load = (): Sqlite | undefined => {
  // Node 22 prints a warning that it is experimental, which does not help the user of a command.
  const { emitWarning } = process
  process.emitWarning = () => {}
  try {
    return process.getBuiltinModule("node:sqlite")
  } catch {
    return undefined
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Node's SQLite; undefined in a Node without it. Node loads it when it is first used. */
export const sqlite: Effect.Effect<Sqlite | undefined> = Effect.sync(load)
