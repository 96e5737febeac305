/** Builds the layer of a function of options anew for each use, so that no two results share a part by accident. */

import { Context, Effect, Layer, type Scope } from "effect"
import { InvalidOption, valueCheck } from "../../domain/compression/InvalidOption.ts"

/** Takes a layer that a program supplied, so that it is built in the program. */
export type Supplied = <A, E, R>(part: Layer.Layer<A, E, R>) => Layer.Layer<A, E, R>

/** Builds with a memo map, of which what is built does not speak: layers that it is provided to have their own. */
const buildIn = <A, E, R>(layer: Layer.Layer<A, E, R>, memoMap: Layer.MemoMap, scope: Scope.Scope) =>
  Effect.map(
    Layer.buildWithMemoMap(layer, memoMap, scope),
    // No layer of a program provides the memo map that it is built with.
    (context) => Context.omit(Layer.CurrentMemoMap)(context) as Context.Context<A>
  )

/** The layer of an option that no program with types can pass. */
export const refused = <A>(message: string): Layer.Layer<A> =>
  Layer.fromBuildMemo(() => Effect.die(new InvalidOption({ message })))

/** A part that a program without types supplied may be no layer. */
const layerOf = <A, E, R>(part: Layer.Layer<A, E, R>): Layer.Layer<A, E, R> => {
  const message = valueCheck(Layer.isLayer, "a layer")("a part", part)
  return message === undefined ? part : refused(message)
}

/**
 * Makes the layer of a function of options. Effect builds a layer once in a program, by reference, so that a constant layer within the result of such a
 * function would be shared by all its results, whatever their options are.
 *
 * *Details*: everything inside is built anew for each layer that this returns, and once where that layer is used several times. A part that goes through
 * `supplied` is the program's: it is built once in the program, so that a database below two of them is one.
 */
export const own = <A, E, R>(assemble: (supplied: Supplied) => Layer.Layer<A, E, R>): Layer.Layer<A, E, R> =>
  Layer.fromBuildMemo((memoMap, scope) =>
    buildIn(
      assemble((part) => Layer.fromBuildMemo((_, scope) => buildIn(layerOf(part), memoMap, scope))),
      Layer.makeMemoMapUnsafe(),
      scope
    )
  )
