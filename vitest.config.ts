import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Other agents' own programs: `npm run test:peers`.
    exclude: ["test/peers/**"],
    globalSetup: ["test/support/nodeVersion.ts", "test/support/temporaryFolder.ts"],
    // Loading Effect costs more than most tests: workers keep their modules from file to file.
    pool: "threads",
    isolate: false,
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    reporters: ["default"]
  }
})
