import { defineConfig } from "vitest/config"

/** Tests that run the programs of other agents beside ours (`npm run test:peers`). */
export default defineConfig({
  test: {
    include: ["test/peers/**/*.test.ts"],
    globalSetup: ["test/support/nodeVersion.ts", "test/support/temporaryFolder.ts"],
    testTimeout: 300_000
  }
})
