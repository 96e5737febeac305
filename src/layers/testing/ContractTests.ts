/** Defines the tests of contract suites in any test runner. */

import { Arbitrary, Context, Effect, Fiber, Layer, Record, type Scope } from "effect"
import { TestClock } from "effect/testing"

/**
 * The test functions of a test runner. Those of vitest, Jest, Bun and `node:test` fit, so a contract suite depends on none of
 * them.
 *
 * @example
 * import { describe, it } from "vitest"
 *
 * sessionStoreContract({ describe, it }, { name: "MySessionStore", make, runs: 50 })
 */
export interface TestFunctions {
  /** Defines a suite. */
  readonly describe: (name: string, define: () => void) => unknown
  /** Defines a test. */
  readonly it: (name: string, run: () => Promise<void>) => unknown
}

/** One implementation of a service, as a contract suite tests it. */
export interface ContractVariant<L> {
  /** The name of the suite. */
  readonly name: string
  /** Makes a layer over fresh storage. Providing the layer again is a restart: what was stored is still there. */
  readonly make: Effect.Effect<L, unknown, Scope.Scope>
  /** Cases of each property. */
  readonly runs: number
}

/** Runs the effect of a test in its own scope, with a `TestClock`. */
const runTest = <E>(test: Effect.Effect<unknown, E, Scope.Scope>): Promise<void> =>
  Effect.runPromise(Effect.asVoid(Effect.scoped(test)).pipe(Effect.provide(TestClock.layer())))

/** The steps of a test, as `Effect.gen` takes them. */
export type TestSteps<R> = Generator<Effect.Effect<unknown, unknown, R>, unknown, never>

/** Tests by their names. Each runs in its own scope, with a `TestClock`. */
export type NamedTests = Readonly<Record<string, () => TestSteps<Scope.Scope>>>

/** Tests of a service by their names. */
export type ServiceTests<S, A> = Readonly<Record<string, (service: A) => TestSteps<Scope.Scope | S>>>

/** Defines tests as a suite. */
export const defineTests = ({ describe, it }: TestFunctions, suite: string, tests: NamedTests): void => {
  describe(suite, () => {
    for (const [name, run] of Object.entries(tests)) it(name, () => runTest(Effect.gen(run)))
  })
}

/** Runs each test of a service on one over fresh storage. */
export const onService = <S, A>(
  key: Context.Key<S, A>,
  { make }: Pick<ContractVariant<Layer.Layer<S, unknown>>, "make">,
  tests: ServiceTests<S, A>
): NamedTests =>
  Record.map(
    tests,
    (run) =>
      function* () {
        const context = yield* Layer.build(yield* make)
        yield* Effect.provideContext(
          Effect.gen(() => run(Context.get(context, key))),
          context
        )
      }
  )

/** Defines the tests of a service as a suite. */
export const serviceContract = <S, A>(
  functions: TestFunctions,
  key: Context.Key<S, A>,
  variant: Omit<ContractVariant<Layer.Layer<S, unknown>>, "runs">,
  tests: ServiceTests<S, A>
): void => defineTests(functions, variant.name, onService(key, variant, tests))

/** Checks a property for generated values, the same ones for the same seed. Fails with the smallest value that breaks it. */
export const checkProperty = Effect.fnUntraced(function* <A, E>(
  arbitrary: Arbitrary.Arbitrary<A>,
  runs: number,
  property: (value: A) => Effect.Effect<unknown, E>,
  seed?: string
): Effect.fn.Return<void> {
  const holds = (value: A) =>
    Effect.as(
      Effect.catchCause(property(value), (cause) => Effect.fail(cause)),
      true
    )
  const failure = Arbitrary.formatCheckFailure(
    yield* Arbitrary.checkEffect(arbitrary, holds, { runs, ...(seed === undefined ? {} : { seed }) })
  )
  if (failure !== undefined) return yield* Effect.die(new Error(failure))
})

/** How long one case may take: minutes of the `TestClock`, then milliseconds of the machine. */
const minutes = 10
const realMillis = 5_000

/** Subjects that did not end once: their other cases are not waited for. */
const hung = new WeakSet<object>()

const pass = (millis: number) => Effect.promise(() => new Promise<void>((resolve) => void setTimeout(resolve, millis)))

/** Fails where the work of a subject does not end while `waiting` does. */
const endingWhile =
  <E2, R2>(waiting: (work: Fiber.Fiber<unknown, unknown>) => Effect.Effect<unknown, E2, R2>, within: string) =>
  <A, E, R>(subject: object, effect: Effect.Effect<A, E, R>) =>
    Effect.gen(function* () {
      if (hung.has(subject)) return yield* Effect.die(new Error("another case did not end"))
      // Detached: a test would wait for its child, which may not be interruptible.
      const fiber = yield* Effect.forkDetach(effect)
      yield* waiting(fiber).pipe(
        Effect.andThen(Effect.raceFirst(Fiber.await(fiber), pass(realMillis))),
        Effect.onInterrupt(() => Fiber.interrupt(fiber))
      )
      if (fiber.pollUnsafe() === undefined) {
        hung.add(subject)
        yield* Effect.forkDetach(Fiber.interrupt(fiber))
        return yield* Effect.die(new Error(`it did not end within ${within}`))
      }
      return yield* Fiber.join(fiber)
    })

/** Fails where an effect does not end, neither with the time of the tests nor with some of the machine's. */
export const ending = endingWhile(
  Effect.fnUntraced(function* (work) {
    const tick = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))
    for (let minute = 0; minute < minutes && work.pollUnsafe() === undefined; minute += 1) {
      for (let turn = 0; turn < 20 && work.pollUnsafe() === undefined; turn += 1) yield* tick
      if (work.pollUnsafe() === undefined) yield* TestClock.adjust("1 minute")
    }
  }),
  `${minutes} minutes`
)

/** Fails where an effect does not end with some time of the machine. The time of the tests stands still, in which calls of servers have their limits. */
export const endingSoon = endingWhile(() => Effect.void, `${realMillis / 1_000} seconds`)
