import type { TestFunctions } from "../../src/layers/testing/ContractTests.ts"

/** Runs the tests of a contract suite, and returns the names of those that fail. */
export const failedBy = async (define: (functions: TestFunctions) => unknown): Promise<ReadonlyArray<string>> => {
  const tests: Array<readonly [string, () => Promise<void>]> = []
  define({ describe: (_, suite) => suite(), it: (name, run) => tests.push([name, run]) })
  const failed: Array<string> = []
  for (const [name, run] of tests) await run().catch(() => failed.push(name))
  return failed
}
