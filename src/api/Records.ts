/** Telemetry: records of requests, tokens, calls and compressions, and where they go. */
export { type Sink, Telemetry, type TelemetryOptions } from "../services/telemetry/Telemetry.ts"
export { TelemetryRecord } from "../domain/telemetry/Telemetry.ts"
