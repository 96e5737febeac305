import { NodeServices } from "@effect/platform-node"
import { Effect, FileSystem } from "effect"
import { readAnswers, replaceAnswer } from "../../../src/layers/workspace/TrustFile.ts"
import { assert, describe, it } from "../../support/vitest.ts"

describe("the file of answers", () => {
  it.effect("keeps the answers of others, and is not written without a change", NodeServices.layer, function* () {
    const fs = yield* FileSystem.FileSystem
    const file = `${yield* fs.makeTempDirectoryScoped()}/trust.json`
    yield* replaceAnswer(file, "/a", "forgotten")
    assert.isFalse(yield* fs.exists(file))
    yield* replaceAnswer(file, "/b", "trusted")
    yield* replaceAnswer(file, "/a", "untrusted")
    assert.deepStrictEqual(
      [...(yield* readAnswers(file))],
      [
        ["/a", "untrusted"],
        ["/b", "trusted"]
      ]
    )
    yield* replaceAnswer(file, "/b", "forgotten")
    assert.deepStrictEqual([...(yield* readAnswers(file))], [["/a", "untrusted"]])
    yield* fs.writeFileString(file, "{")
    const error = yield* Effect.flip(replaceAnswer(file, "/a", "trusted"))
    assert.include(error.message, "until then no folder is trusted")
    assert.strictEqual(yield* fs.readFileString(file), "{")
  })
})
