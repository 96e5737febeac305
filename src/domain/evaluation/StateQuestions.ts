import type { Action, Todo } from "../actions/Action.ts"
import { actionsOf } from "../actions/Actions.ts"
import { answerText } from "../actions/ToolResults.ts"
import { type CheckKind, checksOf, isMilestone, programsOf, succeeded } from "../compression/evidence/Commands.ts"
import { isLook, withoutView } from "../compression/evidence/ReadOnlyCommands.ts"
import { constraintsIn, requestSpans } from "../compression/evidence/UserRequests.ts"
import { type Content, isCall, isErrorResponse, type Part } from "../content/Content.ts"
import { type Entry, type EntryId, pairing, placeKey } from "../conversation/Conversation.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { plain } from "./Statements.ts"
import { valueChanges } from "./ValueChanges.ts"

/**
 * Questions about the state that a conversation has reached, with their answers, made by code from its log. A context is asked
 * them afterwards: what it says of each subject is right, outdated, wrong, or nothing.
 */

/** What is asked. */
export type QuestionKind =
  | "exit code"
  | "test run"
  | "file"
  | "value"
  | "item"
  | "constraint"
  | "order"
  | "never happened"

/** A question about the state. */
export interface StateQuestion {
  readonly kind: QuestionKind
  /** What is asked about: a command, a path, a name, an item, or the user's words. */
  readonly subject: string
  readonly expected: string
  /** Answers that were right earlier. */
  readonly earlier: ReadonlyArray<string>
  /** The entry with the latest evidence: a context that still holds it holds the answer. */
  readonly entry: EntryId
}

/** The questions of a kind are those about what happened last. */
const maxOfKind = 40
/** Longer messages are documents that were pasted: they are asked for by their ends, without their sentences. */
const maxMessageChars = 2_000

const minOrderWords = 3
/** A longer message may be shown by its ends. */
export const maxWholeChars = 280

/** What is known of a subject. */
interface Known {
  expected: string
  readonly earlier: Set<string>
  entry: EntryId
}

/** Notes an answer, and that the one before is outdated. The subject noted last comes last. */
const note = (known: Map<string, Known>, subject: string, expected: string, entry: EntryId): void => {
  const before = known.get(subject)
  const earlier = before?.earlier ?? new Set<string>()
  if (before !== undefined && before.expected !== expected) earlier.add(before.expected)
  earlier.delete(expected)
  known.delete(subject)
  known.set(subject, { expected, earlier, entry })
}

/** Commands that nobody ran; those that a conversation does not mention make decoys. */
const decoyCommands = [
  "git push --force",
  "git reset --hard HEAD~1",
  "npm publish",
  "docker system prune -af",
  "terraform apply",
  "kubectl delete namespace staging"
]
const maxDecoyCommands = 2
const maxDecoyFiles = 8

const isDone = (status: string): boolean => /^(?:completed|done|closed)$/i.test(status)
const isDropped = (status: string): boolean => /^(?:cancell?ed|deleted)$/i.test(status)

/** Applies a call of a task tool to the items. Returns the new list; undefined when it changed no item. */
const followItems = (tasks: Map<string, Todo>, call: Part, answer: Part): ReadonlyArray<Todo> | undefined => {
  const args = Object(call.functionCall?.args)
  const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)
  switch (call.functionCall?.name.toLowerCase()) {
    case "taskcreate": {
      const id = /#(\d+)/.exec(answerText(answer).slice(0, 200))?.[1]
      const subject = text(args.subject) ?? text(args.description)
      if (id === undefined || subject === undefined) return undefined
      tasks.set(id, { text: subject, status: "pending" })
      return [...tasks.values()]
    }
    case "taskupdate": {
      const id = String(args.taskId ?? "")
      const before = tasks.get(id)
      if (before === undefined) return undefined
      tasks.set(id, { text: text(args.subject) ?? before.text, status: text(args.status) ?? before.status })
      return [...tasks.values()]
    }
    default:
      return undefined
  }
}

const fileStates: Readonly<Partial<Record<Action["_tag"], string>>> = {
  Write: "changed",
  Edit: "changed",
  Delete: "deleted"
}

/** Nobody asks for the exit code of a command that only prepares or reads. */
const leavesState = (command: string): boolean => programsOf(command).length > 0 && !isLook(command)

/** Makes the questions about a conversation, from its entries, oldest first. Paths are relative to the folders. */
export function* stateQuestions(
  entries: ReadonlyArray<Entry>,
  folders: ReadonlyArray<string> = []
): SlicedWork<ReadonlyArray<StateQuestion>> {
  const exits = new Map<string, Known>()
  const tests = new Map<string, Known>()
  const files = new Map<string, Known>()
  const read = new Map<string, EntryId>()
  const values = new Map<string, Known>()
  const published = new Set<string>()
  const lastChecks = new Map<CheckKind, string>()
  const failing = new Map<string, { readonly programs: ReadonlyArray<string>; readonly entry: EntryId }>()
  const tasks = new Map<string, Todo>()
  let list: { readonly entry: EntryId; readonly todos: ReadonlyArray<Todo> } | undefined
  const constraints = new Map<string, EntryId>()
  const orders = new Map<string, EntryId>()
  let mentioned = ""
  const { responseOf } = pairing(entries.map((entry): Content => entry.content))
  const answerOf = (item: number, part: number): Part | undefined => {
    const at = responseOf.get(placeKey({ item, part }))
    return at === undefined ? undefined : entries[at.item]?.content.parts[at.part]
  }
  const path = (named: string): string => plain(named, folders).replace(/^\.\//, "")

  const ran = (entry: EntryId, { command, exit }: Extract<Action, { readonly _tag: "Command" }>, output: string) => {
    mentioned += `\n${command}`
    if (exit === undefined || !leavesState(command)) return
    const subject = withoutView(plain(command, folders))
    const ok = succeeded(command, exit, output)
    // Behind a pipe, a code of 0 is the code of the last program only.
    if (ok !== undefined) note(exits, subject, ok ? "0" : exit === 0 ? "failed" : String(exit), entry)
    if (ok !== undefined && checksOf(command).includes("tests")) {
      note(tests, "tests", ok ? "passed" : "failed", entry)
    }
    if (ok === true && isMilestone(command)) published.add(subject)
    for (const kind of checksOf(command)) lastChecks.set(kind, subject)
    const programs = programsOf(command)
    if (ok === false) failing.set(subject, { programs, entry })
    else if (ok === true) {
      for (const [other, failed] of failing) {
        if (failed.programs.some((program) => programs.includes(program))) failing.delete(other)
      }
    }
  }

  for (const [item, entry] of entries.entries()) {
    const { content, id } = entry
    let cost = 200
    for (const span of requestSpans(entry)) {
      const text = plain(span.text)
      // "Yes" and "go on" are no orders that anybody has to remember.
      if (text.split(" ").length >= minOrderWords) orders.set(text, id)
      mentioned += `\n${span.text.slice(0, maxMessageChars)}`
      // A short message is asked for as a whole, as an order.
      if (span.text.length > maxMessageChars || (orders.has(text) && text.length <= maxWholeChars)) continue
      for (const constraint of constraintsIn(span)) constraints.set(plain(constraint.text), id)
    }
    for (const [at, part] of content.parts.entries()) {
      if (!isCall(part)) continue
      const answer = answerOf(item, at)
      if (answer === undefined) continue
      const output = answerText(answer)
      cost += output.length / 8
      for (const action of actionsOf(part, answer)) {
        if (action._tag === "Command") ran(id, action, output)
        else if (action._tag === "Todos") list = { entry: id, todos: action.todos }
        else if (action._tag === "Read") read.set(path(action.path), id)
        else if ("path" in action) note(files, path(action.path), fileStates[action._tag] ?? "changed", id)
      }
      if (isErrorResponse(answer)) continue
      const todos = followItems(tasks, part, answer)
      if (todos !== undefined) list = { entry: id, todos }
      for (const { from, name, to } of valueChanges(part)) {
        if (!values.has(name)) note(values, name, from, id)
        note(values, name, to, id)
      }
    }
    yield cost
  }

  const of = (kind: QuestionKind, known: ReadonlyMap<string, Known>): Array<StateQuestion> =>
    [...known]
      .slice(-maxOfKind)
      .map(([subject, { earlier, entry, expected }]) => ({ kind, subject, expected, earlier: [...earlier], entry }))
  const words = (kind: QuestionKind, said: ReadonlyMap<string, EntryId>): Array<StateQuestion> =>
    [...said].map(([subject, entry]) => ({ kind, subject, expected: "said", earlier: [], entry }))
  const never = (subject: string, expected: string, entry: EntryId): StateQuestion => ({
    kind: "never happened",
    subject,
    expected,
    earlier: [],
    entry
  })
  // A colleague asks what is broken, what was published, and what the last run of each check said.
  const asked = new Set([...failing.keys(), ...published, ...lastChecks.values()])
  const last = entries.at(-1)?.id
  if (last === undefined) return []
  const names = [...read].filter(([name]) => !files.has(name) && name !== "").slice(-maxDecoyFiles)
  return [
    ...of("exit code", new Map([...exits].filter(([command]) => asked.has(command)))),
    ...of("test run", tests),
    ...of("file", files),
    ...of("value", new Map([...values].filter(([, { earlier }]) => earlier.size > 0))),
    ...(list?.todos ?? [])
      .filter(({ status }) => !isDropped(status))
      .map(({ status, text }): StateQuestion => ({
        kind: "item",
        subject: plain(text),
        expected: isDone(status) ? "done" : "open",
        earlier: isDone(status) ? ["open"] : [],
        entry: list?.entry ?? last
      })),
    ...words("constraint", constraints),
    ...words("order", orders),
    ...names.map(([name, entry]) => never(name, "not changed", entry)),
    ...[...failing].slice(-maxDecoyFiles).map(([command, { entry }]) => never(command, "not done", entry)),
    ...decoyCommands
      .filter((command) => !mentioned.includes(command))
      .slice(0, maxDecoyCommands)
      .map((command) => never(command, "not run", last))
  ]
}
