import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { entries, view } from "../../../src/domain/conversation/Conversation.ts"
import { projectMessages } from "../../../src/domain/conversation/Projection.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import * as FileAgentSessions from "../../../src/layers/transcripts/FileAgentSessions.ts"
import * as OpencodeDatabase from "../../../src/layers/transcripts/OpencodeDatabase.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { SessionFiles } from "../../../src/services/session/SessionFiles.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { answerHook } from "../../../src/services/transcripts/CompactionHook.ts"
import { makeSessionAnswers } from "../../../src/services/transcripts/SessionAnswers.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { opencodeDatabase, opencodeExport, tides } from "../../support/opencodeDatabase.ts"

const agents = (file: string) =>
  FileAgentSessions.layer.pipe(
    Layer.provide([
      Layer.succeed(Environment, { variables: Effect.succeed({ OPENCODE_DB: file }) }),
      Layer.succeed(SessionFiles, { folder: "/none", of: () => "/none" })
    ])
  )

const inFolder = <A, E>(
  use: (
    folder: string,
    file: string
  ) => Effect.Effect<A, E, Layer.Success<ReturnType<typeof agents>> | Layer.Success<typeof services>>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(path.join(tmpdir(), "opencode-"))),
    (folder) => {
      const file = opencodeDatabase(folder, tides)
      return Effect.provide(use(folder, file), Layer.merge(services, agents(file)))
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )

const services = Transcripts.layer.pipe(
  Layer.provide(OpencodeDatabase.sessions),
  Layer.provideMerge(Layer.mergeAll(NodeServices.layer, TokenCounter.layerEstimate, MemoryTempStore.layer))
)

const load = (file: string) => Transcripts.use((transcripts) => transcripts.load(file))

describe("a session in opencode's database", () => {
  it.effect("is read as the model saw it, and as it was", () =>
    inFolder((_, file) =>
      Effect.gen(function* () {
        const { format, session, skipped, transcript } = yield* load(`${file}#ses_1`)
        assert.strictEqual(format, "opencode")
        assert.deepInclude(transcript, { session: "ses_1", cwd: "/p/tides", model: "claude-sonnet-4-5" })
        assert.deepStrictEqual(
          entries(session.conversation).map(({ author, content: { parts, role } }) => [
            role,
            author,
            ...parts.map((part) => part.text ?? part.functionCall ?? part.functionResponse ?? part.inlineData)
          ]),
          [
            [
              "user",
              undefined,
              "Never touch the file keys.txt. When is high water?",
              { mimeType: "image/png", data: "aGVsbG8=" }
            ],
            [
              "model",
              undefined,
              "The table says it.",
              "I look it up.",
              { id: "call_1", name: "bash", args: { command: "cat tide.csv" } },
              { id: "call_2", name: "read", args: { filePath: "/p/none" } }
            ],
            [
              "user",
              undefined,
              { id: "call_1", name: "bash", response: { output: "12:10 high" } },
              { id: "call_2", name: "read", response: { error: "no such file" } }
            ],
            ["model", undefined, "At 12:10."],
            ["user", undefined, "Write it down."],
            ["user", "program", "Called the Read tool"],
            ["model", undefined, "Written to /p/tides/high.txt."],
            ["user", "program", "Continue if you have next steps"],
            ["model", undefined, { id: "call_3", name: "bash", args: { command: "sleep 9" } }]
          ]
        )
        const [summary, tail] = projectMessages(session.conversation).map(({ content }) => JSON.stringify(content))
        assert.include(summary, "The user asked about tides.")
        assert.include(tail, "Write it down.")
        assert.strictEqual(view(session.conversation).length, 6)
        assert.deepInclude(skipped, { "reverted message": 1, "part: step-start": 3 })
      })
    )
  )

  it.effect("is the same in the document that opencode exports", () =>
    inFolder((folder, file) =>
      Effect.gen(function* () {
        const document = path.join(folder, "export.json")
        writeFileSync(document, opencodeExport(tides))
        const [one, other] = yield* Effect.all([load(`${file}#ses_1`), load(document)])
        const said = (loaded: typeof one) => projectMessages(loaded.session.conversation).map(({ content }) => content)
        assert.deepStrictEqual(said(other), said(one))
        assert.deepStrictEqual(other.skipped, one.skipped)
      })
    )
  )

  it.effect("is answered about, handed over before a compaction, and never written to", () =>
    inFolder((_, file) =>
      Effect.gen(function* () {
        const before = readFileSync(file)
        const scope = { folder: "/p/tides", others: false, showsSecrets: false }
        const answers = yield* makeSessionAnswers({ ...scope, agents: ["opencode"] })
        assert.include(yield* answers.search("12:10", 1_000, undefined), "12:10 high")
        const input = { hook_event_name: "experimental.session.compacting", session_id: "ses_1" }
        const { focus, handover } = JSON.parse(yield* answerHook(JSON.stringify(input)))
        assert.include(focus, "Never touch the file keys.txt.")
        assert.include(handover, "Never touch the file keys.txt.")
        assert.include(handover, `${file}#ses_1`)
        const unknown = yield* Effect.flip(answerHook(JSON.stringify({ ...input, session_id: "ses_2" })))
        assert.include(unknown.message, "no such session")
        assert.deepStrictEqual(readFileSync(file), before)
      })
    )
  )

  it.effect("is named in the message when it is not there, and so is a database without one", () =>
    inFolder((folder, file) =>
      Effect.gen(function* () {
        assert.include((yield* Effect.flip(load(`${file}#ses_none`))).message, "holds no session ses_none")
        assert.include((yield* Effect.flip(load(file))).message, "is a database")
        assert.include((yield* Effect.flip(load(`${folder}/none.db#ses_1`))).message, "cannot be opened")
      })
    )
  )
})
