/**
 * `palimpsest/node`: layers over the disk and the processes of this machine, and the whole program as one layer.
 *
 * They take `FileSystem` and `Path` of `effect`, for example from `NodeServices.layer` of `@effect/platform-node`.
 */
export * as BackedSessionStore from "./layers/session/BackedSessionStore.ts"
export * as FileCalibrations from "./layers/tokens/FileCalibrations.ts"
export * as FileMemory from "./layers/memory/FileMemory.ts"
export * as FileSessionStore from "./layers/session/FileSessionStore.ts"
export * as FileSettings from "./layers/settings/FileSettings.ts"
export * as FileTelemetry from "./layers/telemetry/FileTelemetry.ts"
export * as FileTempStore from "./layers/session/FileTempStore.ts"
export * as FileTrust from "./layers/workspace/FileTrust.ts"
export * as FileWorkspace from "./layers/workspace/FileWorkspace.ts"
export * as Home from "./layers/assembly/Home.ts"
export * as KeyValueSessionStore from "./layers/session/KeyValueSessionStore.ts"
export * as Live from "./layers/assembly/Live.ts"
export * as LiveRuntime from "./layers/assembly/LiveRuntime.ts"
export * as LiveTools from "./layers/assembly/LiveTools.ts"
export * as Otlp from "./layers/telemetry/Otlp.ts"
export * as SqliteClient from "./layers/platform/SqliteClient.ts"
export * as SqliteSessionStore from "./layers/session/SqliteSessionStore.ts"
export type { FileMemoryOptions } from "./layers/memory/MemoryContext.ts"
export type { KeyValueSessionOptions } from "./layers/session/KeyValueSessionBacking.ts"
