/** Where each agent keeps its sessions, and which of the files there is a session. */

import { Schema } from "effect"
import { isJson, jsonAt } from "../text/JsonObject.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"

/** An agent whose sessions are found on a machine. `palimpsest` is this program. */
export const AgentName = Schema.Literals(["claude", "codex", "gemini", "pi", "opencode", "palimpsest"])
export type AgentName = typeof AgentName.Type

/** What the folders of the agents depend on. */
export interface AgentPlaces {
  /** The user's home folder. */
  readonly home: string
  /** The environment variables. */
  readonly variables: Readonly<Record<string, string | undefined>>
  /** The folder of our own sessions. */
  readonly ownSessions: string
}

/** A folder below which an agent keeps sessions, or its database. */
export interface SessionRoot {
  readonly agent: AgentName
  readonly path: string
}

/** Returns where the agents keep their sessions, by their environment variables. None of the paths needs to exist. */
export const sessionRoots = ({ home, ownSessions, variables }: AgentPlaces): ReadonlyArray<SessionRoot> => {
  const variable = (name: string): string | undefined => {
    const value = variables[name]?.trim() ?? ""
    return value === "" ? undefined : value.replace(/^~(?=$|[/\\])/, home).replace(/(?<=.)[/\\]+$/, "")
  }
  const data = variable("XDG_DATA_HOME") ?? `${home}/.local/share`
  const configuration = variable("XDG_CONFIG_HOME") ?? `${home}/.config`
  const claude = variable("CLAUDE_CONFIG_DIR")
  const codex = variable("CODEX_HOME") ?? `${home}/.codex`
  const piSessions = variable("PI_CODING_AGENT_SESSION_DIR")
  const roots: ReadonlyArray<SessionRoot> = [
    ...(claude === undefined ? [`${home}/.claude`, `${configuration}/claude`] : [claude]).map((folder) => ({
      agent: "claude" as const,
      path: `${folder}/projects`
    })),
    { agent: "codex", path: `${codex}/sessions` },
    { agent: "codex", path: `${codex}/archived_sessions` },
    { agent: "gemini", path: `${variable("GEMINI_CLI_HOME") ?? home}/.gemini/tmp` },
    { agent: "pi", path: piSessions ?? `${variable("PI_CODING_AGENT_DIR") ?? `${home}/.pi/agent`}/sessions` },
    { agent: "opencode", path: variable("OPENCODE_DB") ?? `${data}/opencode/opencode.db` },
    { agent: "palimpsest", path: ownSessions }
  ]
  return roots.filter(({ path }, index) => roots.findIndex((root) => root.path === path) === index)
}

/** Returns the folders of Gemini CLI's projects, by the name of their folder of sessions, from its file `projects.json`. */
export const geminiProjects = (registry: string): ReadonlyMap<string, string> => {
  const value = parsedOrUndefined(registry)
  const projects = Object.entries(isJson(value) ? jsonAt(value, "projects") : {})
  return new Map(projects.flatMap(([folder, name]) => (typeof name === "string" ? [[name, folder] as const] : [])))
}

/** How many folders below its root an agent keeps session files. */
export const maxFolderDepth: Readonly<Record<AgentName, number>> = {
  claude: 3,
  codex: 3,
  gemini: 3,
  pi: 1,
  opencode: 0,
  palimpsest: 1
}

/** What the place of a file says about its session. */
export interface SessionPlace {
  /** The name of the session for its agent. */
  readonly id: string
  /** The session whose agent started this one, where the place says so. */
  readonly parent: string | undefined
  /** What the file is: a session, one of a subagent, or a large text that a session keeps beside its file. */
  readonly kind: "session" | "subagent" | "text"
}

const main = (id: string | undefined): SessionPlace | undefined =>
  id === undefined ? undefined : { id, parent: undefined, kind: "session" }

/** Returns what the path of a file below its root says, with forward slashes; undefined for a file that is no session. */
export const sessionPlace = (agent: AgentName, relative: string): SessionPlace | undefined => {
  switch (agent) {
    case "claude": {
      const [, parent, inner] = /^[^/]+\/([^/]+)\/subagents\/(?:[^/]+\/)?(agent-[^/]+)\.jsonl$/.exec(relative) ?? []
      if (inner !== undefined) return { id: inner, parent, kind: "subagent" }
      const [, owner, output] = /^[^/]+\/([^/]+)\/tool-results\/([^/]+)$/.exec(relative) ?? []
      if (output !== undefined) return { id: output, parent: owner, kind: "text" }
      const id = /^[^/]+\/([^/]+)\.jsonl$/.exec(relative)?.[1]
      return id?.startsWith("agent-") ? { id, parent: undefined, kind: "subagent" } : main(id)
    }
    case "codex": {
      const name = /(?:^|\/)rollout-([^/]+)\.jsonl$/.exec(relative)?.[1]
      // A session that went back goes on in a file of its own, whose name ends with an id of that file.
      const id = name === undefined ? undefined : /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:_[^_]+)?$/.exec(name)
      return main(id?.[1] ?? name)
    }
    case "gemini": {
      const [, parent, inner] = /^[^/]+\/chats\/([^/.]+)\/([^/]+)\.jsonl?$/.exec(relative) ?? []
      if (inner !== undefined) return { id: inner, parent, kind: "subagent" }
      return main(
        /^[^/]+\/chats\/(session-[^/]+)\.jsonl?$/.exec(relative)?.[1] ??
          /^[^/]+\/(checkpoint-[^/]+)\.json$/.exec(relative)?.[1]
      )
    }
    case "pi":
      return main(/^(?:[^/]+\/)?(?:[^/]*_)?([^/_]+)\.jsonl$/.exec(relative)?.[1])
    case "palimpsest": {
      const [, parent, hash] = /^([A-Za-z0-9_-]{1,64})\.jsonl\.blobs\/([a-z2-7]{20,})$/.exec(relative) ?? []
      if (hash !== undefined) return { id: hash, parent, kind: "text" }
      return main(/^([A-Za-z0-9_-]{1,64})\.jsonl$/.exec(relative)?.[1])
    }
    case "opencode":
      return undefined
  }
}

/**
 * Whether a session belongs to a folder: it was started there or below it. Paths are compared as they are written; backslashes and
 * a final separator make no difference.
 */
export const isInFolder = (sessionFolder: string, folder: string): boolean => {
  const plain = (path: string) => path.replaceAll("\\", "/").replace(/(?<=.)\/+$/, "")
  const inner = plain(sessionFolder)
  const outer = plain(folder)
  return inner === outer || inner.startsWith(outer.endsWith("/") ? outer : `${outer}/`)
}
