import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Layer, Path } from "effect"
import type { Entry } from "../../src/domain/conversation/Conversation.ts"
import * as FileSessionStore from "../../src/layers/session/FileSessionStore.ts"
import * as FileTempStore from "../../src/layers/session/FileTempStore.ts"
import { lawOfPlayed, notices, property, scripts, thousand, worldOf } from "../support/generate.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { nothingIsLost } from "./nothingIsLost.ts"

/** Law 1 on files, and that its check notices what breaks it. */

const law = lawOfPlayed(...nothingIsLost)

/** Sessions on disk, in a folder that the scope removes. */
const onDisk = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped()
  return worldOf({
    sessions: FileSessionStore.layer(path.join(folder, "sessions")).pipe(
      Layer.provide(FileTempStore.folders),
      Layer.provide(NodeServices.layer)
    )
  })
})

const changed = <E extends { readonly entry: Entry }>(event: E, change: (text: string) => string): E => ({
  ...event,
  entry: {
    ...event.entry,
    content: {
      ...event.entry.content,
      parts: event.entry.content.parts.map((part) =>
        part.text === undefined ? part : { ...part, text: change(part.text) }
      )
    }
  }
})

describe("law 1: nothing is lost", () => {
  it.effect.prop(
    "recalls every part and every dropped range from files",
    [scripts],
    ([script]) =>
      Effect.scoped(Effect.flatMap(onDisk, (world) => property(law, world)(script))).pipe(
        Effect.provide(NodeServices.layer)
      ),
    { arbitrary: thousand("law 1, files", 60) }
  )

  describe("the checks detect", () => {
    it.effect("a recall that cuts", function* () {
      const world = worldOf({
        chat: (chat) => ({
          ...chat,
          recall: (handle, selection) =>
            Effect.map(chat.recall(handle, selection), (found) => ({ ...found, text: found.text.slice(0, 200) }))
        })
      })
      assert.isTrue(yield* notices(law, world))
    })

    it.effect("a log that repairs broken text", function* () {
      const world = worldOf({
        log: (log) => ({
          ...log,
          append: (event) =>
            log.append(event._tag === "Appended" ? changed(event, (text) => text.toWellFormed()) : event)
        })
      })
      assert.isTrue(yield* notices(law, world))
    })
  })
})
