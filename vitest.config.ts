import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A tier of its own: `npm run test:peers`.
    exclude: ["test/peers/**"],
    globalSetup: ["test/support/nodeVersion.ts", "test/support/temporaryFolder.ts", "test/support/machine.ts"],
    // Loading Effect costs more than most tests: workers keep their modules from file to file.
    pool: "threads",
    isolate: false,
    maxWorkers: 2,
    // These end what hangs, and nothing else: a busy machine may be ten times slower than a quiet one.
    testTimeout: 600_000,
    hookTimeout: 300_000,
    reporters: ["default", "./test/support/skippedTests.ts"]
  }
})
