/**
 * Questions about the state that a conversation has reached, with their answers, made by code from its log. A context is asked
 * them afterwards: what it says of each subject is right, outdated, wrong, or nothing.
 */

import type { Action } from "../actions/Action.ts"
import { actionsOf } from "../actions/Actions.ts"
import { replacementsIn } from "../actions/AgentTools.ts"
import { answerText, printedText } from "../actions/ToolResults.ts"
import { type FindPartner, partnersIn } from "../compression/AnsweredCalls.ts"
import {
  type CheckKind,
  checksOf,
  isMilestone,
  programsOf,
  provesSuccess,
  succeeded
} from "../compression/evidence/Commands.ts"
import { type CommitLog, commitsAfter, noCommits } from "../compression/evidence/Commits.ts"
import { liesIn } from "../compression/evidence/FileHistory.ts"
import { isLook, withoutView } from "../compression/evidence/ReadOnlyCommands.ts"
import { noTodos, recordTodos } from "../compression/evidence/TodoHistory.ts"
import { constraintsIn, requestSpans } from "../compression/evidence/UserRequests.ts"
import { isCall, isErrorResponse, type Part } from "../content/Content.ts"
import type { Entry, EntryId } from "../conversation/Conversation.ts"
import { isRefusedCommand, userReply } from "../transcripts/voice/ResultVoice.ts"
import { plain } from "./Statements.ts"

/** What is asked. */
export type QuestionKind =
  | "exit code"
  | "test run"
  | "file"
  | "value"
  | "item"
  | "constraint"
  | "order"
  | "decision"
  | "refusal"
  | "commit"
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

/** Nobody asks a handover for commits that a log lists: only for the latest. */
const maxCommits = 5

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
const decoyCommands: ReadonlyArray<string> = [
  "git push --force",
  "git reset --hard HEAD~1",
  "npm publish",
  "docker system prune -af",
  "terraform apply",
  "kubectl delete namespace staging"
]
const maxDecoyCommands = 2
const maxDecoyFiles = 8

/** What stands before an item that is kept by its number, or in place of one that is not known. */
const itemNumber = /^(?:task )?#\d+(?: |$)/

const isDone = (status: string): boolean => /^(?:completed|done|closed)$/i.test(status)
const isDropped = (status: string): boolean => /^(?:cancell?ed|deleted)$/i.test(status)

const fileStates: Readonly<Partial<Record<Action["_tag"], string>>> = {
  Write: "changed",
  Edit: "changed",
  Delete: "deleted"
}

/** A named value before and after an edit. */
interface ValueChange {
  readonly name: string
  readonly from: string
  readonly to: string
}

/** Matches a line that gives a name a literal: a number, a version, a switch, or a short text in quotes. */
const assignment =
  /^[ \t]*(?:(?:export|const|let|var|val|final|static|readonly|set|ENV)\s+)*["']?([A-Za-z_@][\w.-]{2,60})["']?\s*(?:=>|:=|[:=])\s*(?:"([^"\n]{1,60})"|'([^'\n]{1,60})'|([~^]?v?\d[\w.-]*|true|false|on|off))\s*[,;]?\s*(?:(?:#|\/\/).*)?$/gm

/** Returns the values in a text by name. A name that has several is left out. */
const valuesIn = (text: string): ReadonlyMap<string, string> => {
  const values = new Map<string, string | undefined>()
  for (const [, name = "", double, single, bare] of text.slice(0, 20_000).matchAll(assignment)) {
    const value = double ?? single ?? bare ?? ""
    values.set(name, values.has(name) && values.get(name) !== value ? undefined : value)
  }
  return new Map([...values].flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

/** Returns the values that a call to an editing tool changed. */
const valueChanges = (call: Part): ReadonlyArray<ValueChange> =>
  replacementsIn(call.functionCall?.args).flatMap(([replaced, made]) => {
    const before = valuesIn(replaced)
    const after = valuesIn(made)
    return [...before].flatMap(([name, from]) => {
      const to = after.get(name)
      return to === undefined || to === from ? [] : [{ name, from, to }]
    })
  })

/** Nobody asks for the exit code of a command that only prepares or reads. */
const leavesState = (command: string): boolean => programsOf(command).length > 0 && !isLook(command)

/** Returns the question that has one answer: what was said, or never happened. */
const questionFor = (kind: QuestionKind, subject: string, entry: EntryId, expected = "said"): StateQuestion => ({
  kind,
  subject,
  expected,
  earlier: [],
  entry
})

/** The kinds of questions about subjects whose answer changes, in their order. */
const changing = ["exit code", "test run", "file", "value"] as const
/** The kinds of questions for words that were said, and for commands that were refused. */
const said = ["constraint", "order", "decision", "refusal"] as const

/** A failed check of a command, and the programs that it ran. */
interface FailedCommand {
  readonly programs: ReadonlySet<string>
  readonly entry: EntryId
}

/** A here-document in the place of an argument: `-m "$(cat <<'EOF' …)"`. Nobody who tells of the command repeats the form. */
const documentArgument = /\$\(cat <<-?\s*['"]?(\w+)['"]?\n([^]*?)\n\s*\1\s*\)/g

/** The state that a conversation reaches: reads its entries, oldest first, and asks about them. Paths are relative to the folders. */
export class WorkState {
  private readonly entries: ReadonlyArray<Entry>
  private readonly folders: ReadonlyArray<string>
  private readonly partnerOf: FindPartner
  private readonly known = {
    "exit code": new Map<string, Known>(),
    "test run": new Map<string, Known>(),
    file: new Map<string, Known>(),
    value: new Map<string, Known>()
  }
  private readonly said = {
    constraint: new Map<string, EntryId>(),
    order: new Map<string, EntryId>(),
    decision: new Map<string, EntryId>(),
    refusal: new Map<string, EntryId>()
  }
  /** The files that were changed, also those whose changes were taken back. */
  private readonly touched = new Set<string>()
  private readonly filesRead = new Map<string, EntryId>()
  private readonly published = new Set<string>()
  private readonly lastChecks = new Map<CheckKind, string>()
  private readonly failing = new Map<string, FailedCommand>()
  private readonly todos = noTodos()
  private commits: CommitLog
  /** The decoy commands that are not mentioned. */
  private decoys = decoyCommands

  constructor(entries: ReadonlyArray<Entry>, folders: ReadonlyArray<string>) {
    this.entries = entries
    this.folders = folders
    this.commits = noCommits(folders[0])
    this.partnerOf = partnersIn(entries)
  }

  /** Reads the next entry. */
  read(entry: Entry, item: number): void {
    this.readRequests(entry)
    for (const [part, call] of entry.content.parts.entries()) {
      const answer = isCall(call) ? this.partnerOf(item, part)?.part : undefined
      if (answer !== undefined) this.readCall(entry.id, call, answer)
    }
  }

  private readRequests(entry: Entry): void {
    const { id } = entry
    for (const span of requestSpans(entry)) {
      const text = plain(span.text)
      // What the user chose in a question is a decision however short it is.
      if (span.question !== undefined) this.said.decision.set(text, id)
      // "Yes" and "go on" are no orders that anybody has to remember.
      else if (text.split(" ").length >= minOrderWords) this.said.order.set(text, id)
      this.mention(span.text.slice(0, maxMessageChars))
      // A short message is asked for as a whole, as an order.
      if (span.text.length > maxMessageChars || (this.said.order.has(text) && text.length <= maxWholeChars)) continue
      for (const constraint of constraintsIn(span)) this.said.constraint.set(plain(constraint.text), id)
    }
  }

  private readCall(id: EntryId, call: Part, answer: Part): void {
    const output = printedText(answerText(answer))
    const reply = userReply(answer)
    const actions = actionsOf(call, answer)
    const isOnly = actions.filter(({ _tag }) => _tag === "Command").length === 1
    recordTodos(this.todos, id, call, actions, answer)
    for (const action of actions) {
      if (action._tag === "Command" && isRefusedCommand(reply, answer, action.command, isOnly))
        this.said.refusal.set(this.commandSubject(action.command), id)
      else if (action._tag === "Command") this.readCommand(id, action, output)
      else if (action._tag === "Read") this.filesRead.set(this.pathSubject(action.path), id)
      else if (action._tag === "Restore") this.forget(this.pathSubject(action.path))
      else if ("path" in action) {
        this.touched.add(this.pathSubject(action.path))
        note(this.known.file, this.pathSubject(action.path), fileStates[action._tag] ?? "changed", id)
      }
    }
    if (isErrorResponse(answer)) return
    for (const { from, name, to } of valueChanges(call)) {
      if (!this.known.value.has(name)) note(this.known.value, name, from, id)
      note(this.known.value, name, to, id)
    }
  }

  private readCommand(
    entry: EntryId,
    { command, exit }: Extract<Action, { readonly _tag: "Command" }>,
    output: string
  ): void {
    this.mention(command)
    if (exit === undefined || !leavesState(command)) return
    const subject = this.commandSubject(command)
    const checks = checksOf(command)
    this.said.refusal.delete(subject)
    for (const kind of checks) this.lastChecks.set(kind, subject)
    const ok = succeeded(command, exit, output)
    if (ok === undefined) {
      // Whatever an earlier run said, nobody knows now.
      this.known["exit code"].delete(subject)
      return
    }
    // Behind a pipe, a code of 0 is the code of the last program only.
    note(this.known["exit code"], subject, ok ? "0" : exit === 0 ? "failed" : String(exit), entry)
    if (checks.includes("tests")) note(this.known["test run"], "tests", ok ? "passed" : "failed", entry)
    const programs = new Set(programsOf(command))
    if (!ok) {
      this.failing.set(subject, { programs, entry })
      return
    }
    if (isMilestone(command)) this.published.add(subject)
    this.commits = commitsAfter(this.commits, { command, exit, ok, output, entry })
    for (const [other, failed] of this.failing) {
      if ([...failed.programs].some((program) => provesSuccess(programs, program))) this.failing.delete(other)
    }
  }

  private mention(text: string): void {
    this.decoys = this.decoys.filter((command) => !text.includes(command))
  }

  private commandSubject(command: string): string {
    return withoutView(plain(command.replace(documentArgument, "$2"), this.folders))
  }

  /** Asks nothing of files whose changes were taken back. */
  private forget(place: string): void {
    const { file } = this.known
    for (const path of file.keys()) if (path === place || liesIn(path, place)) file.delete(path)
  }

  private pathSubject(path: string): string {
    return plain(path, this.folders).replace(/^\.\//, "")
  }

  /** Returns the questions about the entries read so far. */
  questions(): ReadonlyArray<StateQuestion> {
    const last = this.entries.at(-1)?.id
    if (last === undefined) return []
    // A colleague asks what is broken, what was published, and what the last run of each check said.
    const asked = new Set([...this.failing.keys(), ...this.published, ...this.lastChecks.values()])
    const isAsked = (kind: QuestionKind, subject: string, { earlier }: Known): boolean =>
      kind === "exit code" ? asked.has(subject) : kind !== "value" || earlier.size > 0
    const commits = new Map(
      this.commits.present.flatMap(({ entry, hash, subject }) =>
        hash === "" ? [] : [[plain(subject), entry] as const]
      )
    )
    return [
      ...changing.flatMap((kind) =>
        [...this.known[kind]]
          .filter(([subject, known]) => isAsked(kind, subject, known))
          .slice(-maxOfKind)
          .map(([subject, { earlier, ...known }]) => ({ kind, subject, ...known, earlier: [...earlier] }))
      ),
      ...this.itemQuestions(),
      ...said.flatMap((kind) => [...this.said[kind]].map(([words, entry]) => questionFor(kind, words, entry))),
      ...[...commits].slice(-maxCommits).map(([subject, entry]) => questionFor("commit", subject, entry)),
      ...this.decoyQuestions(last)
    ]
  }

  private itemQuestions(): ReadonlyArray<StateQuestion> {
    const { entry, todos } = this.todos.list ?? { entry: undefined, todos: [] }
    if (entry === undefined) return []
    return todos.flatMap(({ status, text }): ReadonlyArray<StateQuestion> => {
      const subject = plain(text.replace(itemNumber, ""))
      if (subject === "" || isDropped(status)) return []
      const [expected, earlier] = isDone(status) ? ["done", ["open"]] : ["open", []]
      return [{ kind: "item", subject, expected, earlier, entry }]
    })
  }

  private decoyQuestions(last: EntryId): ReadonlyArray<StateQuestion> {
    const names = [...this.filesRead].filter(([name]) => !this.touched.has(name) && name !== "").slice(-maxDecoyFiles)
    const neverHappened = (subject: string, entry: EntryId, what: string) =>
      questionFor("never happened", subject, entry, what)
    return [
      ...names.map(([name, entry]) => neverHappened(name, entry, "not changed")),
      ...[...this.failing]
        .slice(-maxDecoyFiles)
        .map(([command, { entry }]) => neverHappened(command, entry, "not done")),
      ...this.decoys.slice(0, maxDecoyCommands).map((command) => neverHappened(command, last, "not run"))
    ]
  }
}
