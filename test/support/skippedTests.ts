import process from "node:process"
import { type Reporter, type TestModule } from "vitest/node"
import { lackOf } from "./machine.ts"

/** Ends a run with the tests that were skipped for a missing program, and how to get it. */
export const skippedLines = (names: Iterable<string>): ReadonlyArray<string> => {
  const counts = new Map<string, number>()
  for (const name of names) {
    const lack = lackOf(name)
    if (lack === undefined) continue
    const text = `${lack.what} (${lack.get})`
    counts.set(text, (counts.get(text) ?? 0) + 1)
  }
  return [...counts].map(([text, count]) => `skipped: ${count} ${count === 1 ? "test needs" : "tests need"} ${text}`)
}

/** The reporter of these lines; it comes after all others, so that they are the last lines. */
export default class SkippedTests implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const names = modules.flatMap((module) => [...module.children.allTests("skipped")].map(({ fullName }) => fullName))
    const lines = skippedLines(names)
    if (lines.length > 0) process.stdout.write(`${lines.join("\n")}\n`)
  }
}
