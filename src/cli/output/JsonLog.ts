import { Logger, References } from "effect"
import { telemetryMark } from "../../services/telemetry/Telemetry.ts"

/** The log as JSON: one object a line on stderr, with the time, the level, the message, and what else is known. */

const logger = Logger.make((options) => {
  // Telemetry goes to a collector.
  if (options.fiber.getRef(References.CurrentLogAnnotations)[telemetryMark] === true) return
  const { annotations, cause, level, message, timestamp } = Logger.formatStructured.log(options)
  const words = (Array.isArray(message) ? message : [message]).map(String).join(" ")
  process.stderr.write(`${JSON.stringify({ time: timestamp, level, message: words, ...annotations, cause })}\n`)
})

/** Writes the log as JSON. */
export const layer = Logger.layer([logger])
