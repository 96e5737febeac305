import process from "node:process"
import { type Reporter, type TestModule } from "vitest/node"

const shown = 5

/** Ends a run of many files with the five slowest. */
export default class SlowestFiles implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    if (modules.length <= shown) return
    const slowest = modules
      .map((module) => ({ name: module.relativeModuleId, seconds: module.diagnostic().duration / 1_000 }))
      .sort((one, other) => other.seconds - one.seconds)
      .slice(0, shown)
    process.stdout.write(
      `slowest: ${slowest.map(({ name, seconds }) => `${name} ${seconds.toFixed(1)} s`).join(", ")}\n`
    )
  }
}
