/** Reads conversations of all agents, and nothing else. */

import { Effect, Layer } from "effect"
import { getHeapStatistics } from "node:v8"
import { SessionFiles } from "../../services/session/SessionFiles.ts"
import { TokenCounter } from "../../services/tokens/TokenCounter.ts"
import { MemoryLimit } from "../../services/transcripts/ChooseReader.ts"
import { Transcripts } from "../../services/transcripts/Transcripts.ts"
import { homeFolder } from "../platform/HomeFolder.ts"
import * as MemoryTempStore from "../testing/MemoryTempStore.ts"
import * as TokenTable from "../tokens/TokenTable.ts"
import * as OpencodeDatabase from "../transcripts/OpencodeDatabase.ts"

/** The memory that Node allows this program to use. */
const memoryLimit = Layer.sync(MemoryLimit, () => getHeapStatistics().heap_size_limit)

/** Where our own sessions are. */
export const sessionFiles = Layer.effect(
  SessionFiles,
  Effect.map(homeFolder, (home) => ({ folder: `${home}/sessions`, of: (id: string) => `${home}/sessions/${id}.jsonl` }))
)

/** Transcripts in all formats. */
export const transcripts = Transcripts.layer.pipe(Layer.provide([memoryLimit, OpencodeDatabase.sessions]))

/** What a command needs that only reads conversations. */
export const layer = Layer.mergeAll(transcripts, TokenTable.layer, sessionFiles).pipe(
  Layer.provideMerge(Layer.merge(TokenCounter.layerEstimate, MemoryTempStore.layer))
)
