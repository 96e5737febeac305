import { assert } from "@effect/vitest"

/** Memos are invisible: whatever was asked before, the answer is that of a first question. */

/**
 * Asserts that each step gives on one value, after the steps before it and after all others, what it gives on a copy that nothing
 * has seen. `make` returns such a copy.
 */
export const cachedEqualsFresh = <I, A>(make: () => I, steps: Readonly<Record<string, (value: I) => A>>): void => {
  const forwards = Object.entries(steps).map(([name, step]) => ({ name, step, fresh: step(make()) }))
  for (const [order, all] of [
    ["after those before it", [...forwards, ...forwards]],
    ["after all others", [...forwards].reverse()]
  ] as const) {
    const warm = make()
    for (const { fresh, name, step } of all) assert.deepStrictEqual(step(warm), fresh, `${name}, ${order}`)
  }
}
