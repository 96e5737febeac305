/**
 * An agent with two tools: one of your own, and one that reads files. Changes are denied because no approval handler is given.
 * The model is scripted, so this runs without a network; replace it with `GoogleModel.layerConfig` for Gemini.
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
import { Agent, Chats, Content, Tools } from "palimpsest"
import { FileWorkspace } from "palimpsest/node"
import { MemoryFileSystem, Offline, ScriptedModel } from "palimpsest/testing"

const deploy = Tools.make({
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
  const chat = yield* Chats.open("release")
  const tools = [yield* Tools.readFile, deploy]
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
  { content: Content.model(Content.call("read_file", { file_path: "package.json" }, "1")), finishReason: "STOP", usage: null },
  { content: Content.model(Content.call("deploy", { version: "1.2.3" }, "2")), finishReason: "STOP", usage: null },
  "The version is 1.2.3; I was not allowed to deploy it."
])

const workspace = FileWorkspace.layer({ root: "/app" }).pipe(
  Layer.provideMerge(MemoryFileSystem.layer({ "/app/package.json": '{ "version": "1.2.3" }' })),
  Layer.provideMerge(Path.layer)
)

// Without an approval handler every question is answered with no, and the model receives a denial.
const approval = Tools.Approval.layer({ mode: "none", granted: [] })

await Effect.runPromise(
  program.pipe(Effect.scoped, Effect.provide([Offline.layerWithModel(script), workspace, approval]))
)
