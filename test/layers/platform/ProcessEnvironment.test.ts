import { Effect } from "effect"
import * as ProcessEnvironment from "../../../src/layers/platform/ProcessEnvironment.ts"
import { Environment } from "../../../src/services/platform/Environment.ts"
import { assert, it } from "../../support/vitest.ts"

it.effect("reads the process environment at each access", ProcessEnvironment.layer, function* () {
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
})
