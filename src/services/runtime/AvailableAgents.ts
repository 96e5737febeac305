import { Effect } from "effect"
import { unusableFileText } from "../../domain/agent/UnusableFile.ts"
import { type SettingsFile, withDefaults } from "../../domain/settings/Settings.ts"
import type { KnownAgent, KnownAgents } from "../agent/AgentDefinitions.ts"
import type { ExternalRunner } from "../agent/AgentRunner.ts"
import { message, type Notify } from "./RuntimeNotice.ts"
import { RuntimePlatform } from "./RuntimePlatform.ts"

/** The agent without its MCP servers, if it comes from the workspace: only the user may start those. */
const withoutServers = (agent: KnownAgent): KnownAgent =>
  agent.source === "project" && agent.definition.kind === "local" && Object.keys(agent.definition.mcpServers).length > 0
    ? { ...agent, definition: { ...agent.definition, mcpServers: {} } }
    : agent

/** Whether an agent of the workspace would get one of the user's keys: the author of the folder chose where it goes. */
const takesKey = ({ definition, source }: KnownAgent): boolean =>
  source === "project" && definition.kind === "remote" && definition.auth !== undefined

const isOffered =
  ({ agents = {} }: SettingsFile) =>
  ({ definition: { name } }: KnownAgent): boolean =>
    agents[name] !== false

/** Returns an agent of a file with the runner of the settings, where its definition names none. Built-in agents run inside. */
export const withRunner =
  (runner: "inside" | "process") =>
  (agent: KnownAgent): KnownAgent =>
    runner === "inside" || agent.file === undefined || agent.definition.kind !== "local"
      ? agent
      : { ...agent, definition: { ...agent.definition, runner } }

/** The agents that are offered in a folder, and the runners of those outside this process. */
export const availableAgents = Effect.fnUntraced(function* (
  root: string,
  isRootTrusted: boolean,
  settings: SettingsFile,
  notify: Notify
) {
  const platform = yield* RuntimePlatform
  const { all } = yield* platform.agents(root, isRootTrusted)
  const { agents: found, problems } = yield* all
  const offered = found.filter(isOffered(settings))
  const refused = offered.flatMap((agent) => {
    const { definition, file } = agent
    const where = `in your own agents only, not in ${file ?? "this folder"}`
    if (takesKey(agent)) return [`the agent ${definition.name} is sent a key ${where}; it is ignored`]
    if (withoutServers(agent) === agent) return []
    return [`the agent ${definition.name} starts MCP servers ${where}; it goes without`]
  })
  const lines = [...problems.map(unusableFileText), ...refused]
  yield* Effect.forEach(lines, (line) => notify(message(line)), { discard: true })
  const { subagents } = withDefaults(settings)
  const agents = offered
    .filter((agent) => !takesKey(agent))
    .map(withoutServers)
    .map(withRunner(subagents.runner))
  const definitions: KnownAgents = { agents, problems }
  const runners = new Map<string, ExternalRunner>()
  for (const agent of definitions.agents) {
    const runner = yield* platform.externalRunner(agent)
    if (runner !== undefined) runners.set(agent.definition.name, runner)
  }
  return { definitions, runners }
})

/** Agent definitions, and the runners of those that run outside this process, by name. */
export type AvailableAgents = Effect.Success<ReturnType<typeof availableAgents>>
