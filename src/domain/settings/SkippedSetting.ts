/** The keys of Gemini CLI's settings that are not translated, and why. */

/** A path in a JSON document: names and indices, outermost first. */
export type JsonPath = ReadonlyArray<string | number>

/** A path as written: `hooks.AfterTool[0].hooks[1]`. */
export const pathText = (path: JsonPath): string =>
  path.reduce<string>(
    (text, one) => (typeof one === "number" ? `${text}[${one}]` : text === "" ? one : `${text}.${one}`),
    ""
  )

/** Why a key is not translated, in words, in one line. */
export interface SkipReason {
  readonly why: string
  /** Whether its value is not of the expected kind. */
  readonly isUnfit?: boolean
}

/** A key that is not translated, and why. */
export interface SkippedKey extends SkipReason {
  readonly from: JsonPath
}

/** The reason for a key that does not exist here. */
export const unknownReason = "there is no such setting"

const approvalReason = "approvals are not imported; set approve and allowed"
const toolsReason = "which tools there are cannot be set here"
const appearanceReason = "the look of Gemini CLI at the terminal is not supported"

/** Why a key has no counterpart, by path. The longest matching path wins. */
const untranslated: Readonly<Record<string, string>> = {
  $schema: "is for editors only",
  "tools.allowed": approvalReason,
  "tools.autoAccept": approvalReason,
  "tools.approvalMode": approvalReason,
  "general.defaultApprovalMode": approvalReason,
  allowedTools: approvalReason,
  autoAccept: approvalReason,
  security: approvalReason,
  policyPaths: approvalReason,
  "security.auth": "sign-in settings are not imported; set GEMINI_API_KEY",
  selectedAuthType: "sign-in settings are not imported; set GEMINI_API_KEY",
  "tools.core": toolsReason,
  "tools.exclude": toolsReason,
  coreTools: toolsReason,
  excludeTools: toolsReason,
  "tools.sandbox": "commands run without a sandbox",
  sandbox: "commands run without a sandbox",
  mcp: "all servers in mcpServers are used; remove those you do not want",
  allowMCPServers: "all servers in mcpServers are used; remove those you do not want",
  excludeMCPServers: "all servers in mcpServers are used; remove those you do not want",
  ui: appearanceReason,
  theme: appearanceReason,
  vimMode: appearanceReason,
  "general.vimMode": appearanceReason,
  "general.preferredEditor": appearanceReason,
  preferredEditor: appearanceReason,
  "general.sessionRetention": "is not supported; set maxAge and maxCount (sessions of the last day are always kept)",
  "general.checkpointing": "files are not restored; sessions are always kept",
  checkpointing: "files are not restored; sessions are always kept",
  "general.retryFetchErrors": "failed calls are always retried",
  "model.skipNextSpeakerCheck": "no model is asked who speaks next",
  skipNextSpeakerCheck: "no model is asked who speaks next",
  "hooksConfig.notifications": "hooks that run are not announced",
  "hooks.notifications": "hooks that run are not announced",
  "agents.overrides": "agents can only be switched on or off in the settings; the rest belongs in the agent's file",
  skills: "all skills are available",
  "telemetry.otlpProtocol": "only HTTP is supported",
  telemetry: "not supported in telemetry",
  privacy: "nothing is ever sent about how this program is used",
  usageStatisticsEnabled: "nothing is ever sent about how this program is used",
  contextManagement: "long conversations are compressed in another way here",
  experimental: "is an experiment of Gemini CLI",
  extensions: "extensions are not taken over",
  mcpServerCommand: "name the server in mcpServers"
}

/** The paths of keys that have no counterpart for a reason of their own. */
export const untranslatedPaths: ReadonlyArray<string> = Object.keys(untranslated)

/** Server keys without a counterpart. */
const untranslatedOfServers: Readonly<Record<string, string>> = {
  trust: "its tools ask like all others",
  includeTools: "all its tools are offered here, and ask before they run",
  excludeTools: "all its tools are offered here, and ask before they run",
  description: "servers are not described here"
}

/** Why a key has no counterpart. */
export const untranslatedText = (path: JsonPath): string => {
  const [root, , key] = path
  if (root === "mcpServers" && key !== undefined) {
    return untranslatedOfServers[key] ?? "such a server has nothing like it here"
  }
  for (let length = path.length; length > 0; length -= 1) {
    const text = pathText(path.slice(0, length))
    if (Object.hasOwn(untranslated, text)) return untranslated[text] ?? unknownReason
  }
  return unknownReason
}
