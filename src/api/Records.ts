/** Telemetry: records of requests, tokens, calls and compressions, and the sinks that receive them. */
export { type Sink, Telemetry, type TelemetryOptions } from "../services/telemetry/Telemetry.ts"
export { TelemetryRecord } from "../domain/telemetry/Telemetry.ts"
export type { RecentActivity, TelemetryEntry } from "../domain/telemetry/Telemetry.ts"
