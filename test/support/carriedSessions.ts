import { NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as FileTempStore from "../../src/layers/session/FileTempStore.ts"
import { AgentSessions } from "../../src/services/transcripts/AgentSessions.ts"
import * as Export from "../../src/services/transcripts/TranscriptExport.ts"
import { Transcripts } from "../../src/services/transcripts/Transcripts.ts"
import { root } from "./paths.ts"
import type { FileFormat } from "./seededBreaks.ts"

/** What is needed to carry sessions over in a home of a test's own. */

/** The lines of a recorded session of Claude Code. */
export const lines = readFileSync(path.join(root, "examples/claude-code-subagent.jsonl"), "utf8").trimEnd().split("\n")

const layer = (home: string) =>
  Transcripts.layer.pipe(
    Layer.provideMerge(Offline.layer),
    Layer.provideMerge(FileTempStore.folders),
    Layer.provideMerge(NodeServices.layer),
    Layer.merge(
      Layer.succeed(AgentSessions, {
        roots: Effect.succeed(
          (["claude", "codex", "gemini", "pi", "palimpsest"] as const).map((agent) => ({
            agent,
            path: `${home}/${agent}`
          }))
        ),
        files: () => Effect.succeed({ files: [], problems: [] }),
        records: () => Effect.succeed({ end: 0, line: 1, broken: 0 })
      })
    )
  )

/** Runs with a home folder that is removed afterwards, below which every agent has its sessions. */
export const inHome = <A, E, R>(use: (home: string) => Effect.Effect<A, E, R>) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "carry-"))),
    (home) => Effect.provide(use(home), layer(home)),
    (home) => Effect.sync(() => rmSync(home, { recursive: true }))
  )

/** The recorded conversation in every format, as its agent writes it: without what our writers add. */
export const recorded = Effect.fnUntraced(function* (home: string) {
  const file = `${home}/recorded.jsonl`
  writeFileSync(file, lines.join("\n"))
  const { events } = yield* Transcripts.use(({ load }) => load(file))
  const as = (format: FileFormat) =>
    Effect.map(Export.lines(format, events), (written) =>
      written.map((line) => {
        const { palimpsest: _, ...record }: Record<string, unknown> = JSON.parse(line)
        return JSON.stringify(record)
      })
    )
  return { claude: lines, codex: yield* as("codex"), gemini: yield* as("gemini"), pi: yield* as("pi") }
})
