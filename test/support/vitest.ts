import { it as effectIt, layer as effectLayer, type Vitest } from "@effect/vitest"
import { Effect, type Layer, type Scope } from "effect"

/**
 * `@effect/vitest`, and a shorter way to write what most tests are: `it.effect(name, function* () { … })`. A layer before the steps
 * is built for that test alone, and outlives what the test acquires.
 */
export * from "@effect/vitest"

type Steps<R> = () => Generator<Effect.Effect<unknown, unknown, R>, unknown, never>

interface StepsTester<R> {
  (name: string, steps: Steps<R>): void
  <Out, E, In extends R>(name: string, layer: Layer.Layer<Out, E, In>, steps: Steps<R | NoInfer<Out>>): void
}

type Tester<R> = Vitest.Tester<R> & StepsTester<R>

const isSteps = (value: unknown): value is Steps<never> =>
  typeof value === "function" && value.constructor.name === "GeneratorFunction"

const withSteps = <R>(tester: Vitest.Tester<R>): Tester<R> => {
  const test = (name: string, first: unknown, second?: unknown): void => {
    if (isSteps(first)) return tester(name, () => Effect.gen(first))
    if (isSteps(second))
      return tester(name, () =>
        Effect.gen(second).pipe(Effect.scoped, Effect.provide(first as Layer.Layer<never, unknown>))
      )
    return tester(name, first as Vitest.TestFunction<unknown, unknown, R, []>, second as number | undefined)
  }
  return Object.assign(test, tester) as Tester<R>
}

const withProperties = <T extends object, P extends object>(target: T, properties: P): T & P =>
  new Proxy(target, {
    get: (all, key) => Reflect.get(key in properties ? properties : all, key)
  }) as T & P

/** `it`, whose Effect tests may be steps. */
export const it = withProperties(effectIt, { effect: withSteps(effectIt.effect), live: withSteps(effectIt.live) })

type LayerIt<R> = Vitest.MethodsNonLive<R> & { readonly effect: Tester<R | Scope.Scope> }

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
