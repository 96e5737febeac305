import { type Content, isCall, isErrorResponse, isResponse, isText, isThought, type Part } from "../content/Content.ts"
import { Handle, mentions } from "../content/Handle.ts"
import { type Entry, EntryId, pairing, placeKey } from "../conversation/Conversation.ts"
import { redactedEntries } from "../conversation/RedactedEntries.ts"
import { firstUnits, lastUnits } from "../text/Bytes.ts"
import { visibleLine } from "../text/InvisibleCharacters.ts"
import {
  markStart,
  maxDistinctiveSecrets,
  redact,
  type Secret,
  strongSecrets,
  distinctiveSecrets,
  withoutValues
} from "../text/Redaction.ts"
import { runSync, type SlicedWork } from "../text/SlicedWork.ts"
import { unprotect } from "../text/UntrustedText.ts"
import { agentTexts, type AnchorKind, eachAnchor, toolTexts } from "./Anchors.ts"
import {
  emptySnapshot,
  fileLine,
  isSnapshot,
  mergeSnapshots,
  parseSnapshot,
  type Snapshot,
  attributeWords,
  type UserWords
} from "./Snapshot.ts"
import { type Action, actionsOf, answerText, printedText, type Todo } from "./ToolCalls.ts"

/**
 * Evidence is what code can read from the messages and calls of a conversation: the user's requests, the state of each file,
 * failures, decisions. The extractive snapshot is written from it.
 *
 * One file: a single pass over the entries collects all of it.
 */
export interface Evidence {
  /** The user's requests, oldest first, without commands to a program (`/mode`). */
  readonly requests: ReadonlyArray<Span>
  /** Sentences in which the user constrains how the work is done. */
  readonly constraints: ReadonlyArray<Span>
  /** The last known state of each file, by path (as `visibleLine` shows it). */
  readonly files: ReadonlyMap<string, FileState>
  /** Shell commands, each with its last result. */
  readonly commands: ReadonlyMap<string, CommandRun>
  /** Failures that no later call resolved, by subject. */
  readonly errors: ReadonlyMap<string, ToolFailureEvidence>
  readonly todos: { readonly entry: EntryId; readonly todos: ReadonlyArray<Todo> } | undefined
  /** Sentences in which the agent states a decision and its reason. */
  readonly decisions: ReadonlyArray<QuotedText>
  /** The agent's latest calls, oldest first. */
  readonly recent: ReadonlyArray<RecentCall>
  readonly anchors: ReadonlyMap<string, Anchor>
  /** Snapshots of earlier compressions, merged, without superseded statements. */
  readonly previous: Snapshot | undefined
  /** Summaries that are not in snapshot format, verbatim. */
  readonly summaries: ReadonlyArray<QuotedText>
}

/** An exact span of a text part, from character `start` to `end`. */
export interface Span {
  readonly entry: EntryId
  readonly part: number
  readonly start: number
  readonly end: number
  readonly text: string
  readonly handle: Handle | undefined
}

/** A verbatim text, and the entry that holds it. */
export interface QuotedText {
  readonly entry: EntryId
  readonly text: string
  readonly handle: Handle | undefined
}

/** The state of a file after the last call that touched it. */
export interface FileState {
  readonly state: "read" | "created" | "modified" | "deleted"
  readonly reads: number
  /** Number of writes and edits. */
  readonly changes: number
  readonly entry: EntryId
  /** The handle of the last response that showed the content of the file. */
  readonly handle: Handle | undefined
}

/** The last run of a command, and the number of runs. */
export interface CommandRun {
  readonly exit: number | undefined
  readonly times: number
  readonly entry: EntryId
  readonly handle: Handle | undefined
  /** The last line of the output. */
  readonly ending: string
}

/** A tool call that failed. */
export interface ToolFailureEvidence {
  readonly entry: EntryId
  /** The lines that state the error, verbatim. */
  readonly text: string
  readonly handle: Handle | undefined
}

/** One of the latest tool calls. */
export interface RecentCall {
  readonly entry: EntryId
  readonly tool: string
  readonly action: Action
  readonly failed: boolean
}

/** An exact fact and its weight. */
export interface Anchor {
  readonly kind: AnchorKind
  /**
   * Weight by uses: those of the agent and the user count fully and recent ones more; a fact that only tools showed counts a
   * little.
   */
  readonly weight: number
  /** Whether the agent or the user used it. False when only a tool showed it. */
  readonly used: boolean
}

/**
 * Fitted on recorded conversations: the number of messages after which a use counts half, and the weight of a mention by the
 * user, a program or a tool.
 */
const ranking = { agentHalfLife: 50, toolHalfLife: 20, person: 2, program: 0.5, tool: 0.05, earlierIndex: 0.5 }
/** Characters of tool output that are searched for anchors, newest first: in one output, and in all. */
const toolScan = { one: 100_000, all: 1_000_000 }

const injected =
  /<(system-reminder|command-name|command-message|local-command-stdout|local-command-stderr|bash-input|bash-stdout|bash-stderr|user-prompt-submit-hook|environment_context|user_instructions|ide_\w+)>[\s\S]*?(?:<\/\1>|$)/g
/** Matches the beginning of a message that a program wrote in full. */
const programLine =
  /^\s*(?:<task-notification>|\[Request interrupted by user[^\]]*\]|Caveat: The messages below were generated by the user)/

/** The tags around the arguments that the user typed after a command name. */
const commandArgs = /<\/?command-args>/g

/** Returns the spans that the user wrote in a text of the user's role, without the text that programs inserted. */
export const userSpans = (text: string): Array<readonly [start: number, end: number]> => {
  if (programLine.test(text)) return []
  const spans: Array<readonly [number, number]> = []
  let from = 0
  const add = (to: number) => {
    const piece = text.slice(from, to)
    const start = from + (piece.length - piece.trimStart().length)
    const end = from + piece.trimEnd().length
    if (end > start) spans.push([start, end])
  }
  const left = [...text.matchAll(injected), ...text.matchAll(commandArgs)].sort((a, b) => a.index - b.index)
  for (const match of left) {
    if (match.index < from) continue
    add(match.index)
    from = match.index + match[0].length
  }
  add(text.length)
  return spans
}

/** Returns the user's requests in a message: the spans that the user wrote, without commands to the program. */
export const requestSpans = (entry: Entry): Array<Span> =>
  entry.content.role !== "user" || entry.author !== undefined
    ? []
    : entry.content.parts.flatMap((part, at) =>
        isText(part)
          ? userSpans(part.text).flatMap(([start, end]) => {
              const text = part.text.slice(start, end)
              return /^[/?]\S*$/.test(text)
                ? []
                : [{ entry: entry.id, part: at, start, end, text, handle: entry.handles[at] }]
            })
          : []
      )

const limiting =
  /\b(?:must(?:n't)?|never|always|don'?t|do not|shall(?: not)?|should(?:n'?t)?|only|make sure|ensure|without|avoid|prefer|instead of|keep|have to|has to|required?|not allowed|forbidden|no longer|at (?:most|least)|nicht|niemals|immer|muss|nur|jamais|toujours|doit|nunca|siempre|debe)\b|必须|不要|不得|禁止|只能|务必|必ず|してはいけない|絶対/i
/** Matches a sentence. A full stop ends it only before white space, so `src/a.ts` stays whole. */
const sentence = /(?:[^\n.!?。！？]|[.!?]+(?![\s.!?]|$))+(?:[.!?]+(?=\s|$)|[。！？]+|\n|$)/g

const settled =
  /\b(?:decided|decision|I'll (?:use|go with|keep|switch|take)|going with|instead of|because|root cause|the (?:issue|problem|bug|cause|fix) (?:is|was)|turns out|chose|opted|rather than|the approach|trade-?off)\b/i

const telling =
  /error|exception|fail|panic|traceback|cannot|can't|undefined|not found|no such|denied|invalid|unexpected|refused|\bE[A-Z]{3,}\b/i

/** Returns the lines of a failed response that state the reason, verbatim. */
const failureText = (answer: string): string => {
  const linesOf = (text: string) => text.split("\n").filter((line) => line.trim() !== "")
  const text = answer.slice(0, 200_000)
  const printed = linesOf(printedText(text))
  const lines = printed.length > 0 ? printed : linesOf(text)
  const best = lines.filter((line) => telling.test(line)).slice(0, 3)
  return (best.length > 0 ? best : lines.slice(0, 2)).map((line) => firstUnits(line.trim(), 240)).join("\n")
}

/** Returns the last line that a command printed, without the labels around its output. */
const lastLine = (text: string): string => {
  const tail = lastUnits(printedText(text.length > 400_000 ? lastUnits(text, 2_000) : text), 2_000).trimEnd()
  return firstUnits(tail.slice(tail.lastIndexOf("\n") + 1).trim(), 160)
}

interface Answer {
  readonly part: Part
  readonly handle: Handle | undefined
}

const signalled = /(?:^|\n)Signal: (?!\(none\))\S/

/** Whether a call failed: its response is an error, or its command ended by a signal or with an exit code other than 0. */
const isFailure = (actions: ReadonlyArray<Action>, answer: Part): boolean => {
  if (isErrorResponse(answer)) return true
  const command = actions.find((action) => action._tag === "Command")
  if (command === undefined) return false
  return command.exit === undefined ? signalled.test(lastUnits(answerText(answer), 2_000)) : command.exit !== 0
}

const subjectKeys = [
  "file_path",
  "absolute_path",
  "path",
  "notebook_path",
  "filename",
  "file",
  "pattern",
  "query",
  "url"
]

/** Returns the subject of a call on one line: its command, its file or pattern, else its first text. */
export const subjectOf = (call: Part, actions: ReadonlyArray<Action>): string => {
  const command = actions.find((action) => action._tag === "Command")
  if (command !== undefined) return command.command
  const args = call.functionCall?.args
  const fields = typeof args === "object" && args !== null ? Object.entries(args) : []
  const named = subjectKeys.flatMap((key) => fields.find(([field]) => field === key)?.[1] ?? [])
  const subject = [...named, ...fields.map(([, value]) => value)].find(
    (value) => typeof value === "string" && value !== ""
  )
  return `${call.functionCall?.name ?? ""} ${String(subject ?? "")}`.trim()
}

/** Returns the form in which a snapshot names the subject of a failure. */
export const shortSubject = (subject: string): string => visibleLine(oneLine(subject, 100))

/** Returns a text on one line, clipped without splitting a character. */
export const oneLine = (text: string, length: number): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > length ? `${firstUnits(line, length)}…` : line
}

/** Matches an unresolved failure in a snapshot: `subject (entry handle):` and the verbatim lines. */
export const failureLine = /^- unresolved failure of ([^\n]*) \((e\d+)(?: (h_[a-z2-7]+))?\):\n([\s\S]*)$/

/** Returns the files that an earlier snapshot lists, in its order: oldest first. */
const filesOf = (snapshot: Snapshot): Array<readonly [path: string, state: FileState]> =>
  [...snapshot.file_system_state, ...snapshot.artifact_trail].reverse().flatMap(({ text }) => {
    const [, path, state, notes = ""] = fileLine.exec(text) ?? []
    if (path === undefined || state === undefined) return []
    const count = (noun: string) => Number(new RegExp(`(\\d+) ${noun}`).exec(notes)?.[1] ?? 0)
    const entry = /\be[1-9]\d*\b/.exec(notes)?.[0]
    const handle = mentions(notes)[0]
    return entry === undefined || !isState(state)
      ? []
      : [
          [
            unprotect(path),
            { state, reads: count("read"), changes: count("change"), entry: EntryId.make(entry), handle }
          ] as const
        ]
  })

const isState = (state: string): state is FileState["state"] =>
  state === "read" || state === "created" || state === "modified" || state === "deleted"

const failuresOf = (snapshot: Snapshot): Array<readonly [subject: string, failure: ToolFailureEvidence]> =>
  [...snapshot.task_state].reverse().flatMap(({ text }) => {
    const [, subject, entry, handle, lines = ""] = failureLine.exec(text) ?? []
    if (subject === undefined || entry === undefined) return []
    return [
      [
        unprotect(subject),
        {
          entry: EntryId.make(entry),
          text: unprotect(lines.replace(/^ {4}/gm, "")),
          handle: handle === undefined ? undefined : Handle.make(handle)
        }
      ] as const
    ]
  })

interface Weighing {
  kind: AnchorKind
  used: number
  usedAt: number
  shown: number
  shownAt: number
}

const nextState = (before: FileState | undefined, action: Action): FileState["state"] => {
  const existed = before !== undefined && before.state !== "deleted"
  switch (action._tag) {
    case "Delete":
      return "deleted"
    case "Write":
      if (before?.state === "created") return "created"
      return (action.created ?? !existed) ? "created" : "modified"
    case "Edit":
      return before?.state === "created" ? "created" : "modified"
    default:
      return existed ? before.state : "read"
  }
}

const maxRecentCalls = 40

/** Returns the index of the first entry whose tool outputs are searched, at about four characters a token. */
const firstScanned = (entries: ReadonlyArray<Entry>): number => {
  let left = toolScan.all / 4
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index]
    if (entry === undefined) continue
    for (const [at, part] of entry.content.parts.entries()) {
      if (isResponse(part)) left -= Math.min(entry.tokens[at] ?? 0, toolScan.one / 4)
    }
    if (left < 0) return index
  }
  return 0
}

/** Tells whether the user wrote these words in that entry. */
export type UserWordsWitness = (words: UserWords) => boolean

/** Whether a text contains these words exactly, ignoring secrets and these values. */
const holds = (text: string, words: string, secrets: ReadonlyArray<Secret>): boolean =>
  text.includes(words) || (words.includes(markStart) && runSync(withoutValues(redact(text), secrets)).includes(words))

/** Makes a witness from these entries. Secrets are removed first, because quotations are made without them. */
export const witnessOf = (entries: ReadonlyArray<Entry>, secrets: ReadonlyArray<Secret> = []): UserWordsWitness => {
  const strong = strongSecrets(distinctiveSecrets(secrets, maxDistinctiveSecrets.everywhere))
  let byId: ReadonlyMap<string, Entry> | undefined
  return ({ entry, text }) => {
    byId ??= new Map(entries.map((known) => [known.id, known]))
    const known = byId.get(entry)
    return (
      known?.content.role === "user" &&
      known.author === undefined &&
      known.content.parts.some((part) => isText(part) && holds(part.text, text, strong))
    )
  }
}

/** Gathers evidence from entries, oldest first, without any secrets. */
export function* gatherEvidence(
  whole: ReadonlyArray<Entry>,
  said: UserWordsWitness = witnessOf(whole),
  secrets: ReadonlyArray<Secret> = []
): SlicedWork<Evidence> {
  const { entries } = yield* redactedEntries(whole, secrets)
  const requests: Array<Span> = []
  const constraints: Array<Span> = []
  const files = new Map<string, FileState>()
  const commands = new Map<string, CommandRun>()
  const errors = new Map<string, ToolFailureEvidence>()
  const decisions: Array<QuotedText> = []
  const summaries: Array<QuotedText> = []
  const recent: Array<RecentCall> = []
  const weighings = new Map<string, Weighing>()
  let todos: Evidence["todos"]
  let previous: Snapshot | undefined

  const { responseOf } = pairing(entries.map((entry): Content => entry.content))
  const answerOf = (item: number, part: number): Answer | undefined => {
    const place = responseOf.get(placeKey({ item, part }))
    const entry = place === undefined ? undefined : entries[place.item]
    const answer = place === undefined ? undefined : entry?.content.parts[place.part]
    return place === undefined || answer === undefined
      ? undefined
      : { part: answer, handle: entry?.handles[place.part] }
  }

  const scannedFrom = firstScanned(entries)
  yield entries.length * 20
  let now = 0
  const use = (text: string, amount: number) =>
    eachAnchor(text, (anchor, kind) => {
      const known = weighings.get(anchor)
      if (known === undefined) weighings.set(anchor, { kind, used: amount, usedAt: now, shown: 0, shownAt: now })
      else {
        known.used = known.used * 0.5 ** ((now - known.usedAt) / ranking.agentHalfLife) + amount
        known.usedAt = now
      }
    })
  const show = (text: string) =>
    eachAnchor(text.slice(0, toolScan.one), (anchor, kind) => {
      const known = weighings.get(anchor)
      if (known === undefined) weighings.set(anchor, { kind, used: 0, usedAt: now, shown: 1, shownAt: now })
      else {
        known.shown = known.shown * 0.5 ** ((now - known.shownAt) / ranking.toolHalfLife) + 1
        known.shownAt = now
      }
    })

  const touch = (name: string, action: Action, entry: Entry, handle: Handle | undefined) => {
    // Uses the form that a snapshot shows, so that the same file in an earlier snapshot is recognised.
    const path = visibleLine(name)
    const before = files.get(path)
    const reads = (before?.reads ?? 0) + (action._tag === "Read" ? 1 : 0)
    const changes = (before?.changes ?? 0) + (action._tag === "Write" || action._tag === "Edit" ? 1 : 0)
    // Reinserts the path, so that the file touched last comes last.
    files.delete(path)
    files.set(path, {
      state: nextState(before, action),
      reads,
      changes,
      entry: entry.id,
      handle: action._tag === "Read" ? (handle ?? before?.handle) : before?.handle
    })
  }

  const act = (entry: Entry, action: Action, answer: Answer | undefined) => {
    switch (action._tag) {
      case "Read":
      case "Write":
      case "Edit":
        touch(action.path, action, entry, answer?.handle)
        break
      case "Delete":
        touch(action.path, action, entry, undefined)
        // Deleting a folder deletes the files in it.
        for (const path of Array.from(files.keys()))
          if (path.startsWith(`${visibleLine(action.path)}/`)) touch(path, action, entry, undefined)
        break
      case "Command": {
        const times = (commands.get(action.command)?.times ?? 0) + 1
        commands.delete(action.command)
        commands.set(action.command, {
          exit: action.exit,
          times,
          entry: entry.id,
          handle: answer?.handle,
          ending: lastLine(answerText(answer?.part))
        })
        inBackground(action.command, answer)
        break
      }
      case "Todos":
        todos = { entry: entry.id, todos: action.todos }
        break
      default:
    }
  }

  /** Background commands, by the id under which the agent asks for their output. */
  const background = new Map<string, string>()
  const inBackground = (command: string, answer: Answer | undefined) => {
    const id = /running in background with ID: (\w+)/.exec(answerText(answer?.part).slice(0, 500))?.[1]
    if (id !== undefined) background.set(id, command)
  }
  /** A request for the output of a background command may show how it ended. */
  const ended = (call: Part, answer: Answer) => {
    const args = call.functionCall?.args
    const named = typeof args === "object" && args !== null ? Object.values(args) : []
    const command = named.map((value) => background.get(String(value))).find((known) => known !== undefined)
    const exit = /<exit_code>(-?\d+)<\/exit_code>/.exec(answerText(answer.part))?.[1]
    const run = command === undefined ? undefined : commands.get(command)
    if (command === undefined || run === undefined || exit === undefined) return
    commands.set(command, { ...run, exit: Number(exit) })
  }

  const called = (entry: Entry, call: Part, answer: Answer | undefined) => {
    const actions = actionsOf(call, answer?.part)
    const tool = call.functionCall?.name ?? ""
    const failed = answer !== undefined && isFailure(actions, answer.part)
    for (const action of actions) act(entry, action, answer)
    const subject = subjectOf(call, actions)
    const performed: ReadonlyArray<Action> = actions.length > 0 ? actions : [{ _tag: "Other", summary: subject }]
    for (const action of performed) recent.push({ entry: entry.id, tool, action, failed })
    recent.splice(0, recent.length - maxRecentCalls)
    if (answer === undefined) return
    ended(call, answer)
    // The latest failure of a subject replaces earlier ones; a success with the same subject resolves it.
    errors.delete(subject)
    errors.delete(shortSubject(subject))
    if (failed)
      errors.set(subject, { entry: entry.id, text: failureText(answerText(answer.part)), handle: answer.handle })
  }

  for (const [index, entry] of entries.entries()) {
    for (const [at, part] of entry.content.parts.entries()) {
      now += 1
      let cost = 200
      const handle = entry.handles[at]
      if (entry.author === "summary" && isText(part)) {
        const snapshot = parseSnapshot(part.text)
        if (isSnapshot(snapshot)) {
          const known = attributeWords(snapshot, said)
          previous = previous === undefined ? known : mergeSnapshots(previous, known)
          for (const [path, state] of filesOf(known)) files.set(path, state)
          for (const [subject, failure] of failuresOf(known)) errors.set(subject, failure)
        } else if (entry.content.role === "user") summaries.push({ entry: entry.id, text: part.text, handle })
        use(part.text, ranking.earlierIndex)
        cost += part.text.length * 8
      } else if (entry.content.role === "user" && isText(part) && entry.author === undefined) {
        for (const span of requestSpans({
          ...entry,
          content: { role: "user", parts: [part] },
          handles: handle === undefined ? [] : [handle]
        })) {
          const { start, text } = span
          requests.push({ ...span, part: at })
          for (const match of text.slice(0, 50_000).matchAll(sentence)) {
            const piece = match[0]
            if (!limiting.test(piece) || piece.trim().length < 8) continue
            const from = start + match.index + (piece.length - piece.trimStart().length)
            const to = start + match.index + piece.trimEnd().length
            constraints.push({
              entry: entry.id,
              part: at,
              start: from,
              end: to,
              text: part.text.slice(from, to),
              handle
            })
          }
          use(text, ranking.person)
        }
        cost += part.text.length * 10
      } else if (isCall(part) || isThought(part) || (isText(part) && entry.content.role === "model")) {
        agentTexts(part, (text) => {
          use(text, 1)
          cost += text.length * 8
        })
        if (isCall(part)) {
          called(entry, part, answerOf(index, at))
        } else if (isText(part)) {
          for (const match of part.text.slice(0, 20_000).matchAll(sentence)) {
            const text = match[0].trim()
            if (text.length >= 20 && text.length <= 400 && !text.endsWith(":") && settled.test(text))
              decisions.push({ entry: entry.id, text, handle })
          }
        }
      } else if (entry.author === "program" && isText(part)) {
        use(part.text.slice(0, toolScan.one), ranking.program)
        cost += Math.min(part.text.length, toolScan.one) * 8
      } else if (isResponse(part) && index >= scannedFrom) {
        toolTexts(part, (text) => {
          show(text)
          cost += Math.min(text.length, toolScan.one) * 8
        })
      }
      yield cost
    }
  }

  const anchors = new Map<string, Anchor>()
  for (const [name, { kind, shown, shownAt, used, usedAt }] of weighings) {
    const weight =
      used * 0.5 ** ((now - usedAt) / ranking.agentHalfLife) +
      ranking.tool * shown * 0.5 ** ((now - shownAt) / ranking.toolHalfLife)
    anchors.set(name, { kind, weight, used: used > 0 })
  }
  yield anchors.size * 20
  return {
    requests,
    constraints,
    files,
    commands,
    errors,
    todos,
    decisions,
    recent,
    anchors,
    previous: previous ?? (summaries.length > 0 ? emptySnapshot : undefined),
    summaries
  }
}
