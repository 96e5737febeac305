/**
 * `palimpsest/node`: layers over the disk and the processes of this machine, and the whole program as one layer.
 *
 * They take `FileSystem` and `Path` of `effect`, for example from `NodeServices.layer` of `@effect/platform-node`.
 */

/** @category Storage @since 0.1.0 */
export * as BackedSessionStore from "./layers/session/BackedSessionStore.ts"
/** @category Storage @since 0.1.0 */
export * as FileCalibrations from "./layers/tokens/FileCalibrations.ts"
/** @category Agents @since 0.1.0 */
export * as FileMemory from "./layers/memory/FileMemory.ts"
/** @category Storage @since 0.1.0 */
export * as FileSessionStore from "./layers/session/FileSessionStore.ts"
/** @category Agents @since 0.1.0 */
export * as FileSettings from "./layers/settings/FileSettings.ts"
/** @category Telemetry @since 0.1.0 */
export * as FileTelemetry from "./layers/telemetry/FileTelemetry.ts"
/** @category Storage @since 0.1.0 */
export * as FileTempStore from "./layers/session/FileTempStore.ts"
/** @category Agents @since 0.1.0 */
export * as FileTrust from "./layers/workspace/FileTrust.ts"
/** @category Agents @since 0.1.0 */
export * as FileWorkspace from "./layers/workspace/FileWorkspace.ts"
/** @category Storage @since 0.1.0 */
export * as Home from "./layers/assembly/Home.ts"
/** @category Storage @since 0.1.0 */
export * as KeyValueSessionStore from "./layers/session/KeyValueSessionStore.ts"
/** @category Assembly @since 0.1.0 */
export * as Live from "./layers/assembly/Live.ts"
/** @category Assembly @since 0.1.0 */
export * as LiveRuntime from "./layers/assembly/LiveRuntime.ts"
/** @category Assembly @since 0.1.0 */
export * as LiveTools from "./layers/assembly/LiveTools.ts"
/** @category Telemetry @since 0.1.0 */
export * as Otlp from "./layers/telemetry/Otlp.ts"
/** @category Storage @since 0.1.0 */
export * as SqliteClient from "./layers/platform/SqliteClient.ts"
/** @category Storage @since 0.1.0 */
export * as SqliteSessionStore from "./layers/session/SqliteSessionStore.ts"
/** @category Models @since 0.1.0 */
export type { FileMemoryOptions } from "./layers/memory/MemoryContext.ts"
/** @category Models @since 0.1.0 */
export type { KeyValueSessionOptions } from "./layers/session/KeyValueSessionBacking.ts"
