import type { TestFunctions } from "../../src/layers/testing/ContractTests.ts"

/** Runs the tests of a contract suite, or those chosen, up to the first that fails. Returns its name; undefined: none fails. */
export const firstFailure = async (
  define: (functions: TestFunctions) => unknown,
  isChosen: (name: string) => boolean = () => true
): Promise<string | undefined> => {
  const tests: Array<readonly [name: string, run: () => Promise<void>]> = []
  define({ describe: (_, suite) => suite(), it: (name, run) => tests.push([name, run]) })
  for (const [name, run] of tests) {
    if (!isChosen(name)) continue
    const hasFailed = await run().then(
      () => false,
      () => true
    )
    if (hasFailed) return name
  }
  return undefined
}
