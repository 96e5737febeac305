import { it as effectIt, layer as effectLayer, type Vitest } from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"

/**
 * `@effect/vitest`, and a shorter way to write what most tests are: `it.effect(name, function* () { … })`, also with
 * `each` and `skipIf`. A layer before the steps is built for that test alone, and outlives what the test acquires.
 */
export * from "@effect/vitest"

type Steps<R, Args extends ReadonlyArray<unknown> = []> = (
  ...args: Args
) => Generator<Effect.Effect<unknown, unknown, R>, unknown, never>

interface StepsTest<R, Args extends ReadonlyArray<unknown> = []> {
  (name: string, steps: Steps<R, Args>): void
  <Out, E, In extends R>(name: string, layer: Layer.Layer<Out, E, In>, steps: Steps<R | NoInfer<Out>, Args>): void
}

interface StepsTester<R> extends StepsTest<R> {
  readonly each: <T>(
    cases: ReadonlyArray<T>
  ) => StepsTest<R, [T]> &
    ((name: string, test: (row: T) => Effect.Effect<unknown, unknown, R>, timeout?: number) => void)
  readonly skipIf: (condition: unknown) => StepsTest<R> & Vitest.Test<R>
}

type Tester<R> = StepsTester<R> & Vitest.Tester<R>

const isSteps = (value: unknown): value is Steps<never, ReadonlyArray<unknown>> =>
  typeof value === "function" && value.constructor.name === "GeneratorFunction"

type AnyTest = (name: string, test: unknown, timeout?: unknown) => void

const stepsTest =
  (tester: AnyTest): AnyTest =>
  (name, first, second) => {
    if (isSteps(first)) return tester(name, (...args: ReadonlyArray<unknown>) => Effect.gen(() => first(...args)))
    if (!isSteps(second)) return tester(name, first, second)
    const layer = first as Layer.Layer<never, unknown>
    return tester(name, (...args: ReadonlyArray<unknown>) =>
      Effect.gen(() => second(...args)).pipe(Effect.scoped, Effect.provide(layer))
    )
  }

const withSteps = <R>(tester: Vitest.Tester<R>): Tester<R> =>
  Object.assign(stepsTest(tester as AnyTest), tester, {
    each: (cases: ReadonlyArray<unknown>) => stepsTest(tester.each(cases) as AnyTest),
    skipIf: (condition: unknown) => stepsTest(tester.skipIf(condition) as AnyTest)
  }) as unknown as Tester<R>

const withProperties = <T extends object, P extends object>(target: T, properties: P): P & T =>
  new Proxy(target, {
    get: (all, key) => Reflect.get(key in properties ? properties : all, key)
  }) as P & T

/** `it`, whose Effect tests may be steps. */
export const it = withProperties(effectIt, { effect: withSteps(effectIt.effect), live: withSteps(effectIt.live) })

type LayerIt<R> = { readonly effect: Tester<R | Scope.Scope> } & Vitest.MethodsNonLive<R>

/** Shares a layer between tests, which may be steps. */
export const layer = <R, E>(of: Layer.Layer<R, E>, ...options: [] | [Parameters<typeof effectLayer>[1]]) => {
  const tests = effectLayer(of, ...options)
  const extended = (methods: Vitest.MethodsNonLive<R>) =>
    withProperties(methods, { effect: withSteps(methods.effect) }) as LayerIt<R>
  return (...args: [name: string, f: (it: LayerIt<R>) => void] | [f: (it: LayerIt<R>) => void]): void =>
    args.length === 1
      ? tests((methods) => args[0](extended(methods)))
      : tests(args[0], (methods) => args[1](extended(methods)))
}
