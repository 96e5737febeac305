import { Duration, Effect, Predicate } from "effect"
import { posix } from "node:path"
import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  outputText,
  type Part
} from "../../src/domain/content/Content.ts"
import type { RecordedTurn } from "../../src/domain/evaluation/Replay.ts"
import { type Call, type CallContext, type Tool, ToolFailure } from "../../src/services/tools/Tool.ts"

/**
 * Replays a recorded conversation as work for an agent: its prompts, the model's answers, and the files as they must have been
 * before, so that its calls can be carried out again.
 */

/** One user message and all answers that followed it. */
export interface Run {
  readonly prompt: ReadonlyArray<Part>
  readonly answers: ReadonlyArray<Content>
}

/** The runs of a recording, without tool results: those must come from tools. */
export const runsOf = (turns: ReadonlyArray<RecordedTurn>): ReadonlyArray<Run> => {
  const runs: Array<{ prompt: ReadonlyArray<Part>; answers: Array<Content> }> = []
  for (const { answer, message } of turns) {
    const last = runs[runs.length - 1]
    const goesOn = last?.answers[last.answers.length - 1]?.parts.some(isCall) === true && message.some(isResponse)
    if (goesOn && last !== undefined) last.answers.push(answer)
    else {
      const prompt = message.filter(isText)
      runs.push({ prompt: prompt.length === 0 ? [{ text: "Go on." }] : prompt, answers: [answer] })
    }
  }
  return runs
}

/** A recorded call and its recorded result. */
export interface RecordedCall {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** Undefined: the call has no result. */
  readonly answer: Part | undefined
}

/** All calls in order, with their results. */
export const callsOf = (contents: ReadonlyArray<Content>): ReadonlyArray<RecordedCall> => {
  const parts = contents.flatMap((content) => content.parts)
  const answers = new Map<string, Part>()
  for (const part of parts) {
    const id = part.functionResponse?.id
    if (id !== undefined && !answers.has(id)) answers.set(id, part)
  }
  return parts.filter(isCall).map(({ functionCall: { args, id = "", name } }) => ({
    id,
    name,
    args: Predicate.isObject(args) ? args : {},
    answer: answers.get(id)
  }))
}

/** The text of a recorded result, without reminders that its agent added. */
export const saidIn = (answer: Part | undefined): string | undefined => {
  if (answer === undefined) return undefined
  const plain = outputText(answer)
  const response: unknown = answer.functionResponse?.response
  const content: unknown = Predicate.isObject(response) ? response["content"] : undefined
  const joined =
    plain ??
    (Array.isArray(content) && content.every((item) => Predicate.isObject(item) && item["type"] === "text")
      ? content.map((item: unknown) => (Predicate.isObject(item) ? String(item["text"]) : "")).join("\n")
      : undefined)
  return joined?.replace(/\n*<system-reminder>[^]*?<\/system-reminder>\s*$/, "")
}

/** Whether a recorded call failed. */
export const failedThen = ({ answer }: RecordedCall): boolean =>
  answer !== undefined && (isErrorResponse(answer) || saidIn(answer)?.startsWith("<tool_use_error>") === true)

// --- the effect of a call on files -----------------------------------------------------------------------------------

/** A call that depends only on files, in terms that both agents share. Lines count from 1. */
export type FileCall =
  | { readonly _tag: "Read"; readonly path: string; readonly from: number; readonly limit: number | undefined }
  | { readonly _tag: "Write"; readonly path: string; readonly content: string }
  | {
      readonly _tag: "Edit"
      readonly path: string
      readonly old: string
      readonly new: string
      readonly all: boolean
    }

/** The folder that relative paths of a recording start from. */
export const root = "/workspace"

/** The file operation of a recorded call; undefined for other calls. */
export const fileCallOf = ({ args, name }: Pick<RecordedCall, "args" | "name">): FileCall | undefined => {
  const given = args["file_path"] ?? args["path"]
  if (typeof given !== "string") return undefined
  const path = posix.resolve(root, given)
  const word = (key: string): string => String(args[key] ?? "")
  switch (name) {
    case "Read":
    case "read":
      return {
        _tag: "Read",
        path,
        from: Math.max(1, Number(args["offset"] ?? 1)),
        limit: args["limit"] === undefined ? undefined : Number(args["limit"])
      }
    case "Write":
    case "write":
      return { _tag: "Write", path, content: word("content") }
    case "Edit":
      return { _tag: "Edit", path, old: word("old_string"), new: word("new_string"), all: args["replace_all"] === true }
    case "edit":
      return { _tag: "Edit", path, old: word("oldText"), new: word("newText"), all: false }
    default:
      return undefined
  }
}

/** The lines of a recorded read, the number of the first, and whether the file ended with them. */
export interface Shown {
  readonly from: number
  readonly lines: ReadonlyArray<string>
  readonly ends: boolean
}

const rest = /\n\n?(?:\.\.\. \((\d+) more lines? not shown\.[^\n]*\)|\[(?:Showing lines|\d+ more lines)[^\]]*\])$/

/** The text that a recorded read returned; undefined where it has no lines of text. */
export const shownBy = (call: FileCall & { readonly _tag: "Read" }, recorded: RecordedCall): Shown | undefined => {
  const said = saidIn(recorded.answer)
  if (said === undefined || failedThen(recorded)) return undefined
  if (recorded.name === "Read") {
    const numbered = said.split("\n").map((line) => /^\s*(\d+)→(.*)$/s.exec(line))
    const first = numbered[0]?.[1]
    if (first === undefined || numbered.some((match) => match === null)) return undefined
    const lines = numbered.map((match) => match?.[2] ?? "")
    return { from: Number(first), lines, ends: call.limit === undefined || lines.length < call.limit }
  }
  const ends = !rest.test(said)
  return { from: call.from, lines: said.replace(rest, "").split("\n"), ends }
}

// --- the files as they must have been --------------------------------------------------------------------------------

/** Stands for a line that no call showed before it was changed. */
const unseen = (line: number): string => `(line ${line} of this file was never shown)`

interface Line {
  text: string
  /** Its position in the original file; undefined for a line that was written later. */
  readonly origin: number | undefined
}

/** One file: its original content as far as it is known, and its content after the calls so far. */
class Implied {
  readonly first: Array<string>
  private now: Array<Line>
  /** Whether the file did not exist at first. */
  readonly isNew: boolean

  constructor(isNew: boolean) {
    this.isNew = isNew
    this.first = []
    this.now = []
  }

  /** Adds a line that must have existed. */
  private grow(text?: string): void {
    const origin = this.first.length
    const line = text ?? unseen(origin + 1)
    this.first.push(line)
    this.now.push({ text: line, origin })
  }

  show({ from, lines }: Shown): void {
    for (const [index, text] of lines.entries()) {
      const at = from - 1 + index
      while (this.now.length <= at) this.grow()
      const line = this.now[at]
      if (line === undefined || line.text === text || line.origin === undefined) continue
      // A line that was not shown before: it was like this from the start.
      if (line.text !== unseen(line.origin + 1)) continue
      line.text = text
      this.first[line.origin] = text
    }
  }

  write(content: string): void {
    this.now = content.split("\n").map((text) => ({ text, origin: undefined }))
  }

  edit(old: string, replacement: string, all: boolean): void {
    if (old === "") return
    const has = () => this.text.includes(old)
    // The replaced text existed, but its position is unknown.
    if (!has()) for (const line of old.split("\n")) this.grow(line)
    if (!has()) return
    let from = 0
    for (;;) {
      const text = this.text
      const at = text.indexOf(old, from)
      if (at < 0) return
      const lineOf = (offset: number): number => text.slice(0, offset).split("\n").length - 1
      const [a, b] = [lineOf(at), lineOf(at + old.length)]
      const start = text.lastIndexOf("\n", at - 1) + 1
      const next = text.indexOf("\n", at + old.length)
      const end = next < 0 ? text.length : next
      const changed = text.slice(start, at) + replacement + text.slice(at + old.length, end)
      this.now.splice(a, b - a + 1, ...changed.split("\n").map((line) => ({ text: line, origin: undefined })))
      from = at + replacement.length
      if (!all) return
    }
  }

  private get text(): string {
    return this.now.map((line) => line.text).join("\n")
  }
}

/** Commands that only show a file, or lines of it. */
const shownByCommand = (command: string): { readonly path: string; readonly from: number } | undefined => {
  const cat = /^cat ([\w./@-]+)$/.exec(command.trim())
  if (cat?.[1] !== undefined) return { path: posix.resolve(root, cat[1]), from: 1 }
  const sed = /^sed -n '(\d+),\d+p' ([\w./@-]+)$/.exec(command.trim())
  return sed?.[1] !== undefined && sed[2] !== undefined
    ? { path: posix.resolve(root, sed[2]), from: Number(sed[1]) }
    : undefined
}

/** The files that must have existed when a recording began. */
export const impliedFiles = (calls: ReadonlyArray<RecordedCall>): Readonly<Record<string, string>> => {
  const files = new Map<string, Implied>()
  const known = (path: string, isNew = false): Implied => {
    const file = files.get(path) ?? new Implied(isNew)
    files.set(path, file)
    return file
  }
  for (const call of calls) {
    if (call.answer === undefined || failedThen(call)) continue
    const done = fileCallOf(call)
    if (done === undefined) {
      const looked = shownByCommand(String(call.args["command"] ?? ""))
      const said = saidIn(call.answer)
      if (looked !== undefined && said !== undefined && !/truncated|No such file/.test(said)) {
        known(looked.path).show({ from: looked.from, lines: said.split("\n"), ends: false })
      }
      continue
    }
    switch (done._tag) {
      case "Read": {
        const shown = shownBy(done, call)
        if (shown !== undefined) known(done.path).show(shown)
        break
      }
      case "Write": {
        const existed = files.has(done.path) || /has been updated/.test(saidIn(call.answer) ?? "")
        known(done.path, !existed).write(done.content)
        break
      }
      case "Edit":
        known(done.path).edit(done.old, done.new, done.all)
        break
    }
  }
  return Object.fromEntries([...files].flatMap(([path, { first, isNew }]) => (isNew ? [] : [[path, first.join("\n")]])))
}

// --- the tools of a recording ----------------------------------------------------------------------------------------

/** The file operations of our tools, which the adapters of the recorded tools call. */
export interface FileTools {
  readonly read: Tool
  readonly write: Tool
  readonly edit: Tool
}

/** A call that was carried out again, with the recorded one. */
export interface Redone {
  readonly recorded: RecordedCall
  /** Its file operation; undefined: it was answered as recorded. */
  readonly done: FileCall | undefined
  /** The result of the tool, or the message of its failure. */
  readonly value: unknown
  readonly failed: boolean
}

/** The call of our tool that does the same as a recorded call. */
const oursFor = (tools: FileTools, done: FileCall): readonly [Tool, Readonly<Record<string, unknown>>] => {
  switch (done._tag) {
    case "Read":
      return [
        tools.read,
        {
          file_path: done.path,
          ...(done.from === 1 && done.limit === undefined ? {} : { start_line: done.from }),
          ...(done.limit === undefined ? {} : { end_line: done.from + done.limit - 1 })
        }
      ]
    case "Write":
      return [tools.write, { file_path: done.path, content: done.content }]
    case "Edit":
      return [
        tools.edit,
        {
          file_path: done.path,
          old_string: done.old,
          new_string: done.new,
          instruction: "as recorded",
          ...(done.all ? { allow_multiple: true } : {})
        }
      ]
  }
}

/**
 * The tools of a recording under their recorded names. Calls that depend only on files are carried out by our tools; the others
 * answer as recorded. `redone` receives each call that was carried out.
 */
export const toolsOf = (
  calls: ReadonlyArray<RecordedCall>,
  ours: FileTools,
  redone: (call: Redone) => void
): ReadonlyArray<Tool> => {
  const byId = new Map(calls.map((call) => [call.id, call]))
  const adapt =
    (name: string) =>
    (given: unknown, context: CallContext): Effect.Effect<Call, ToolFailure> => {
      const args = Predicate.isObject(given) ? given : {}
      const recorded = byId.get(context.id) ?? { id: context.id, name, args, answer: undefined }
      const done = fileCallOf({ name, args })
      const note = (value: unknown, failed: boolean) => Effect.sync(() => redone({ recorded, done, value, failed }))
      if (done !== undefined) {
        const [tool, asked] = oursFor(ours, done)
        return tool.call(asked, context).pipe(
          Effect.tapError((failure) => note(failure.message, true)),
          Effect.map((call) => ({
            ...call,
            run: call.run.pipe(
              Effect.tap(({ value }) => note(value, false)),
              Effect.tapError((failure) => note(failure.message, true))
            )
          }))
        )
      }
      const said = saidIn(recorded.answer) ?? JSON.stringify(recorded.answer?.functionResponse?.response ?? "")
      return Effect.succeed({
        title: name,
        question: Effect.undefined,
        run: failedThen(recorded)
          ? Effect.andThen(note(said, true), Effect.fail(new ToolFailure({ message: said })))
          : Effect.as(note(said, false), { value: said })
      })
    }
  return [...new Set(calls.map(({ name }) => name))].sort().map((name) => ({
    name,
    aliases: [],
    description: `The tool ${name} of a recording.`,
    parameters: { type: "object" },
    kind: /^(?:edit|write)$/i.test(name) ? "edit" : /^bash$/i.test(name) ? "execute" : "read",
    isNeverMasked: false,
    timeout: Duration.infinity,
    call: adapt(name)
  }))
}

/** The text of a read by our tool, without its note about the range shown. */
export const contentRead = (said: string): string => {
  const mark = "\n--- CONTENT ---\n"
  const at = said.indexOf(mark)
  return at < 0 ? said : said.slice(at + mark.length)
}

/** Whether a call that depends only on files had the recorded result; undefined where that is unknown. */
export const agrees = ({ done, failed, recorded, value }: Redone): boolean | undefined => {
  if (done === undefined || recorded.answer === undefined) return undefined
  if (failed !== failedThen(recorded)) return false
  if (failed || done._tag !== "Read") return true
  const shown = shownBy(done, recorded)
  if (shown === undefined) return undefined
  const whole = (text: string): string => text.replace(/\n+$/, "")
  return whole(contentRead(String(value))) === whole(shown.lines.join("\n"))
}
