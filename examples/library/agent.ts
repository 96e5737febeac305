/**
 * An agent with hands: one tool of your own, one that reads files, and nobody who allows changes. The model is a script, so
 * that this runs without a network; with `GoogleModel.layer` in its place it is a real one.
 *
 *   node agent.ts
 *
 * It prints:
 *
 *   read_file: success
 *   deploy: denied
 *   The version is 1.2.3; I was not allowed to deploy it.
 */
import { Effect, Layer, Path, Schema, Stream } from "effect"
import { call, model } from "palimpsest/domain/Content"
import * as FileWorkspace from "palimpsest/layers/FileWorkspace"
import * as MemoryFileSystem from "palimpsest/layers/MemoryFileSystem"
import * as Agent from "palimpsest/services/Agent"
import { Approval } from "palimpsest/services/Approval"
import { Chats } from "palimpsest/services/Chats"
import * as Tool from "palimpsest/services/Tool"
import { readFile } from "palimpsest/services/tools/ReadFile"
import * as Offline from "palimpsest/testing/Offline"
import * as ScriptedModel from "palimpsest/testing/ScriptedModel"

const deploy = Tool.make({
  name: "deploy",
  description: "Puts a version into production.",
  parameters: Schema.Struct({ version: Schema.String }),
  result: Schema.String,
  kind: "execute",
  title: ({ version }) => version,
  question: ({ version }) =>
    Effect.succeed({ detail: `deploy ${version}`, grants: ["deploy"], covers: "deployments" }),
  run: ({ version }) => Effect.succeed({ value: `${version} is live` })
})

const program = Effect.gen(function* () {
  const chat = yield* Chats.use((chats) => chats.open("release"))
  const tools = [yield* readFile, deploy]
  yield* Agent.run({ name: "release", chat, tools, limits: { turns: 10 } }, "Deploy the version in package.json.").pipe(
    Stream.runForEach((event) =>
      Effect.sync(() => {
        if (event._tag === "ToolCallResponse") console.log(`${event.name}: ${event.status}`)
        if (event._tag === "Content") console.log(event.text)
      })
    )
  )
})

const script = ScriptedModel.layer([
  { content: model(call("read_file", { file_path: "package.json" }, "1")), finishReason: "STOP", usage: null },
  { content: model(call("deploy", { version: "1.2.3" }, "2")), finishReason: "STOP", usage: null },
  "The version is 1.2.3; I was not allowed to deploy it."
])

const workspace = FileWorkspace.layer({ root: "/app" }).pipe(
  Layer.provideMerge(MemoryFileSystem.layer({ "/app/package.json": '{ "version": "1.2.3" }' })),
  Layer.provideMerge(Path.layer)
)

// Nobody can be asked, so what would have to be asked is denied, and the model is told.
const approval = Approval.layer({ mode: "none", granted: [] })

await Effect.runPromise(
  program.pipe(Effect.scoped, Effect.provide([Offline.layerWithModel(script), workspace, approval]))
)
