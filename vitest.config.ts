import { availableParallelism } from "node:os"
import { setFlagsFromString } from "node:v8"
import { defineConfig } from "vitest/config"

/** What uses a disk, processes, terminals, browsers or servers. */
const endToEnd = ["test/**/*.e2e.test.ts"]

/** The tiers, each one command of package.json; without one, all tests are run. `test:peers` has a configuration of its own. */
const tiers: Readonly<Record<string, { readonly include: Array<string>; readonly exclude: Array<string> }>> = {
  unit: { include: ["test/**/*.test.ts"], exclude: [...endToEnd, "test/laws/**"] },
  // At full counts, which `npm test` has not: all that is judged by generated cases or at every suspension point, stores and memory files too.
  laws: { include: ["test/**/!(*.e2e).test.ts", "test/layers/{memory,session}/*.test.ts"], exclude: [] },
  e2e: { include: endToEnd, exclude: [] }
}

// Tests make much and keep little. With V8's usual young generation, which starts at 1 MB a thread, a sixth of the suite's
// CPU time is spent on collecting it. Threads that start after this have the larger one.
for (const flag of ["--min-semi-space-size=32", "--max-semi-space-size=64"]) setFlagsFromString(flag)

export default defineConfig(({ mode }) => {
  // Workers of the next run read what Node compiled in this one. Not in other tiers, whose tests start programs.
  if (mode === "unit") process.env["NODE_COMPILE_CACHE"] ??= "node_modules/.vitest-cache/compiled"
  const { exclude, include } = tiers[mode] ?? { include: ["test/**/*.test.ts"], exclude: [] }
  return {
    test: {
      include,
      exclude: [...exclude, "test/peers/**"],
      globalSetup: ["test/support/nodeVersion.ts", "test/support/temporaryFolder.ts", "test/support/machine.ts"],
      setupFiles: ["test/support/testModules.ts", "test/support/seed.ts"],
      // Loading Effect costs more than most tests: workers keep their modules from file to file.
      pool: "threads",
      isolate: false,
      // Node strips the types itself: no module is transformed, and an imported name costs no look-up at each use.
      experimental: { viteModuleRunner: false, nodeLoader: false },
      // More than there are cores where tests wait for processes and servers; each worker loads the modules anew.
      maxWorkers: availableParallelism() + (mode === "unit" ? 0 : 1),
      // These end what hangs, and nothing else: a busy machine may be ten times slower than a quiet one.
      testTimeout: mode === "laws" ? 600_000 : 300_000,
      hookTimeout: 300_000,
      // What a server logs in a test that passes is of use to nobody.
      silent: "passed-only",
      reporters: ["default", "./test/support/slowestFiles.ts", "./test/support/skippedTests.ts"]
    }
  }
})
