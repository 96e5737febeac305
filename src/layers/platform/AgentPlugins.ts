import { Effect } from "effect"
import { readFile } from "node:fs/promises"

/** Reads this project's plugins for other agents, from `integrations` or from beside the built program. */

/** An agent into whose folder a plugin is written. */
export type PluginAgent = "pi" | "opencode"

const read = (place: string) => Effect.tryPromise(() => readFile(new URL(place, import.meta.url), "utf8"))

/** Reads the plugin for an agent. */
export const pluginText = (agent: PluginAgent): Effect.Effect<string> =>
  read(`${agent}-plugin.mjs`).pipe(
    Effect.catch(() => read(`../../../integrations/${agent}/palimpsest.js`)),
    Effect.orDie
  )
