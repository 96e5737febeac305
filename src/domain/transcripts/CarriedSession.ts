/** A session that is carried over to an agent: what of it the agent's own file holds, where that lies, and how to go on. */

import type { Part } from "../content/Content.ts"
import { append, empty, type Entry, itemParts, type ViewItem, view } from "../conversation/Conversation.ts"
import { emptySession, type Session } from "../session/Session.ts"
import { shellWord } from "../text/ShellWord.ts"
import type { AgentName } from "./AgentFolders.ts"

/** An agent that a session can be written for. */
export type WritableAgent = Exclude<AgentName, "palimpsest">

/** Characters of the base64 text of an image or another file from which it is left out of an agent's file. */
const maxMediaChars = 1_000_000

const isHeavy = (part: Part): boolean => (part.inlineData?.data?.length ?? 0) > maxMediaChars

const shownPart = (part: Part, handle: string | undefined): Part => {
  const data = part.inlineData
  if (data === undefined || !isHeavy(part)) return part
  const size = `${(((data.data?.length ?? 0) * 3) / 4e6).toFixed(1)} MB`
  return {
    text: `[${data.mimeType ?? "file"}, ${size}, left out${handle === undefined ? "" : `; kept under ${handle}`}]`
  }
}

/**
 * Returns an entry with its parts as the view shows them. Its exact texts stay in the log beside the file. Without the recorded
 * usage: agents take it for the size of the conversation, and would compress it at once.
 */
const shownEntry = (item: ViewItem): Entry => {
  const { usage: _usage, ...entry } = item.entry
  const parts = itemParts(item)
  if (item.shortened.size === 0 && !parts.some(isHeavy)) return entry
  const { bounded: _bounded, source: _source, ...rest } = entry
  return { ...rest, content: { ...rest.content, parts: parts.map((part, at) => shownPart(part, entry.handles[at])) } }
}

/** Returns the session that an agent's file holds: the view alone, as messages, in another folder and under a new id. */
export const carriedSession = (
  session: Session,
  format: WritableAgent,
  { folder, id }: Pick<CarriedPlace, "folder" | "id">
): Session => {
  const { started } = session
  return {
    ...emptySession,
    started:
      started === undefined
        ? undefined
        : { ...started, session: id, cwd: folder, importedFrom: { format, session: id } },
    model: session.model,
    conversation: view(session.conversation).reduce(
      (conversation, item) => append(conversation, shownEntry(item)),
      empty
    )
  }
}

/** What the place of a file depends on. */
export interface CarriedPlace {
  readonly id: string
  /** The folder in which the session goes on. */
  readonly folder: string
  /** An ISO 8601 time. */
  readonly at: string
}

/** Returns the name of an agent's session file. `extension`: that of the original, where the agent has two. */
export const carriedName = (agent: WritableAgent, { at, id }: CarriedPlace, extension = ".jsonl"): string => {
  switch (agent) {
    case "claude":
      return `${id}.jsonl`
    case "codex":
      return `rollout-${at.slice(0, 19).replaceAll(":", "-")}-${id}.jsonl`
    case "gemini":
      return `session-${at.slice(0, 16).replaceAll(":", "-")}-${id.slice(0, 8)}${extension === ".json" ? ".json" : ".jsonl"}`
    case "opencode":
      return `${id}.json`
    case "pi":
      return `${at.replaceAll(/[:.]/g, "-")}_${id}.jsonl`
  }
}

/** An agent that finds a session by the place of its file. opencode takes one in from a file that lies anywhere. */
export type FileAgent = Exclude<WritableAgent, "opencode">

/** Returns the id of a session in the form of its agent. */
export const carriedId = (agent: WritableAgent, uuid: string): string =>
  agent === "opencode" ? `ses_${uuid.replaceAll("-", "")}` : uuid

/** Returns the folder below an agent's root in which it looks for sessions of a folder; undefined when a file of the agent's decides it. */
export const carriedFolder = (agent: FileAgent, { at, folder }: CarriedPlace): string | undefined => {
  switch (agent) {
    case "claude":
      return folder.replaceAll(/[^a-zA-Z0-9]/g, "-")
    case "codex":
      return at.slice(0, 10).replaceAll("-", "/")
    case "gemini":
      return undefined
    case "pi":
      return `--${folder.replace(/^[/\\]/, "").replaceAll(/[/\\:]/g, "-")}--`
  }
}

/** Returns the command with which a person goes on. */
export const resumeCommand = (agent: WritableAgent, { folder, id }: CarriedPlace, file: string): string => {
  const command = {
    claude: `claude --resume ${id}`,
    codex: `codex resume ${id}`,
    gemini: `gemini --resume ${id}`,
    opencode: `opencode import ${shellWord(file)} && opencode --session ${id}`,
    pi: `pi --session ${shellWord(file)}`
  }[agent]
  return `cd ${shellWord(folder)} && ${command}`
}
