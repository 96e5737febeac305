import type { FileEdit } from "./InstalledFile.ts"
import { bareCommand, type OwnCommand } from "./OwnCommand.ts"

/** The file from which an agent loads our plugin. */

/** An agent that loads a plugin of this program. */
export type PluginAgent = "pi" | "opencode"

const files: Readonly<Record<PluginAgent, string>> = {
  pi: ".pi/extensions/palimpsest.js",
  opencode: ".opencode/plugins/palimpsest.js"
}

/** Whether an agent loads a plugin of this program. */
export const isPlugged = (agent: string): agent is PluginAgent => agent in files

/** The path of an agent's plugin below the working folder. */
export const pluginFile = (agent: PluginAgent): string => files[agent]

/** The line of a plugin with the words that start this program. */
const commandLine = /^const command = .*$/m

const started = (plugin: string, command: OwnCommand): string =>
  plugin.replace(commandLine, () => `const command = [${command.map((word) => JSON.stringify(word)).join(", ")}]`)

/** Our plugin, which starts the program by `command`. A file that differs in anything else is the user's own. */
export const pluginEdit = (plugin: string, command: OwnCommand): FileEdit => {
  const ours = started(plugin, command)
  const isOurs = (text: string): boolean => started(text, bareCommand) === started(plugin, bareCommand)
  return {
    isRest: (rest, text) => rest === "" || rest === text,
    isWholeFile: true,
    containers: [],
    add: (text) => {
      if (text === ours) return { _tag: "Unchanged" }
      if (text !== "" && !isOurs(text)) return { _tag: "Foreign", what: "another plugin" }
      return { _tag: "Written", text: ours }
    },
    remove: (text) => {
      if (text === "") return { _tag: "Unchanged" }
      return isOurs(text) ? { _tag: "Written", text: "" } : { _tag: "Foreign", what: "another plugin" }
    }
  }
}
