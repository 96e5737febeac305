import type { Content, Part } from "../../src/domain/content/Content.ts"
import type { Draft } from "../../src/domain/conversation/Conversation.ts"
import * as Work from "../../src/domain/text/SlicedWork.ts"
import { isProblem, type Problem, problemText } from "../../src/domain/transcripts/Problem.ts"
import type { LineReader, Transcript } from "../../src/domain/transcripts/Transcript.ts"

/** Helpers for the tests of readers: lines in, a transcript or a problem out, and a short form of it. */

/** Reads lines, up to the first invalid one. */
export const reading =
  (reader: () => LineReader) =>
  (lines: ReadonlyArray<string>): Transcript | Problem => {
    const one = reader()
    for (const [index, text] of lines.entries()) {
      const problem = one.line(JSON.parse(text), text, index + 1)
      if (problem !== undefined) return problem
    }
    return Work.runSync(one.end())
  }

/** The transcript; a problem is a failure of the test. */
export const ok = (value: Transcript | Problem): Transcript => {
  if (isProblem(value)) throw new Error(`line ${value.line}: ${problemText(value)}`)
  return value
}

/** The problem; a transcript is a failure of the test. */
export const bad = (value: Transcript | Problem): Problem => {
  if (!isProblem(value)) throw new Error("expected a problem")
  return value
}

/** All messages, including those that compactions inserted. */
export const drafts = ({ steps }: Transcript): ReadonlyArray<Draft> =>
  steps.flatMap((step) => (step._tag === "Message" ? [step.draft] : step.insert))

export const contents = (transcript: Transcript): ReadonlyArray<Content> =>
  drafts(transcript).map((draft) => draft.content)

/** `u1 m2 C`: roles with numbers of parts, C a compaction. */
export const shape = ({ steps }: Transcript): string =>
  steps
    .map((step) =>
      step._tag === "Compaction" ? "C" : `${step.draft.content.role.charAt(0)}${step.draft.content.parts.length}`
    )
    .join(" ")

const partText = (part: Part): string => {
  const signed = part.thoughtSignature === undefined ? "" : `^${part.thoughtSignature}`
  if (part.thought === true) return `~${part.text}${signed}`
  if (part.text !== undefined) return `${part.text}${signed}`
  const { functionCall: call, functionResponse: answer } = part
  if (call !== undefined) {
    const args = call.args === undefined ? "" : ` ${JSON.stringify(call.args)}`
    return `${call.name}(${call.id ?? ""}${args})${signed}`
  }
  return answer === undefined
    ? JSON.stringify(part)
    : `${answer.name ?? "?"}[${answer.id ?? ""}] ${JSON.stringify(answer.response)}`
}

/** A message as `user: words | name(id args)`, where thoughts begin with `~`, signatures with `^`, and results are `name[id] response`. */
export const messageText = ({ author, content }: Draft): string =>
  `${author ?? content.role}: ${content.parts.map(partText).join(" | ")}`

/** Every step on a line of its own; a compaction says who asked for it, its tokens, and from which message on it kept. */
export const told = ({ steps }: Transcript): ReadonlyArray<string> =>
  steps.flatMap((step) =>
    step._tag === "Message"
      ? [messageText(step.draft)]
      : [
          `compaction (${step.trigger}, ${step.tokensBefore ?? "?"}), kept from ${step.keptFrom ?? "nothing"}`,
          ...step.insert.map((draft) => `+ ${messageText(draft)}`)
        ]
  )
