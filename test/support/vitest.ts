import { it as effectIt, layer as effectLayer, type Vitest } from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"

/**
 * `@effect/vitest`, and a shorter way to write what most tests are: `it.effect(name, function* () { … })`. A layer before the steps
 * is built for that test alone, and outlives what the test acquires. The steps of `it.effect.each` get the case.
 */
export * from "@effect/vitest"

type Steps<R, Args extends ReadonlyArray<unknown> = []> = (
  ...args: Args
) => Generator<Effect.Effect<unknown, unknown, R>, unknown, never>

interface StepsTester<R, Args extends ReadonlyArray<unknown> = []> {
  (name: string, steps: Steps<R, Args>): void
  <Out, E, In extends R>(name: string, layer: Layer.Layer<Out, E, In>, steps: Steps<R | NoInfer<Out>, Args>): void
}

interface Each<R> {
  <T>(
    cases: ReadonlyArray<T>
  ): StepsTester<R, [T]> & (<A, E>(name: string, self: (each: T) => Effect.Effect<A, E, R>, timeout?: number) => void)
}

type Tester<R> = { readonly each: Each<R> } & Vitest.Tester<R> & StepsTester<R>

const isSteps = (value: unknown): value is Steps<never, ReadonlyArray<unknown>> =>
  typeof value === "function" && value.constructor.name === "GeneratorFunction"

type Test<R> = Vitest.TestFunction<unknown, unknown, R, Array<unknown>>

const withSteps = <R>(tester: Vitest.Tester<R>): Tester<R> => {
  const stepsOf =
    (test: (name: string, self: Test<R>, timeout?: number) => void) =>
    (name: string, first: unknown, second?: unknown): void => {
      if (isSteps(first)) return test(name, (...args) => Effect.gen(() => first(...args)))
      if (isSteps(second))
        return test(name, (...args) =>
          Effect.gen(() => second(...args)).pipe(Effect.scoped, Effect.provide(first as Layer.Layer<never, unknown>))
        )
      return test(name, first as Test<R>, second as number | undefined)
    }
  const each = (cases: ReadonlyArray<unknown>) => stepsOf(tester.each(cases))
  return Object.assign(stepsOf(tester), tester, { each }) as Tester<R>
}

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
