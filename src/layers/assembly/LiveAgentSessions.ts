/** The layers that find, read and index the sessions of every agent. */

import { Effect, Layer } from "effect"
import { homeFolder } from "../platform/HomeFolder.ts"
import * as ProcessEnvironment from "../platform/ProcessEnvironment.ts"
import * as FileAgentSessions from "../transcripts/FileAgentSessions.ts"
import * as SqliteSessionIndex from "../transcripts/SqliteSessionIndex.ts"

/** The sessions of every agent, without the index of them. */
export const sessions = FileAgentSessions.layer.pipe(Layer.provideMerge(ProcessEnvironment.layer))

/** The sessions of every agent, found by the variables of this process's environment, and the index of them in our home folder. */
export const layer = Layer.unwrap(Effect.map(homeFolder, (home) => SqliteSessionIndex.layer(`${home}/index`))).pipe(
  Layer.provideMerge(sessions)
)
