import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import type { PluginAgent } from "../../domain/settings/PluginFile.ts"

/** Reads this project's plugins for other agents, from `integrations` or from beside the built program. */

const read = (place: string) => Effect.tryPromise(() => readFile(new URL(place, import.meta.url), "utf8"))

/** Reads the plugin for an agent. */
export const pluginText = (agent: PluginAgent): Effect.Effect<string> =>
  read(`${agent}-plugin.mjs`).pipe(
    Effect.catch(() => read(`../../../integrations/${agent}/palimpsest.js`)),
    Effect.orDie
  )
