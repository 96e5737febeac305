import path from "node:path"
import { defineConfig } from "vitest/config"

/** `npm run test:peers`: other agents' own programs, one after the other. */
export default defineConfig({
  root: path.join(import.meta.dirname, "..", ".."),
  test: {
    include: ["test/peers/**/*.test.ts"],
    globalSetup: ["test/support/nodeVersion.ts", "test/support/temporaryFolder.ts"],
    pool: "threads",
    fileParallelism: false,
    testTimeout: 1_200_000,
    hookTimeout: 900_000,
    reporters: ["default"]
  }
})
