import { defineConfig } from "vitest/config"

/** Tests against the programs that this one imitates; they are installed from the npm registry. See `npm run test:peers`. */
export default defineConfig({
  test: {
    include: ["test/peers/**/*.test.ts"],
    globalSetup: ["test/support/nodeVersion.ts", "test/support/temporaryFolder.ts"],
    pool: "threads",
    isolate: false,
    maxWorkers: 1,
    testTimeout: 1_200_000,
    hookTimeout: 900_000,
    reporters: ["default"]
  }
})
