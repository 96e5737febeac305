import path from "node:path"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"
import base from "../../vitest.config.ts"

const root = path.resolve(import.meta.dirname, "../..")

/** Runs test files in the order of the command line. */
class AsGiven extends BaseSequencer {
  override sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const place = ({ moduleId }: TestSpecification) =>
      process.argv.indexOf(path.relative(root, moduleId).replaceAll("\\", "/"))
    return Promise.resolve([...files].sort((one, other) => place(one) - place(other)))
  }
}

/** For a copy of the project: nearest tests first, and, in the clean run, a note of what they ran. */
export default defineConfig((env) => {
  const { test } = base(env)
  return {
    root,
    cacheDir: path.join(root, ".cache"),
    test: {
      ...test,
      include: ["test/**/*.test.ts"],
      exclude: [],
      reporters: ["default"],
      sequence: { sequencer: AsGiven },
      ...(process.env["MUTANTS_COVERAGE"] === undefined
        ? {}
        : { runner: path.join(import.meta.dirname, "coverage.ts") })
    }
  }
})
