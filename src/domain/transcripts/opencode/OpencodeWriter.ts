/**
 * Writes the document that `opencode import` takes in: the session, and what the agent sees of it as messages with their parts.
 * opencode puts it into its own database.
 */

import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  isThought,
  outputText,
  type Part
} from "../../content/Content.ts"
import { type Draft, placeKey } from "../../conversation/Conversation.ts"
import { foreignNote, missingResponse } from "../../conversation/Projection.ts"
import { isJson, type Json } from "../../text/JsonObject.ts"
import { type NativeCalls, nativeCalls, nothingInPlace, unheldKind } from "../CompactionLayout.ts"
import { isBareCommand, promptTitle, snapshotTitle } from "../PromptTitle.ts"
import { Skipped } from "../Skipped.ts"
import { visibleAtEnd, type Writer } from "../Transcript.ts"
import { callIdOf, clock, providerOf } from "../WrittenRecords.ts"

/** The version of opencode whose form this is. */
const version = "1.18.33"

/** opencode asks for another model where it does not know this one. */
const modelOf = (model = "unknown") => ({ providerID: providerOf(model), modelID: model })

const noTokens = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }

/** Returns a part of the user as opencode's; undefined for content that it has no part for. */
const userPart = (part: Part): Json | undefined => {
  if (isText(part)) return { type: "text", text: part.text }
  const { data, mimeType } = part.inlineData ?? {}
  return data === undefined || mimeType === undefined
    ? undefined
    : { type: "file", mime: mimeType, url: `data:${mimeType};base64,${data}` }
}

const resultText = (part: Part): string => {
  const response = part.functionResponse?.response
  return outputText(part) ?? JSON.stringify(response) ?? ""
}

/** Returns a call with its result. A call that never got one says so: a model's API refuses it otherwise. */
const toolPart = (call: Part, callID: string, result: Part | undefined, at: number): Json => {
  const { args, name = "unknown" } = call.functionCall ?? {}
  const answer = result ?? missingResponse({ name })
  const about = { input: isJson(args) ? args : {}, time: { start: at, end: at } }
  const state = isErrorResponse(answer)
    ? { status: "error", ...about, error: resultText(answer) }
    : { status: "completed", ...about, output: resultText(answer), title: name, metadata: {} }
  return { type: "tool", callID, tool: name, state }
}

const isEmptyText = (part: Json): boolean => part.type === "text" && part.text === ""

/** Returns the result of each call, by the call's id. */
const resultsOf = (contents: ReadonlyArray<Content>, calls: NativeCalls): ReadonlyMap<string, Part> => {
  const results = new Map<string, Part>()
  for (const [item, { parts }] of contents.entries()) {
    for (const [index, part] of parts.entries()) {
      const call = isResponse(part) ? calls.get(placeKey({ item, part: index })) : undefined
      if (call !== undefined) results.set(call.id, part)
    }
  }
  return results
}

/** Makes ids of the session's and of the time, in order, as opencode's are. */
const idsOf = (session: string, started: number) => {
  const suffix = session.replaceAll(/[^0-9a-zA-Z]/g, "").slice(-14)
  let made = 0
  return (kind: "msg" | "prt"): string => {
    made += 1
    return `${kind}_${(BigInt(Math.floor(started)) * 4_096n + BigInt(made)).toString(16).slice(-12).padStart(12, "0")}${suffix}`
  }
}

/** Writes one document, a line. */
export const writeOpencode: Writer = function* (transcript) {
  const sessionID = transcript.session ?? "ses_palimpsest"
  const drafts = visibleAtEnd(transcript.steps)
  const contents = drafts.map(({ content }) => content)
  // A result stands beside its call, however late it came.
  const calls = yield* nativeCalls(contents, (id) => id !== "", callIdOf(sessionID), true)
  const results = resultsOf(contents, calls)
  const time = clock(transcript.steps)
  const started = time.now
  const idOf = idsOf(sessionID, started)
  const written: Array<{ readonly info: Json; readonly parts: ReadonlyArray<Json> }> = []
  const unheld = new Skipped()
  let title = ""
  let lastQuestion: string | undefined

  const user = (draft: Draft, item: number, at: number): void => {
    const { author, content } = draft
    const others = content.parts.filter((part, index) => {
      if (isResponse(part) && part.functionResponse.parts !== undefined) unheld.add("media in results")
      return !isResponse(part) || !calls.has(placeKey({ item, part: index }))
    })
    const parts = held("user", others, userPart)
    if (parts.length === 0) return
    if (title === "" || isBareCommand(title)) {
      const titles = others.flatMap(({ text = "" }) => (author === undefined ? promptTitle : snapshotTitle)(text) || [])
      title = titles.find((one) => !isBareCommand(one)) ?? title
    }
    const note = foreignNote(draft)
    const all = note === undefined ? parts : [{ type: "text", text: note }, ...parts]
    question(author === undefined ? all : all.map((part) => ({ ...part, synthetic: true })), at)
  }

  const model = (draft: Draft, item: number, at: number): void => {
    if (lastQuestion === undefined) question([{ type: "text", text: nothingInPlace, synthetic: true }], at)
    const parts = held("model", draft.content.parts, (part, index) => {
      const call = calls.get(placeKey({ item, part: index }))
      if (call !== undefined) return toolPart(part, call.id, results.get(call.id), at)
      if (isThought(part)) return { type: "reasoning", text: part.text ?? "", time: { start: at, end: at } }
      return isText(part) ? { type: "text", text: part.text } : undefined
    })
    if (parts.length === 0) return
    const { cwd = "" } = transcript
    const info = {
      role: "assistant",
      parentID: lastQuestion,
      mode: "build",
      agent: "build",
      path: { cwd, root: cwd },
      cost: 0,
      tokens: noTokens,
      ...modelOf(draft.model ?? transcript.model),
      time: { created: at, completed: at },
      finish: draft.content.parts.some(isCall) ? "tool-calls" : "stop"
    }
    add(info, parts)
  }

  const question = (parts: ReadonlyArray<Json>, at: number): void => {
    const info = { role: "user", time: { created: at }, agent: "build", model: modelOf(transcript.model) }
    lastQuestion = add(info, parts)
  }

  const held = (
    role: Content["role"],
    parts: ReadonlyArray<Part>,
    made: (part: Part, index: number) => Json | undefined
  ): ReadonlyArray<Json> =>
    parts.flatMap((part, index) => {
      const own = made(part, index)
      if (own === undefined) unheld.add(unheldKind(role, part))
      return own === undefined || isEmptyText(own) ? [] : [own]
    })

  const add = (info: Json, parts: ReadonlyArray<Json>): string => {
    const messageID = idOf("msg")
    written.push({
      info: { id: messageID, sessionID, ...info },
      parts: parts.map((part) => ({ id: idOf("prt"), sessionID, messageID, ...part }))
    })
    return messageID
  }

  for (const [item, draft] of drafts.entries()) {
    yield
    const write = draft.content.role === "user" ? user : model
    write(draft, item, time.at(draft))
  }
  const info = {
    id: sessionID,
    slug: "palimpsest",
    projectID: "global",
    directory: transcript.cwd ?? "",
    title: title === "" ? "Session carried over" : title,
    version,
    time: { created: started, updated: time.now }
  }
  return { lines: [JSON.stringify({ info, messages: written })], unheld: unheld.counts }
}
