import { Duration, Effect } from "effect"
import { posix } from "node:path"
import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  outputText,
  type Part
} from "../../src/domain/Content.ts"
import type { Turn } from "../../src/domain/Replay.ts"
import { type Call, type CallContext, type Tool, ToolFailure } from "../../src/services/Tool.ts"

/**
 * A recorded conversation as work that an agent can do again: what was asked, what the model answered, and the files as they
 * must have been before, so that its calls can be carried out anew.
 */

/** One message of a person and all answers that followed it. */
export interface Run {
  readonly prompt: ReadonlyArray<Part>
  readonly answers: ReadonlyArray<Content>
}

/** The runs of a recording: results of tools are left out, those have to come from tools. */
export const runsOf = (turns: ReadonlyArray<Turn>): ReadonlyArray<Run> => {
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

/** A call of the recording, and how it was answered then. */
export interface RecordedCall {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  /** Undefined: it was never answered. */
  readonly answer: Part | undefined
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** All calls in their order, with their answers. */
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
    args: isRecord(args) ? args : {},
    answer: answers.get(id)
  }))
}

/** What a recorded answer says, without reminders that its agent put behind it. */
export const saidIn = (answer: Part | undefined): string | undefined => {
  if (answer === undefined) return undefined
  const plain = outputText(answer)
  const response: unknown = answer.functionResponse?.response
  const content: unknown = isRecord(response) ? response["content"] : undefined
  const joined =
    plain ??
    (Array.isArray(content) && content.every((item) => isRecord(item) && item["type"] === "text")
      ? content.map((item: unknown) => (isRecord(item) ? String(item["text"]) : "")).join("\n")
      : undefined)
  return joined?.replace(/\n*<system-reminder>[^]*?<\/system-reminder>\s*$/, "")
}

/** Whether a recorded call failed. */
export const failedThen = ({ answer }: RecordedCall): boolean =>
  answer !== undefined && (isErrorResponse(answer) || saidIn(answer)?.startsWith("<tool_use_error>") === true)

// --- what a call means for files -------------------------------------------------------------------------------------

/** A call that only files decide, in words that both agents share. Lines count from 1. */
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

/** Where relative paths of a recording begin. */
export const root = "/workspace"

/** What a recorded call does with files; undefined for one that does something else. */
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

/** The lines a recorded read showed, the first of them, and whether the file ended with them. */
export interface Shown {
  readonly from: number
  readonly lines: ReadonlyArray<string>
  readonly ends: boolean
}

const rest = /\n\n?(?:\.\.\. \((\d+) more lines? not shown\.[^\n]*\)|\[(?:Showing lines|\d+ more lines)[^\]]*\])$/

/** What a recorded read showed; undefined where it showed no lines of text. */
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

/** What stands for a line that no call showed before something changed it. */
const unseen = (line: number): string => `(line ${line} of this file was never shown)`

interface Line {
  text: string
  /** Its place in the file as it was at first; undefined for one that was written later. */
  readonly origin: number | undefined
}

/** One file: as it was at first, as far as that is known, and as the calls so far have left it. */
class Implied {
  readonly first: Array<string>
  private now: Array<Line>
  /** Whether there was no such file at first. */
  readonly isNew: boolean

  constructor(isNew: boolean) {
    this.isNew = isNew
    this.first = []
    this.now = []
  }

  /** Adds a line that must have been there. */
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
      // A line that was never shown before: it was like this from the start.
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
    // What is replaced was there; where, nobody saw.
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

/** Commands that do nothing but show a file, or lines of it. */
const shownByCommand = (command: string): { readonly path: string; readonly from: number } | undefined => {
  const cat = /^cat ([\w./@-]+)$/.exec(command.trim())
  if (cat?.[1] !== undefined) return { path: posix.resolve(root, cat[1]), from: 1 }
  const sed = /^sed -n '(\d+),\d+p' ([\w./@-]+)$/.exec(command.trim())
  return sed?.[1] !== undefined && sed[2] !== undefined
    ? { path: posix.resolve(root, sed[2]), from: Number(sed[1]) }
    : undefined
}

/** The files that a recording implies to have been there when it began. */
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

/** What the tools of ours do with files, as adapters of the recorded ones call them. */
export interface FileTools {
  readonly read: Tool
  readonly write: Tool
  readonly edit: Tool
}

/** A call that was carried out anew, beside the recorded one. */
export interface Redone {
  readonly recorded: RecordedCall
  /** What it does with files; undefined: it was answered as recorded. */
  readonly done: FileCall | undefined
  /** What the tool gave back, or the message of its failure. */
  readonly value: unknown
  readonly failed: boolean
}

/** The call of a tool of ours that does what a recorded one did. */
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
 * The tools of a recording under their recorded names. Those that files decide are carried out by ours; the others answer as
 * recorded. Each call that was carried out is told to `redone`.
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
      const args = isRecord(given) ? given : {}
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
    keeps: false,
    timeout: Duration.infinity,
    call: adapt(name)
  }))
}

/** The text that a read of ours gave, without what it says about the part it shows. */
export const contentRead = (said: string): string => {
  const mark = "\n--- CONTENT ---\n"
  const at = said.indexOf(mark)
  return at < 0 ? said : said.slice(at + mark.length)
}

/** Whether a call that files decide came out as it did in the recording; undefined where that cannot be said. */
export const agrees = ({ done, failed, recorded, value }: Redone): boolean | undefined => {
  if (done === undefined || recorded.answer === undefined) return undefined
  if (failed !== failedThen(recorded)) return false
  if (failed || done._tag !== "Read") return true
  const shown = shownBy(done, recorded)
  if (shown === undefined) return undefined
  const whole = (text: string): string => text.replace(/\n+$/, "")
  return whole(contentRead(String(value))) === whole(shown.lines.join("\n"))
}
