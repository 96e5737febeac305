import { Effect } from "effect"
import { program } from "../cli/program.ts"
import { assert, describe, it } from "../support/vitest.ts"
import { attacked, attacks } from "./hostileModel.ts"

/** A few of the attacks of `npm run attack`, on the built program; tests within one process cover the others. */

const few = ["one line without an end", "arguments 5,000 deep"]

describe("a hostile server", () => {
  for (const attack of attacks.filter(({ name }) => few.includes(name))) {
    it.live(`${attack.name}: prints a clear line and the session continues`, function* () {
      const { bundle } = yield* program
      const { hits } = yield* Effect.promise(() => attacked(attack, bundle))
      // The time depends more on the machine than on the program.
      assert.deepStrictEqual(
        hits.filter((hit) => !/^[\d.]+ s$|took/.test(hit)),
        []
      )
    })
  }
})
