/** The whole library as one layer. */
import { Effect, Layer } from "effect"
import type { LibraryOptions, LibraryServices } from "../layers/assembly/LiveLibrary.ts"

export type { LibraryOptions as Options, LibraryServices as Services } from "../layers/assembly/LiveLibrary.ts"

/** The errors of all layers among these options. */
export type ErrorOf<O> = { [K in keyof O]: O[K] extends Layer.Layer<infer _A, infer E, infer _R> ? E : never }[keyof O]
/** The services that the layers among these options provide, for tests such as the script of a `ScriptedModel`. */
export type ServicesOf<O> = {
  [K in keyof O]: O[K] extends Layer.Layer<infer A, infer _E, infer _R> ? A : never
}[keyof O]
/** The services that the layers among these options need, besides those of the whole. */
export type ContextOf<O> = Exclude<
  { [K in keyof O]: O[K] extends Layer.Layer<infer _A, infer _E, infer R> ? R : never }[keyof O],
  LibraryServices
>

/**
 * Everything that conversations, compressions and language models with a bounded window need, in one layer: every part has a default, and each can be
 * replaced.
 *
 * *Example*:
 *
 *     Palimpsest.layer({ model: GoogleModel.layerConfig, home: "/var/lib/support" })
 *
 * *Details*: without options nothing leaves the process: sessions are kept in memory, code writes the snapshots, and no model answers. Errors,
 * requirements and further services are those of the layers that you pass; `summarizer`, `store` and the others may need services of yours.
 */
export const layer = <const O extends LibraryOptions = {}>(
  options: O = {} as O
): Layer.Layer<LibraryServices | ServicesOf<O>, ErrorOf<O>, ContextOf<O>> =>
  // The errors and requirements are those of the parts, which the assembly does not distinguish.
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("../layers/assembly/LiveLibrary.ts")),
      ({ layer }) => layer(options)
    )
  ) as Layer.Layer<LibraryServices | ServicesOf<O>, ErrorOf<O>, ContextOf<O>>
