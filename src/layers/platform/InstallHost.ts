import { env, execPath, argv } from "node:process"
import { pluginText } from "./AgentPlugins.ts"
import { homeFolder, userHome } from "./HomeFolder.ts"

/** What `install` uses of this machine: its folders, how this process was started, and the plugins. */
export const host = {
  home: userHome,
  data: homeFolder,
  start: { node: execPath, file: argv[1] ?? "", searchPath: env["PATH"] ?? env["Path"] ?? "" },
  plugin: pluginText
}
