/** Gathers evidence entry by entry. One file: all gatherers write to one state, in the order of the entries. */

import { Predicate } from "effect"
import type { Action, Todo } from "../../actions/Action.ts"
import { actionsOf, callsIn } from "../../actions/Actions.ts"
import { notifiedReports, reportsIn } from "../../actions/AgentReports.ts"
import { commandIn, toolKind } from "../../actions/AgentTools.ts"
import { answerText, printedText, wasNotMade, withoutLineNumbers } from "../../actions/ToolResults.ts"
import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  isThought,
  type Part
} from "../../content/Content.ts"
import type { Handle } from "../../content/Handle.ts"
import { attachmentsOf } from "../../content/MediaBlocks.ts"
import type { Entry, EntryId } from "../../conversation/Conversation.ts"
import { redactedEntries } from "../../conversation/RedactedEntries.ts"
import { shortLine } from "../../text/OneLine.ts"
import type { Secret } from "../../text/Redaction.ts"
import type { SlicedWork } from "../../text/SlicedWork.ts"
import { isRefusedCommand, type Refuser, type UserReply, userReply } from "../../transcripts/voice/ResultVoice.ts"
import { typedText } from "../../transcripts/voice/Voice.ts"
import { agentTexts, toolTexts } from "../Anchors.ts"
import { type FindPartner, type PartOfEntry, partnersIn } from "../AnsweredCalls.ts"
import {
  emptySnapshot,
  isSnapshot,
  mergeSnapshots,
  parseSnapshot,
  renderSnapshot,
  type Snapshot,
  attributeWords
} from "../Snapshot.ts"
import { hasWindowsPaths } from "../WindowsPaths.ts"
import { addBackgroundEnd, addNotifiedEnds, addRun, type Attempts, type Results, resultsOf } from "./Attempts.ts"
import { beginWith } from "./BegunState.ts"
import { type CommitLog, noCommits } from "./Commits.ts"
import { decisionsIn } from "./Decisions.ts"
import { type FileHistory, nameOf, noFiles, recordTouch } from "./FileHistory.ts"
import {
  type Anchor,
  maxScannedChars,
  type NameWeights,
  ranking,
  countShown,
  countUse,
  weightsOf
} from "./NameWeights.ts"
import { withoutPosing } from "./PosingText.ts"
import { accepts, askedBefore } from "./ShortReplies.ts"
import { approvedPlanIn, isApproval, proposedPlanIn, taskSource } from "./TaskTexts.ts"
import { followIssues, noTodos, recordTodos, type TodoHistory } from "./TodoHistory.ts"
import { decisiveCommand, failureText, isFailure, reasonText, subjectOf } from "./ToolFailures.ts"
import { constraintsIn, requestSpans, type Span, type UserWordsWitness, witnessOf } from "./UserRequests.ts"

/** A verbatim text, and the entry that holds it. */
export interface QuotedText {
  readonly entry: EntryId
  readonly text: string
  readonly handle: Handle | undefined
}

/** The text of a task, and the command, tool or file that it was read from. */
export interface TaskText extends QuotedText {
  readonly source: string
}

/** The last tool call. */
export interface LastCall {
  readonly entry: EntryId
  readonly tool: string
  readonly action: Action
  readonly failed: boolean
  readonly refusedBy: Refuser | undefined
}

/** Characters of tool output that are searched for names, newest first. */
const maxScanned = 1_000_000
const maxLastWords = 12
const maxTasks = 3
/** The task is stated in the first messages. */
const taskSearchEntries = 60

/** How a plan is named that the user approved: the last one is the task. */
const approvedPlan = "the plan that the user approved"

/** Words that announce what is done next. */
const announcing = /^(?:\S+ ){0,6}?(?:let me|let's|I'll|I will|I need to)\b/i

/** Whether a text of the agent says more than that a call follows ("Let me read the file:"). */
const isTelling = (text: string): boolean =>
  text.length >= 120 || (text.length >= 40 && !/[:…]$/.test(text) && !announcing.test(text))

/** Everything that is gathered, in the order of the entries. */
class Gathering {
  /** The user's requests, oldest first, without commands to a program (`/mode`). */
  readonly requests: Array<Span> = []
  /** Images and files that came with messages, oldest first. */
  readonly attachments: Array<QuotedText> = []
  /** Sentences in which the user constrains how the work is done. */
  readonly constraints: Array<Span> = []
  /** Sentences in which the agent states a decision and its reason. */
  readonly decisions: Array<QuotedText> = []
  /** What the agent had asked where the user answered with a short reply. `entry`: the reply. */
  readonly settled: Array<{ readonly entry: EntryId; readonly reply: string; readonly asked: string }> = []
  /** Summaries that are not in snapshot format, verbatim. */
  readonly summaries: Array<QuotedText> = []
  /** Texts that state the task, by source: an issue, a ticket or a plan that was read near the beginning. */
  readonly tasks = new Map<string, TaskText>()
  /** What other agents reported, oldest first. */
  readonly reports: Array<QuotedText> = []
  /** The agent's latest texts, oldest first. */
  readonly lastWords: Array<QuotedText> = []
  /** The names of the tools' parameters, which every request declares. */
  readonly declared = new Set<string>()
  readonly files: FileHistory
  readonly attempts: Attempts
  readonly todos = noTodos()
  readonly weights: NameWeights
  lastCall: LastCall | undefined
  /** Snapshots of earlier compressions, merged, without superseded statements. */
  previous: Snapshot | undefined
  /** The snapshot with which the log begins: nothing else has what it stands for. */
  begun: Snapshot | undefined

  constructor(cwd: string | undefined) {
    this.files = noFiles(cwd)
    this.attempts = { list: [], commits: noCommits(cwd), background: new Map() }
    this.weights = { names: new Map(), now: 0, isOnWindows: hasWindowsPaths(cwd ?? "") }
  }
}

/**
 * Evidence is what code can read from the messages and calls of a conversation: the user's requests, the state of each file,
 * failures, decisions. The extractive snapshot is written from it.
 */
export interface Evidence
  extends
    Omit<Gathering, "files" | "attempts" | "tasks" | "todos" | "weights">,
    Pick<FileHistory, "files" | "edits">,
    Results {
  readonly commits: CommitLog["present"]
  readonly tasks: ReadonlyArray<TaskText>
  readonly todos: TodoHistory["list"]
  /** Issues that the agent filed in a tracker, oldest first. */
  readonly issues: ReadonlyArray<Todo>
  readonly anchors: ReadonlyMap<string, Anchor>
}

/** Characters of a command by which its text is named, and of that text: its beginning says what it is for. */
const maxCommandChars = 100
const maxCommandTextChars = 300
/** A shorter text tells nothing of the task. */
const minTaskChars = 80

/** Adds a text of the task. What is read in parts is one text: its longest part tells most. */
const addTask = ({ tasks }: Gathering, task: TaskText): void => {
  const known = tasks.get(task.source)
  const isNew = known === undefined && tasks.size < maxTasks && task.text.length >= minTaskChars
  if (isNew || (known !== undefined && task.text.length > known.text.length)) tasks.set(task.source, task)
}

/** Adds a plan that the user approved, in the place of an earlier one. */
const addPlan = ({ tasks }: Gathering, plan: QuotedText): void => {
  tasks.set(approvedPlan, { ...plan, source: approvedPlan })
}

/** Adds what another agent reported. Codex writes a report that was waited for into a message, too. */
const addReport = ({ reports }: Gathering, report: QuotedText): void => {
  if (reports.every(({ text }) => text !== report.text)) reports.push(report)
}

/** A call of the agent, and what came of it. */
interface MadeCall {
  readonly entry: Entry
  readonly call: Part
  readonly answer: PartOfEntry | undefined
  readonly actions: ReadonlyArray<Action>
  readonly subject: string
  readonly failed: boolean
  /** What the user said in its place, or as its result. */
  readonly reply: UserReply | undefined
}

/** Gathers the commands and the changes of files of a call. */
const gatherActions = ({ attempts, files, todos }: Gathering, made: MadeCall): void => {
  const { actions, answer, call, entry, failed, reply } = made
  const at = { entry: entry.id, handle: answer?.handle }
  const decisive = decisiveCommand(actions)
  const isOnly = actions.filter(({ _tag }) => _tag === "Command").length === 1
  const touched = pathsOf(files, actions)
  for (const action of actions) {
    if (action._tag !== "Command") {
      if ("path" in action) recordTouch(files, { ...at, call, action, tokens: answer?.tokens ?? 0 })
    } else if (answer !== undefined && isRefusedCommand(reply, answer.part, action.command, isOnly))
      attempts.list.push({ ...reply, ...at, kind: "no result", subject: action.command })
    else {
      const hasFailed = failed && reply?.refusedBy === undefined && action === decisive
      files.takenBack = addRun(attempts, { entry: entry.id, action, answer, hasFailed, files: touched })
      files.committed = attempts.commits.present.at(-1)?.entry
      if (action.exit === 0) followIssues(todos.issues, action.command, action.output ?? answerText(answer?.part))
    }
  }
  recordTodos(todos, entry.id, call, actions, answer?.part)
}

const pathsOf = (files: FileHistory, actions: ReadonlyArray<Action>): ReadonlyArray<string> =>
  actions.flatMap((action) => ("path" in action ? [nameOf(files, action.path)] : []))

/** Gathers how a call without a command ended. */
const gatherEnd = (state: Gathering, { actions, answer, call, entry, failed, reply, subject }: MadeCall): void => {
  const { attempts, files } = state
  if (answer === undefined || decisiveCommand(actions) !== undefined) return
  if (addBackgroundEnd(attempts, entry.id, call, answer)) return
  const refusedBy = reply?.refusedBy
  const kind = toolKind(call.functionCall?.name ?? "", call.functionCall?.args)
  const isLook = kind === "read" || kind === "search" || kind === "follow"
  const isWithout = failed || refusedBy !== undefined
  const textOf = () =>
    reply?.refusedBy === undefined ? failureText(answerText(answer.part)) : reasonText(reply, answer.part)
  attempts.list.push({
    kind: "call",
    subject,
    entry: entry.id,
    handle: answer.handle,
    refusedBy,
    failure: isWithout && !(isLook && refusedBy === undefined) ? { text: textOf(), isQuoted: true } : undefined,
    files: isWithout ? [] : pathsOf(files, actions),
    isApproved: !isWithout && isApproval(call, answer.part)
  })
}

/** Gathers what a call did, from its arguments and its response. */
const gatherCall = (
  state: Gathering,
  { entry, index }: Surroundings,
  call: Part,
  answer: PartOfEntry | undefined
): void => {
  const { attempts, declared } = state
  const { args, name: tool = "" } = call.functionCall ?? {}
  for (const inner of callsIn(call)) {
    declared.add(inner.name)
    if (Predicate.isObject(inner.args)) for (const key of Object.keys(inner.args)) declared.add(key)
  }
  const at = { entry: entry.id, handle: answer?.handle }
  if (wasNotMade(answer?.part)) {
    const command = toolKind(tool, args) === "command" ? commandIn(args) : undefined
    if (command !== undefined) attempts.list.push({ ...at, kind: "no result", subject: command, isCancelled: true })
    return
  }
  const actions = actionsOf(call, answer?.part)
  const subject = subjectOf(call, actions)
  const failed = answer !== undefined && isFailure(actions, answer.part)
  const reply = answer && userReply(answer.part)
  const refusedBy = reply?.refusedBy
  const made = { entry, call, answer, actions, subject, failed, reply }
  gatherActions(state, made)
  gatherEnd(state, made)
  // A command says more than what it did to files.
  const action = actions.findLast(({ _tag }) => _tag === "Command") ??
    actions.at(-1) ?? { _tag: "Other", summary: subject }
  state.lastCall = { entry: entry.id, tool, action, failed, refusedBy }
  if (answer === undefined) return
  if (!failed) for (const report of reportsIn(call, answer.part)) addReport(state, { ...at, text: report })
  if (!failed && refusedBy === undefined && isApproval(call, answer.part)) {
    const plan = approvedPlanIn(call, answer.part, state.files.edits)
    const own = entry.content.parts.indexOf(call)
    // No part has a file as several calls left it.
    const handles = { answer: answer.handle, call: entry.handles[own], file: undefined }
    if (plan !== undefined) addPlan(state, { entry: entry.id, text: plan.text, handle: handles[plan.heldBy] })
  }
  const source = index >= taskSearchEntries ? undefined : taskSource(call)
  const isRead = actions.every(({ _tag }) => _tag !== "Write" && _tag !== "Edit" && _tag !== "Delete")
  if (source === undefined || !isRead || refusedBy !== undefined || isErrorResponse(answer.part)) return
  const text = withoutLineNumbers(withoutPosing(printedText(answerText(answer.part)))).trim()
  addTask(state, { ...at, text, source })
}

/** The text that Claude Code records when the model had nothing to answer. */
const noAnswer = "No response requested."

/** Gathers a text of the agent: what it decided, and its latest words. */
const gatherWords = ({ decisions, lastWords }: Gathering, words: QuotedText): void => {
  const text = words.text.trim()
  if (text === "" || text === noAnswer) return
  // The latest text is kept whatever it says, and makes room for the next one when it says little.
  const latest = lastWords.at(-1)
  if (latest !== undefined && !isTelling(latest.text)) lastWords.pop()
  lastWords.push({ ...words, text })
  if (lastWords.length > maxLastWords) lastWords.shift()
  for (const piece of decisionsIn(text)) decisions.push({ ...words, text: piece })
}

/** Gathers the summary of an earlier compression: what a snapshot still states, or its text. */
const gatherSummary = (
  state: Gathering,
  isUserWords: UserWordsWitness,
  role: Content["role"],
  words: QuotedText,
  isBeginning: boolean
): void => {
  // An empty snapshot is ours too, and must not be taken for the summary of another program.
  const snapshot = words.text.endsWith(renderSnapshot(emptySnapshot)) ? emptySnapshot : parseSnapshot(words.text)
  if (isSnapshot(snapshot)) {
    const known = attributeWords(snapshot, isUserWords)
    state.previous = state.previous === undefined ? known : mergeSnapshots(state.previous, known)
    if (isBeginning) {
      state.begun = state.previous
      beginWith(state, words.entry, known)
    }
  } else if (role === "user") state.summaries.push(words)
  countUse(state.weights, words.text, ranking.earlierIndex)
}

/** Returns the index of the first entry whose tool outputs are searched, at about four characters a token. */
const firstScanned = (entries: ReadonlyArray<Entry>): number => {
  let left = maxScanned / 4
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index]
    if (entry === undefined) continue
    for (const [at, part] of entry.content.parts.entries()) {
      if (isResponse(part)) left -= Math.min(entry.tokens[at] ?? 0, maxScannedChars / 4)
    }
    if (left < 0) return index
  }
  return 0
}

/** Options of `gatherEvidence`. */
export interface GatherOptions {
  /** Tells whether the user wrote these words in that entry. Absent: decided from the entries. */
  readonly userWords?: UserWordsWitness | undefined
  readonly secrets?: ReadonlyArray<Secret> | undefined
  /** The working directory: paths below it are relative to it. */
  readonly cwd?: string | undefined
  /**
   * The entries of the log that earlier compressions dropped, oldest first. All but names is read from them, and not from what
   * an earlier summary could keep of it.
   */
  readonly earlier?: ReadonlyArray<Entry> | undefined
}

/** Returns the agent's words that a message of the user answers: none where the agent went on to work, or the user said more since. */
const answeredWords = (entries: ReadonlyArray<Entry>, index: number): QuotedText | undefined => {
  for (let at = index - 1; at >= 0; at -= 1) {
    const entry = entries[at]
    if (entry?.content.role === "model") {
      const { parts } = entry.content
      const place = parts.findLastIndex((part) => !isThought(part))
      const last = parts[place]
      return last !== undefined && isText(last)
        ? { entry: entry.id, text: last.text, handle: entry.handles[place] }
        : undefined
    }
    if (entry?.author === undefined) return undefined
  }
  return undefined
}

/** Gathers what the user answered with a message to the agent's last words. */
const gatherSettled = (state: Gathering, entries: ReadonlyArray<Entry>, index: number): void => {
  const entry = entries[index]
  if (entry?.content.role !== "user" || entry.author !== undefined) return
  const words = answeredWords(entries, index)
  if (words === undefined) return
  const plan = proposedPlanIn(words.text)
  for (const { text } of requestSpans(entry)) {
    const asked = askedBefore(text, words.text)
    if (asked !== undefined) state.settled.push({ entry: entry.id, reply: text, asked })
    if (plan !== undefined && accepts(text)) addPlan(state, { ...words, text: plan })
  }
}

/** Gathers the images and files of a part. */
const gatherAttachments = ({ attachments }: Gathering, { content, handles, id }: Entry, at: number): void => {
  const part = content.parts[at]
  if (part === undefined) return
  for (const text of attachmentsOf(part, content.role)) attachments.push({ entry: id, text, handle: handles[at] })
}

/** What the gathering of one part needs beside what was gathered. */
interface Surroundings {
  readonly entry: Entry
  readonly index: number
  /** The position of the part in its entry. */
  readonly at: number
  readonly partnerOf: FindPartner
}

/** Gathers what an agent said, thought or called. */
const gatherAgentPart = (state: Gathering, part: Part, around: Surroundings): void => {
  const { at, entry, index, partnerOf } = around
  const { weights } = state
  if (isCall(part)) gatherCall(state, around, part, partnerOf(index, at))
  agentTexts(part, (text) => {
    // A call aims at things by lines; longer texts are what it writes.
    countUse(weights, text, 1, isCall(part) && !text.includes("\n"))
  })
  if (isText(part) && !isThought(part)) {
    gatherWords(state, { entry: entry.id, text: part.text, handle: entry.handles[at] })
  }
}

/** The name of a tag in a program's text (`<environment_context>`), and of its first attribute, are words of its protocol; its attributes may name files. */
const protocolName = /<\/?[a-z]+(?:[-_][a-z]+)+(?:\s+\w+(?==))?/g

/** Gathers what one part says of anything but a summary. */
const gatherPart = (state: Gathering, part: Part, around: Surroundings, isScanned: boolean): void => {
  const { author, content, id } = around.entry
  if (isCall(part) || isThought(part) || (isText(part) && content.role === "model")) {
    return gatherAgentPart(state, part, around)
  }
  if (author === "program" && isText(part)) {
    addNotifiedEnds(state.attempts, id, part.text)
    const handle = around.entry.handles[around.at]
    for (const report of notifiedReports(part.text)) addReport(state, { entry: id, text: report, handle })
    return countUse(state.weights, part.text.slice(0, maxScannedChars).replace(protocolName, " "), ranking.program)
  }
  if (!isResponse(part) || !isScanned) return
  toolTexts(part, (text) => countShown(state.weights, withoutPosing(text.slice(0, maxScannedChars))))
}

/** Gathers what the command says with which the user began: the program writes its text into the next message. */
const gatherCommand = (state: Gathering, { content }: Entry, next: Entry | undefined, index: number): void => {
  if (index >= taskSearchEntries || next?.author !== "program") return
  const typed = content.parts.map(({ text = "" }) => (text.startsWith("<") ? typedText(text) : "")).join("")
  const at = next.content.parts.findIndex((part) => isText(part) && !part.text.startsWith("<"))
  const text = next.content.parts[at]?.text
  if (!typed.startsWith("/") || text === undefined) return
  const source = shortLine(typed, maxCommandChars)
  addTask(state, { entry: next.id, text: shortLine(text, maxCommandTextChars), handle: next.handles[at], source })
}

/** Gathers what a user asked for in an entry, what they settled and what they do not want. */
const gatherRequests = (
  state: Gathering,
  entries: ReadonlyArray<Entry>,
  index: number,
  partnerOf: FindPartner
): void => {
  const entry = entries[index]
  if (entry?.content.role !== "user" || entry.author !== undefined) return
  gatherSettled(state, entries, index)
  // The agent runs commands of its own within its work.
  if (entries[index - 1]?.content.parts.some(isResponse) !== true)
    gatherCommand(state, entry, entries[index + 1], index)
  for (const span of requestSpans(entry, (part) => partnerOf(index, part)?.part)) {
    state.requests.push(span)
    countUse(state.weights, span.text)
    state.constraints.push(...constraintsIn(span))
  }
}

/** Gathers evidence from entries, oldest first, without any secrets. */
export function* gatherEvidence(whole: ReadonlyArray<Entry>, options: GatherOptions = {}): SlicedWork<Evidence> {
  const { cwd, earlier = [], userWords = witnessOf(whole), secrets = [] } = options
  const { entries } = yield* redactedEntries([...earlier, ...whole], secrets)
  const state = new Gathering(cwd)
  const partnerOf = partnersIn(entries)
  const scannedFrom = firstScanned(entries)
  const said = entries.findIndex(({ author }) => author === undefined)
  // The log has what a summary stands for, but for one before all that the user and the model said.
  const begin = said < 0 ? entries.length : said
  yield
  for (const [index, entry] of entries.entries()) {
    const isEarlier = index < earlier.length
    const isBeginning = index < begin
    if (isEarlier && entry.author === "summary" && !isBeginning) continue
    // A name that left the window counts by the summary that still has it.
    if (!isEarlier) state.weights.now += 1
    gatherRequests(state, entries, index, partnerOf)
    for (const [at, part] of entry.content.parts.entries()) {
      if (at > 0 && !isEarlier) state.weights.now += 1
      const handle = entry.handles[at]
      gatherAttachments(state, entry, at)
      if (entry.author === "summary" && isText(part)) {
        const words = { entry: entry.id, text: part.text, handle }
        gatherSummary(state, userWords, entry.content.role, words, isBeginning)
      } else gatherPart(state, part, { entry, index, at, partnerOf }, index >= scannedFrom)
      yield
    }
  }
  const anchors = yield* weightsOf(state.weights)
  const { attempts, files, previous, summaries, tasks, todos } = state
  const results = yield* resultsOf(attempts, (path) => nameOf(files, path))
  return {
    ...state,
    ...results,
    commits: attempts.commits.present.filter(({ hash }) => hash !== ""),
    files: files.files,
    edits: files.edits,
    tasks: [...tasks.values()],
    todos: todos.list,
    issues: [...todos.issues.values()],
    anchors,
    previous: previous ?? (summaries.length > 0 ? emptySnapshot : undefined)
  }
}
