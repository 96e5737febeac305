import { Effect } from "effect"
import { type Answer, canLast } from "../../domain/Approval.ts"
import { printable } from "../../domain/Inspection.ts"
import type { Asked } from "../../services/Approval.ts"
import type { ChatTerminal, Closed, Inquiry, Reading } from "../../services/ChatTerminal.ts"
import type { PersonQuestion } from "../../services/Person.ts"
import { cut } from "../Columns.ts"
import * as Output from "../Output.ts"
import { detailLines, firstOf, legible, painted } from "./CallText.ts"

/** How a person at the terminal is asked: whether a call may run, and what a model wants to know. */

/** Lines of a diff or command that are shown at once; the rest is shown when it is wanted. */
const mostLines = 30

const answer = <A>(value: A): Reading<A> => ({ _tag: "Answer", value })

/** What is typed, and what it means. `no` may be followed by a word to the model. */
const meaning = (line: string, canGrant: boolean, canKeep: boolean): Answer | undefined => {
  const [, word = "", words = ""] = /^(\S+)\s*([^]*)$/.exec(line) ?? []
  switch (word.toLowerCase()) {
    case "y":
    case "yes":
    case "once":
      return words === "" ? { _tag: "Once" } : undefined
    case "s":
    case "session":
      return canGrant && words === "" ? { _tag: "Session" } : undefined
    case "a":
    case "always":
      return canKeep && words === "" ? { _tag: "Always" } : undefined
    case "n":
    case "no":
    case "n,":
    case "no,":
      return { _tag: "No", words }
    default:
      return undefined
  }
}

/** What is shown of an answer that cannot be understood: it, and the answers there are. */
const notUnderstood = (line: string, keys: ReadonlyArray<string>): string => {
  const shown = printable(line)
  const expected = `type ${keys.slice(0, -1).join(", ")} or ${keys.at(-1) ?? ""}`
  return shown === ""
    ? `Nothing was typed; ${expected}.\n`
    : `"${cut(shown, quoteWidth)}" is not understood; ${expected}.\n`
}

/** Columns of an answer that is quoted back. */
const quoteWidth = 40

/** Questions that are about a plan, not about a call. */
const planning: Readonly<Record<string, { readonly question: string; readonly options: ReadonlyArray<string> }>> = {
  enter_plan_mode: {
    question: "Shall it plan first? Nothing is changed until you approve the plan.",
    options: ["y plan first", "n no, go on without"]
  },
  exit_plan_mode: {
    question: "This is the plan. Shall it be carried out?",
    options: ["y yes", "s yes, and edits of files run without asking", "n no, and what should be different"]
  }
}

/** The question as it is shown: who wants what, the diff or command, and what may be answered. `main`: the agent one talks with. */
export const inquiryOf = (
  { agent, because, covers, detail, grants, title, tool }: Asked,
  main: string,
  style: Output.Style
): Inquiry<Answer> => {
  const canGrant = grants.length > 0
  const canKeep = canGrant && grants.every(canLast)
  const who = agent === main ? "" : ` (${printable(agent)})`
  const lines = detailLines(detail)
  const shown = firstOf(lines, mostLines)
  const isCut = shown.length < lines.length
  // A plan has lists; their signs are no changes.
  const paint = (line: string) => `  ${tool === "exit_plan_mode" ? line : painted(line, style)}\n`
  const own = planning[tool]
  const options = [
    ...(own?.options ?? [
      "y once",
      ...(canGrant ? [`s this session${canKeep ? ", a always" : ""}: ${legible(covers)}`] : []),
      "n no, and why if you like"
    ]),
    ...(isCut ? ["v view all"] : [])
  ].join(" · ")
  const said = `${style.dim(options)}\n`
  const why = because === undefined ? "" : `  Asked because ${printable(because)}.\n`
  // A grant that a plan's question does not offer is none of its answers.
  const keys = ["y", ...(canGrant ? (own === undefined && canKeep ? ["s", "a"] : ["s"]) : []), "n"]
  return {
    text: `${style.bold(own === undefined ? `May it run? ${legible(title)}${who}` : `${own.question}${who}`)}\n${why}${shown.map(paint).join("")}${said}`,
    prompt: "allow? ",
    read: (line) => {
      const meant = meaning(line, canGrant, canKeep)
      if (meant !== undefined) return answer(meant)
      if (isCut && line === "v") return { _tag: "Again", text: `${lines.map(paint).join("")}${said}` }
      return { _tag: "Again", text: `${notUnderstood(line, isCut ? [...keys, "v"] : keys)}${said}` }
    }
  }
}

/** What was said before is shown before: its events are on their way when the question comes. */
const afterEvents = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/** Asks at this terminal. Where nobody is left to ask, the answer is no. */
export const asking =
  (terminal: ChatTerminal["Service"], main: string) =>
  (asked: Asked): Effect.Effect<Answer> => {
    const style = terminal.canColor ? Output.coloured : Output.plain
    return afterEvents.pipe(
      Effect.andThen(terminal.inquire(inquiryOf(asked, main, style))),
      Effect.catchTag("Closed", () => Effect.succeed<Answer>({ _tag: "No", words: "" }))
    )
  }

/** The choices that a line of their numbers takes; undefined: it is an answer in words. */
const chosen = ({ choices, several }: PersonQuestion, line: string): string | undefined => {
  if (!/^\d+(?:[\s,]+\d+)*$/.test(line)) return undefined
  const numbers = line.split(/[\s,]+/).map(Number)
  if (numbers.length > 1 && !several) return undefined
  const labels = numbers.map((number) => choices[number - 1]?.label)
  return labels.every((label) => label !== undefined) ? [...new Set(labels)].join(", ") : undefined
}

/** A model's question as it is shown. Choices are taken by their numbers; any words are an answer too. */
export const questionOf = (question: PersonQuestion, style: Output.Style): Inquiry<string> => {
  const { choices, header, several, text } = question
  const about = header === undefined ? "" : `${printable(header)}: `
  const rows = choices.map(({ description, label }, index) => {
    const means = description === undefined ? "" : style.dim(` · ${printable(description)}`)
    return `  ${index + 1} ${printable(label)}${means}\n`
  })
  const how = choices.length === 0 ? "your answer" : several ? "numbers, or other words" : "a number, or other words"
  return {
    text: `${style.bold(`${about}${printable(text)}`)}\n${rows.join("")}${style.dim(how)}\n`,
    prompt: "? ",
    read: (line) => {
      if (line === "") return { _tag: "Again", text: `Nothing was typed; ${how}.\n` }
      return answer(choices.length === 0 ? line : (chosen(question, line) ?? line))
    }
  }
}

/** Asks the person at this terminal what a model wants to know. */
export const answering =
  (terminal: ChatTerminal["Service"]) =>
  (question: PersonQuestion): Effect.Effect<string, Closed> =>
    Effect.andThen(
      afterEvents,
      terminal.inquire(questionOf(question, terminal.canColor ? Output.coloured : Output.plain))
    )

/** Asks whether files that do not fit may be sent shortened; once nobody is there any more they are not. */
export const shortening =
  (terminal: ChatTerminal["Service"]) =>
  (sizes: string): Effect.Effect<boolean> => {
    const style = terminal.canColor ? Output.coloured : Output.plain
    const said = `${style.dim("y send what fits of each; the whole stays recallable · n send nothing")}\n`
    const inquiry: Inquiry<boolean> = {
      text: `${style.bold(`This does not fit: ${printable(sizes)}`)}\n${said}`,
      prompt: "shorten? ",
      read: (line) =>
        /^(?:y|yes)$/i.test(line)
          ? { _tag: "Answer", value: true }
          : /^(?:n|no)$/i.test(line)
            ? { _tag: "Answer", value: false }
            : { _tag: "Again", text: `${notUnderstood(line, ["y", "n"])}${said}` }
    }
    return afterEvents.pipe(
      Effect.andThen(terminal.inquire(inquiry)),
      Effect.catchTag("Closed", () => Effect.succeed(false))
    )
  }
