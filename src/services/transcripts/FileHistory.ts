import { Effect, type FileSystem, Layer, type Path, type Stdio } from "effect"
import { SessionFiles } from "../session/SessionFiles.ts"
import { SessionHistory } from "../session/SessionHistory.ts"
import { sessionUnavailable } from "../session/SessionStore.ts"
import type { TempStore } from "../session/TempStore.ts"
import type { TokenCounter } from "../tokens/TokenCounter.ts"
import { Transcripts } from "./Transcripts.ts"

/** The histories of sessions that are files. */
export const layer = Layer.effect(
  SessionHistory,
  Effect.gen(function* () {
    const transcripts = yield* Transcripts
    const files = yield* SessionFiles
    const context = yield* Effect.context<FileSystem.FileSystem | Path.Path | Stdio.Stdio | TokenCounter | TempStore>()
    return {
      events: (id) =>
        transcripts.load(files.of(id), { from: "palimpsest" }).pipe(
          Effect.map(({ events }) => events),
          Effect.mapError((error) => sessionUnavailable("read", error.message, error)),
          Effect.provideContext(context)
        )
    }
  })
)
