/**
 * The public index of the library: one namespace a subject.
 *
 * ```ts
 * import { Chat, Compression, Content } from "palimpsest"
 * ```
 *
 * It needs `effect` and nothing else. Model providers are in `palimpsest/google`, stores and tools of this machine in
 * `palimpsest/node`, deterministic layers in `palimpsest/testing`. Nothing in `src` imports this file.
 */
export * as Agent from "./api/Agent.ts"
export * as Chat from "./api/Chat.ts"
export * as CompressedChat from "./services/effect-ai/CompressedChat.ts"
export * as CompressedLanguageModel from "./services/effect-ai/CompressedLanguageModel.ts"
export * as Compression from "./api/Compression.ts"
export * as Content from "./api/Content.ts"
export * as Conversation from "./api/Conversation.ts"
export * as Hooks from "./api/Hooks.ts"
export * as LanguageModelBridge from "./services/effect-ai/LanguageModelBridge.ts"
export * as Memory from "./api/Memory.ts"
export * as Model from "./api/Model.ts"
export * as ModelSummarizer from "./services/compression/summary/ModelSummarizer.ts"
export * as RecallTool from "./services/effect-ai/RecallTool.ts"
export * as Runtime from "./api/Runtime.ts"
export * as Session from "./api/Session.ts"
export * as Settings from "./api/Settings.ts"
export * as Telemetry from "./api/Telemetry.ts"
export * as Tokens from "./api/Tokens.ts"
export * as Tool from "./api/Tool.ts"
export * as Transcripts from "./api/Transcripts.ts"
export * as Workspace from "./api/Workspace.ts"
