/**
 * The public index of the library: one namespace a subject. No name is also one of `effect` or `effect/ai`.
 *
 * ```ts
 * import { Chats, Compress, ContextWindow, Palimpsest } from "palimpsest"
 * ```
 *
 * It needs `effect` and nothing else. Model providers are in `palimpsest/google`, `palimpsest/openai` and `palimpsest/anthropic`, stores and tools of this
 * machine in `palimpsest/node`, deterministic layers in `palimpsest/testing`. Nothing in `src` imports this file.
 */
export * as Agent from "./api/Agent.ts"
export * as AgentRuntime from "./api/AgentRuntime.ts"
export * as Chats from "./api/Chats.ts"
export * as Compress from "./api/Compress.ts"
export * as CompressedChat from "./services/effect-ai/CompressedChat.ts"
export * as Compression from "./api/Compression.ts"
export * as Content from "./api/Content.ts"
export * as ContextWindow from "./api/ContextWindow.ts"
export * as Conversation from "./api/Conversation.ts"
export * as Hooks from "./api/Hooks.ts"
export * as Memory from "./api/Memory.ts"
export * as Models from "./api/Models.ts"
export * as Palimpsest from "./api/Palimpsest.ts"
export * as Records from "./api/Records.ts"
export * as Session from "./api/Session.ts"
export * as Settings from "./api/Settings.ts"
export * as Tokens from "./api/Tokens.ts"
export * as Tools from "./api/Tools.ts"
export * as Transcripts from "./api/Transcripts.ts"
export * as Workspace from "./api/Workspace.ts"
