import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import path from "node:path"
import { promisify } from "node:util"
import packageJson from "../package.json" with { type: "json" }

/** What another package gets to import, under the names it has to use. */

const root = path.dirname(import.meta.dirname)
const exec = promisify(execFile)

const agent = `
import { Effect, Layer } from "effect"
import * as Offline from "palimpsest/testing/Offline"
import * as FakeGemini from "palimpsest/testing/FakeGemini"
import * as ScriptedModel from "palimpsest/testing/ScriptedModel"
import * as AdversarialModel from "palimpsest/testing/AdversarialModel"
import { Chats } from "palimpsest/services/Chats"
import { Model } from "palimpsest/services/Model"
import { user, text } from "palimpsest/domain/Content"
import { view } from "palimpsest/domain/Conversation"
const program = Effect.gen(function* () {
  const chat = yield* Chats.use((chats) => chats.open("mine"))
  yield* chat.append([{ content: user(text("hello")) }])
  const answer = yield* Model.use((model) => model.generate({ model: "m", contents: [] }))
  const fake = yield* FakeGemini.make(FakeGemini.queue())
  console.log(view(yield* chat.conversation).length, answer.content.parts[0].text, fake.url.startsWith("http://127.0.0.1:"), typeof AdversarialModel.layer)
})
await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Layer.merge(Offline.layer, ScriptedModel.layer(["hi"])))))
`

describe("the package", () => {
  it.effect("gives domain, services, layers and testing to other programs, as ESM with types", () =>
    Effect.gen(function* () {
      yield* Effect.promise(() =>
        exec(
          process.execPath,
          [path.join(root, "node_modules", "typescript", "bin", "tsc"), "-p", "tsconfig.lib.json"],
          {
            cwd: root
          }
        )
      )
      const { stdout } = yield* Effect.promise(() =>
        exec(process.execPath, ["--input-type=module", "-e", agent], { cwd: root })
      )
      assert.strictEqual(stdout, "1 hi true function\n")
    })
  )

  it("needs effect as a peer, and the model's client only of those who use it", () => {
    assert.property(packageJson.peerDependencies, "effect")
    assert.isTrue(packageJson.peerDependenciesMeta["@google/genai"].optional)
    assert.notProperty(packageJson, "dependencies")
  })
})
