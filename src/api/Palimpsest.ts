/** The whole library as one layer. */

import { Effect, Layer } from "effect"
import type { LibraryOptions, LibraryServices, SummarizerServices } from "../layers/assembly/LiveLibrary.ts"

/** @category Models @since 0.1.0 */
export type {
  HomeServices,
  LibraryOptions as Options,
  LibraryServices as Services,
  SummarizerServices
} from "../layers/assembly/LiveLibrary.ts"

/**
 * Options whose layers may fail with anything and need anything.
 *
 * @category Models
 * @since 0.1.0
 */
export type AnyOptions = LibraryOptions<unknown, unknown>

type PartError<P> = P extends Layer.Layer<infer _A, infer E, infer _R> ? E : never

type PartContext<P> = P extends Layer.Layer<infer _A, infer _E, infer R> ? R : never

// A part that may be absent provides nothing for certain, and of two that may be there only what both provide is certain.
type PartServices<P> = undefined extends P ? never : [P] extends [Layer.Layer<infer A, infer _E, infer _R>] ? A : never

/**
 * The errors of all layers that may be among these options.
 *
 * @category Models
 * @since 0.1.0
 */
export type ErrorOf<O> = { [K in keyof O]-?: PartError<O[K]> }[keyof O]

/**
 * The services that the layers among these options provide, for tests such as the script of a `ScriptedModel`.
 *
 * @category Models
 * @since 0.1.0
 */
export type ServicesOf<O> = { [K in keyof O]-?: PartServices<O[K]> }[keyof O]

/**
 * The services that all layers that may be among these options need, without those of the whole that a summarizer gets.
 *
 * @category Models
 * @since 0.1.0
 */
export type ContextOf<O> = {
  [K in keyof O]-?: K extends "summarizer" ? Exclude<PartContext<O[K]>, SummarizerServices> : PartContext<O[K]>
}[keyof O]

/**
 * Everything that conversations, compressions and language models with a bounded window need, in one layer: every part has a default, and each can be
 * replaced.
 *
 * *Details*: without options nothing leaves the process: sessions are kept in memory, code writes the snapshots, and no model answers. Errors,
 * requirements and further services are those of the layers that you pass, also of those that may be absent. Two layers in one program share only the
 * parts that you pass to both, such as one store; a `summarizer` is built for each.
 *
 * **Example** (Keeping chats in a database, in a window of 8,000 tokens)
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Chats, Palimpsest } from "palimpsest"
 * import { SqliteSessionStore } from "palimpsest/node"
 * import { ScriptedModel } from "palimpsest/testing"
 *
 * const Support = Palimpsest.layer({
 *   model: ScriptedModel.layer(["Yes."]), // AnthropicModel.layerConfig, with a key
 *   store: SqliteSessionStore.layer(":memory:"),
 *   chat: { model: "scripted", window: 8_000 }
 * })
 * const usage = Effect.flatMap(Chats.open("tenant/42"), (chat) => chat.usage).pipe(Effect.scoped)
 * console.log((await Effect.runPromise(Effect.provide(usage, Support))).limit) // => 8000
 * ```
 *
 * @category Layers
 * @since 0.1.0
 */
export const layer = <const O extends AnyOptions = {}>(
  options: O = {} as O
): Layer.Layer<LibraryServices | ServicesOf<O>, ErrorOf<O>, ContextOf<O>> =>
  // The errors and requirements are those of the parts, which the assembly does not distinguish.
  Layer.unwrap(
    Effect.map(
      Effect.promise(() => import("../layers/assembly/LiveLibrary.ts")),
      ({ layer }) => layer(options)
    )
  ) as Layer.Layer<LibraryServices | ServicesOf<O>, ErrorOf<O>, ContextOf<O>>
