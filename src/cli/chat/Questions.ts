/** The questions that the chat asks at the terminal: for the approval of a call, and on behalf of the model. */

import { Effect, Predicate } from "effect"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { type Answer, canPersist, shellTool } from "../../domain/tools/Approval.ts"
import { numberedDiff } from "../../domain/tools/FileDiff.ts"
import type { ChatTerminal, Closed, Inquiry, Option, Reading } from "../../services/terminal/ChatTerminal.ts"
import type { ApprovalQuestion } from "../../services/tools/Approval.ts"
import type { UserQuestion } from "../../services/tools/UserPrompt.ts"
import { truncate } from "../output/Columns.ts"
import * as Output from "../output/Output.ts"
import { detailLines, firstLines, legible, colouredDiffLine, diffLanguage, diffLines } from "../output/ToolCallText.ts"

/** Lines of a diff or command that are shown at first. The user can ask for the rest. */
const maxDetailLines = 30

const answer = <A>(value: A): Reading<A> => ({ _tag: "Answer", value })

/** Parses the answer to an approval. A reason for the model may follow `no`. */
const parseAnswer = (line: string, canGrant: boolean, canKeep: boolean): Answer | undefined => {
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

/** The text shown for an answer that is not understood: the answer and the valid keys. */
export const notUnderstood = (line: string, keys: ReadonlyArray<string>): string => {
  const shown = printableLine(line)
  const expected = `type ${keys.slice(0, -1).join(", ")} or ${keys.at(-1) ?? ""}`
  return shown === ""
    ? `The answer is empty: ${expected}.\n`
    : `"${truncate(shown, maxQuoteColumns)}" is not an answer; ${expected}.\n`
}

/** Maximum columns of a quoted answer. */
const maxQuoteColumns = 40

const menuText = (options: ReadonlyArray<Option>, style: Output.Style): string =>
  options.map(([letter, meaning]) => `${style.bold(letter)}  ${meaning}\n`).join("")

/** A question and its menu. `head`: its lines. */
const menu = (head: string, options: ReadonlyArray<Option>, hint: string, style: Output.Style) => ({
  text: `${head}${menuText(options, style)}`,
  detail: { head, lines: [], options, hint }
})

/** A question that is answered with yes or no. An empty line is what Escape stands for, if it stands for an answer. */
export const yesNoInquiry = (
  head: string,
  { hint, no, yes }: { readonly yes: string; readonly no: string; readonly hint?: string },
  { escape, prompt, style }: { readonly prompt: string; readonly escape?: "n"; readonly style: Output.Style }
): Inquiry<boolean> => ({
  ...menu(
    head,
    [
      ["y", yes],
      ["n", no]
    ],
    hint ?? cancels,
    style
  ),
  prompt,
  keys: ["y", "n"],
  escape,
  read: (line) => {
    const said = line === "" ? (escape ?? "") : line
    return /^(?:y|yes|n|no)$/i.test(said)
      ? answer(/^y/i.test(said))
      : { _tag: "Again", text: notUnderstood(said, ["y", "n"]) }
  }
})

/** What Escape does to most questions. */
const cancels = "Esc cancels the turn"

/** Questions about a plan instead of a call. */
const planQuestions: Readonly<Record<string, { readonly question: string; readonly options: ReadonlyArray<Option> }>> =
  {
    enter_plan_mode: {
      question: "Plan first? Nothing is changed until you approve the plan.",
      options: [
        ["y", "yes, plan first"],
        ["n", "no, because …"]
      ]
    },
    exit_plan_mode: {
      question: "Carry out this plan?",
      options: [
        ["y", "yes"],
        ["s", "yes, and edits of files run without asking"],
        ["n", "no, change this: …"]
      ]
    }
  }

/** The answers to a call. What a grant covers is said once. */
const callOptions = (
  { covers, edits }: ApprovalQuestion,
  canGrant: boolean,
  canKeep: boolean
): ReadonlyArray<Option> => [
  ["y", "yes, once"],
  ...(canGrant ? [["s", `yes, in this session: ${legible(covers)}`] as const] : []),
  ...(canKeep ? [["a", "yes, always here: the same in every session in this folder"] as const] : []),
  ...(edits === undefined ? [] : [["e", `edit the ${edits.argument} first`] as const]),
  ["n", "no, because …"]
]

/** What is asked about a call, in one sentence. A command stands below the question. */
const questionOf = ({ kind, title, tool }: ApprovalQuestion): string => {
  const subject = legible(title.startsWith(`${tool} `) ? title.slice(tool.length + 1) : title)
  if (tool === shellTool) return "Run this command?"
  switch (kind) {
    case "edit":
      return `Change ${subject}?`
    case "fetch":
      return `Fetch ${subject}?`
    default:
      return `Allow ${legible(title)}?`
  }
}

/**
 * The question that asks for an approval: the agent and the call, the diff or command, and a menu of answers. `main` is the
 * agent of the chat.
 */
export const approvalInquiry = (call: ApprovalQuestion, main: string, style: Output.Style): Inquiry<Answer> => {
  const { agent, args, because, detail, edits, grants, tool } = call
  const canGrant = grants.length > 0
  const own = planQuestions[tool]
  const canKeep = canGrant && own === undefined && grants.every(canPersist)
  const who = agent === main ? "" : ` (${printableLine(agent)})`
  const question = own?.question ?? questionOf(call)
  // The question about an edit names its file.
  const all = call.kind === "edit" ? diffLines(detail) : detailLines(detail)
  const lines = all.length === 1 && question.endsWith(` ${all[0] ?? ""}?`) ? [] : all
  const shown = firstLines(lines, maxDetailLines)
  const isCut = shown.length < lines.length
  // A plan contains lists; their markers are not diff signs.
  const paint = (line: string) => `  ${tool === "exit_plan_mode" ? line : colouredDiffLine(line, style)}\n`
  const options = own?.options ?? callOptions(call, canGrant, canKeep)
  const purpose = tool === shellTool && Predicate.isObject(args) && "description" in args ? args.description : ""
  const why = [
    ...(because === undefined ? [] : [`  Reason: ${printableLine(because)}.\n`]),
    ...(typeof purpose === "string" && purpose !== "" ? [`  ${style.dim(`Purpose: ${printableLine(purpose)}`)}\n`] : [])
  ].join("")
  const keys = options.map(([letter]) => letter)
  const changed = call.kind === "edit" ? numberedDiff(all) : []
  const count = (wanted: string) => changed.filter(({ kind }) => kind === wanted).length
  const size = changed.length < 2 ? "" : style.dim(` +${count("added")} −${count("removed")}`)
  const heading = `${style.bold(`${question}${who}`)}${size}\n`
  const wholeMenu = menuText(isCut ? [...options, ["v", "view all of it"]] : options, style)
  const inquiry: Inquiry<Answer> = {
    text: `${heading}${why}${shown.map(paint).join("")}${wholeMenu}`,
    detail: {
      head: `${heading}${why}`,
      lines:
        tool === "exit_plan_mode" || tool === shellTool ? lines : lines.map((line) => colouredDiffLine(line, style)),
      options,
      hint: cancels,
      language: edits === undefined ? diffLanguage(detail) : undefined,
      code: tool === shellTool ? "bash" : undefined
    },
    prompt: "allow? ",
    keys: [...keys.filter((key) => key !== "n"), ...(isCut ? ["v"] : [])],
    opens: { n: reasonInquiry },
    read: (line) => {
      const decision = parseAnswer(line, canGrant, canKeep)
      if (decision !== undefined) return answer(decision)
      // The heading has left the screen when all of a long diff was shown.
      if (isCut && line === "v") return { _tag: "Again", text: `${lines.map(paint).join("")}${heading}${wholeMenu}` }
      if (edits !== undefined && /^e(?:dit)?$/i.test(line)) {
        return { _tag: "Then", inquiry: editInquiry(edits, inquiry, style) }
      }
      return { _tag: "Again", text: notUnderstood(line, isCut ? [...keys, "v"] : keys) }
    }
  }
  return inquiry
}

/** The question for the reason of a no. An empty line is a no without a reason. */
const reasonInquiry: Inquiry<Answer> = {
  text: "",
  prompt: "no, because: ",
  // The letter that opened it may be the first of the word "no".
  read: (line) => answer({ _tag: "No", words: line.replace(/^o(?:[\s,:.;]+|$)/, "") })
}

/** The question for the text that runs instead. An empty line goes back to the question of the call. */
const editInquiry = (
  { argument, text }: NonNullable<ApprovalQuestion["edits"]>,
  back: Inquiry<Answer>,
  style: Output.Style
): Inquiry<Answer> => ({
  text: `${style.dim(`Enter runs the ${argument} as you leave it; an empty line goes back`)}\n`,
  prompt: `${argument}: `,
  fill: text,
  read: (line) => (line === "" ? { _tag: "Then", inquiry: back } : answer({ _tag: "Edited", text: line }))
})

/** Yields twice, so that pending events are shown before the question. */
const afterEvents = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/** Asks for approval at this terminal. Without an interactive user the answer is no. */
export const askApproval =
  (terminal: ChatTerminal["Service"], main: string) =>
  (question: ApprovalQuestion): Effect.Effect<Answer> => {
    const style = terminal.canColor ? Output.coloured : Output.plain
    return afterEvents.pipe(
      Effect.andThen(terminal.inquire(approvalInquiry(question, main, style))),
      Effect.catchTag("Closed", () => Effect.succeed<Answer>({ _tag: "No", words: "" }))
    )
  }

/** Returns the labels of the choices that a line of numbers selects; undefined when the line is an answer in words. */
const chosenLabels = ({ choices, several }: UserQuestion, line: string): string | undefined => {
  if (!/^\d+(?:[\s,]+\d+)*$/.test(line)) return undefined
  const numbers = line.split(/[\s,]+/).map(Number)
  if (numbers.length > 1 && !several) return undefined
  const labels = numbers.map((number) => choices[number - 1]?.label)
  return labels.every((label) => label !== undefined) ? [...new Set(labels)].join(", ") : undefined
}

/** The question that a model asks. The user selects choices by their numbers or answers in words. */
export const questionInquiry = (question: UserQuestion, style: Output.Style): Inquiry<string> => {
  const { choices, header, several, text } = question
  const about = header === undefined ? "" : `${printableLine(header)}: `
  const options = choices.map(({ description, label }, index): Option => {
    const means = description === undefined ? "" : style.dim(` · ${printableLine(description)}`)
    return [String(index + 1), `${printableLine(label)}${means}`]
  })
  const how =
    choices.length === 0 ? "your answer" : several ? "numbers, or your own words" : "a number, or your own words"
  return {
    ...menu(`${style.bold(`${about}${printableLine(text)}`)} ${style.dim(`(${how})`)}\n`, options, "", style),
    prompt: "? ",
    keys: several || choices.length > 9 ? [] : options.map(([letter]) => letter),
    read: (line) => {
      if (line === "") return { _tag: "Again", text: `The answer is empty: type ${how}.\n` }
      return answer(choices.length === 0 ? line : (chosenLabels(question, line) ?? line))
    }
  }
}

/** Asks the model's question at this terminal. */
export const askQuestion =
  (terminal: ChatTerminal["Service"]) =>
  (question: UserQuestion): Effect.Effect<string, Closed> =>
    Effect.andThen(
      afterEvents,
      terminal.inquire(questionInquiry(question, terminal.canColor ? Output.coloured : Output.plain))
    )

/** Asks whether files that do not fit may be sent shortened. Without an interactive user they are not. */
export const askShorten =
  (terminal: ChatTerminal["Service"]) =>
  (sizes: string): Effect.Effect<boolean> => {
    const style = terminal.canColor ? Output.coloured : Output.plain
    const head = `${style.bold(`This does not fit: ${printableLine(sizes)}`)}\n`
    const answers = { yes: "send what fits of each; all of it can be recalled", no: "send nothing" }
    return afterEvents.pipe(
      Effect.andThen(terminal.inquire(yesNoInquiry(head, answers, { prompt: "shorten? ", style }))),
      Effect.catchTag("Closed", () => Effect.succeed(false))
    )
  }
