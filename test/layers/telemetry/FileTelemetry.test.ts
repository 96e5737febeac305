import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, FileSystem, Path } from "effect"
import { statSync } from "node:fs"
import * as FileTelemetry from "../../../src/layers/telemetry/FileTelemetry.ts"
import { assert, it } from "../../support/vitest.ts"

it.live(
  "the telemetry file has one line of JSON per record, is private, and refuses a pipe in its place",
  NodeServices.layer,
  function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const folder = yield* fs.makeTempDirectoryScoped()
    const file = path.join(folder, "deep", "telemetry.jsonl")
    const sink = yield* FileTelemetry.make(file)
    const record = { name: "turn", at: 5, session: "s", attributes: { tokens: 7 } }
    yield* sink(record)
    yield* sink(record)
    const lines = (yield* fs.readFileString(file)).trimEnd().split("\n")
    assert.deepStrictEqual(
      lines.map((line) => JSON.parse(line)),
      [record, record]
    )
    assert.strictEqual(statSync(file).mode & 0o777, 0o600)
    const { message } = yield* Effect.flip((yield* FileTelemetry.make(folder))(record))
    assert.include(message, "is not a file")
    // What a link leads to is another file of the user's.
    yield* fs.writeFileString(path.join(folder, "notes"), "mine")
    yield* fs.symlink(path.join(folder, "notes"), path.join(folder, "link.jsonl"))
    yield* fs.symlink(path.join(folder, "made"), path.join(folder, "nowhere.jsonl"))
    for (const link of ["link.jsonl", "nowhere.jsonl"]) {
      const refused = yield* Effect.flip((yield* FileTelemetry.make(path.join(folder, link)))(record))
      assert.include(refused.message, `${link} is a link`)
    }
    assert.strictEqual(yield* fs.readFileString(path.join(folder, "notes")), "mine")
    assert.isFalse(yield* fs.exists(path.join(folder, "made")))
  }
)
