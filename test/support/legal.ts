import { type Content, isCall, isResponse, type Part } from "../../src/domain/content/Content.ts"

/**
 * Defines a legal conversation independently of the code under test, so that the code that makes conversations legal is not
 * checked by itself.
 */

/** Consecutive messages of one role. */
export interface Run {
  readonly role: string
  readonly parts: ReadonlyArray<Part>
  /** Its range in the list of messages. */
  readonly from: number
  readonly to: number
}

export const runsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  contents.forEach(({ parts, role }, index) => {
    const last = runs[runs.length - 1]
    if (last?.role === role) runs[runs.length - 1] = { ...last, parts: [...last.parts, ...parts], to: index }
    else runs.push({ role, parts, from: index, to: index })
  })
  return runs
}

const says = (part: Part): boolean => {
  const keys = Object.keys(part)
  return keys.length > 0 && !(keys.length === 1 && part.text === "")
}

/** Why the calls of one run and the responses of the next do not match. */
export const unanswered = (calls: ReadonlyArray<Part>, responses: ReadonlyArray<Part>): string | undefined => {
  const open = calls.filter(isCall).map((part) => part.functionCall)
  for (const { functionResponse } of responses.filter(isResponse)) {
    const { id, name } = functionResponse
    const byId = id === undefined ? -1 : open.findIndex((made) => made.id === id)
    const at = byId >= 0 ? byId : open.findIndex((made) => made.id === undefined && made.name === name)
    if (at < 0) return `a response to ${name} (${id}) answers no call`
    open.splice(at, 1)
  }
  const [left] = open
  return left === undefined ? undefined : `the call of ${left.name} (${left.id}) has no response`
}

/** Why a conversation is not legal; undefined when it is. Calls of the last messages may still wait for their responses. */
export const illegal = (contents: ReadonlyArray<Content>): string | undefined => {
  for (const [index, { parts, role }] of contents.entries()) {
    if (role !== "user" && role !== "model") return `message ${index} has the role ${String(role)}`
    if (parts.length === 0) return `message ${index} has no parts`
    if (!parts.every(says)) return `message ${index} has an empty part`
    if (role === "user" && parts.some(isCall)) return `message ${index}: a call by the user`
    if (role === "model" && parts.some(isResponse)) return `message ${index}: a response by the model`
  }
  const runs = runsOf(contents)
  for (const [index, { from, parts, role }] of runs.entries()) {
    if (role !== "user") continue
    const problem = unanswered(runs[index - 1]?.parts ?? [], parts)
    if (problem !== undefined) return `messages from ${from}: ${problem}`
  }
  return undefined
}
