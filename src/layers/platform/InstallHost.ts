/** What `install` uses of this machine: its folders, how this process was started, and the plugins. */

import { Effect } from "effect"
import { readFile } from "node:fs/promises"
import { argv, env, execPath } from "node:process"
import type { PluginAgent } from "../../domain/settings/AgentFiles.ts"
import { homeFolder, userHome } from "./HomeFolder.ts"

const read = (place: string) => Effect.tryPromise(() => readFile(new URL(place, import.meta.url), "utf8"))

/** Reads the plugin for an agent. */
const pluginText = (agent: PluginAgent) =>
  read(`${agent}-plugin.mjs`).pipe(
    Effect.catch(() => read(`../../../integrations/${agent}/palimpsest.js`)),
    Effect.orDie
  )

/** This machine, as `install` sees it. */
export const host = {
  home: userHome,
  data: homeFolder,
  start: { node: execPath, file: argv[1] ?? "", searchPath: env["PATH"] ?? env["Path"] ?? "" },
  plugin: pluginText
}
