/**
 * The public index of the library: one namespace a subject. No name is also one of `effect` or `effect/ai`.
 *
 * ```ts
 * import { Chats, Compress, ContextWindow, Palimpsest } from "palimpsest"
 * ```
 *
 * Each namespace is also a module of its own, such as `palimpsest/Compress`: from an index, esbuild takes a namespace as a whole.
 *
 * It needs `effect` and nothing else. Model providers are in `palimpsest/google`, `palimpsest/openai` and `palimpsest/anthropic`, stores and tools of this
 * machine in `palimpsest/node`, deterministic layers in `palimpsest/testing`. Nothing in `src` imports this file.
 */

/** @category Agents @since 0.1.0 */
export * as Agent from "./api/Agent.ts"
/** @category Agents @since 0.1.0 */
export * as AgentRuntime from "./api/AgentRuntime.ts"
/** @category Conversations @since 0.1.0 */
export * as Chats from "./api/Chats.ts"
/** @category Compression @since 0.1.0 */
export * as Compress from "./api/Compress.ts"
/** @category Conversations @since 0.1.0 */
export * as CompressedChat from "./services/effect-ai/CompressedChat.ts"
/** @category Compression @since 0.1.0 */
export * as Compression from "./api/Compression.ts"
/** @category Messages @since 0.1.0 */
export * as Content from "./api/Content.ts"
/** @category Compression @since 0.1.0 */
export * as ContextWindow from "./api/ContextWindow.ts"
/** @category Conversations @since 0.1.0 */
export * as Conversation from "./api/Conversation.ts"
/** @category Agents @since 0.1.0 */
export * as Hooks from "./api/Hooks.ts"
/** @category Agents @since 0.1.0 */
export * as Memory from "./api/Memory.ts"
/** @category Models @since 0.1.0 */
export * as Models from "./api/Models.ts"
/** @category Assembly @since 0.1.0 */
export * as Palimpsest from "./api/Palimpsest.ts"
/** @category Telemetry @since 0.1.0 */
export * as Records from "./api/Records.ts"
/** @category Storage @since 0.1.0 */
export * as Session from "./api/Session.ts"
/** @category Agents @since 0.1.0 */
export * as Settings from "./api/Settings.ts"
/** @category Models @since 0.1.0 */
export * as Tokens from "./api/Tokens.ts"
/** @category Agents @since 0.1.0 */
export * as Tools from "./api/Tools.ts"
/** @category Transcripts @since 0.1.0 */
export * as Transcripts from "./api/Transcripts.ts"
/** @category Agents @since 0.1.0 */
export * as Workspace from "./api/Workspace.ts"
