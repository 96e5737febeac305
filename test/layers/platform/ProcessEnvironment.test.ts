import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as ProcessEnvironment from "../../../src/layers/platform/ProcessEnvironment.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"

it.effect("reads the process environment at each access", () =>
  Effect.gen(function* () {
    const { variables } = yield* Environment
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        process.env["PALIMPSEST_TEST_VARIABLE"] = "here"
      }),
      () => Effect.sync(() => delete process.env["PALIMPSEST_TEST_VARIABLE"])
    )
    const found = yield* variables
    assert.strictEqual(found["PALIMPSEST_TEST_VARIABLE"], "here")
    assert.strictEqual(found["PATH"], process.env["PATH"])
  }).pipe(Effect.scoped, Effect.provide(ProcessEnvironment.layer))
)
