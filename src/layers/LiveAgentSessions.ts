import { Layer } from "effect"
import * as ProcessEnvironment from "./platform/ProcessEnvironment.ts"
import * as FileAgentSessions from "./transcripts/FileAgentSessions.ts"

/** The sessions of every agent, found by the variables of this process's environment. */
export const layer = FileAgentSessions.layer.pipe(Layer.provide(ProcessEnvironment.layer))
