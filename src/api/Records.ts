/** Telemetry: records of requests, tokens, calls and compressions, and the sinks that receive them. */

/** @category Services @since 0.1.0 */
export { Telemetry } from "../services/telemetry/Telemetry.ts"
/** @category Models @since 0.1.0 */
export type { Sink, TelemetryOptions } from "../services/telemetry/Telemetry.ts"
/** @category Models @since 0.1.0 */
export { TelemetryRecord, type RecentActivity, type TelemetryEntry } from "../domain/telemetry/Telemetry.ts"
