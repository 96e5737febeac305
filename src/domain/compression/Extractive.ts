import type { Entry } from "../conversation/Conversation.ts"
import { firstUnits } from "../text/Bytes.ts"
import type { Secret } from "../text/Redaction.ts"
import type { SlicedWork } from "../text/SlicedWork.ts"
import { estimateText } from "../tokens/Tokens.ts"
import { type AnchorKind, anchorsOf } from "./Anchors.ts"
import {
  type Evidence,
  failureLine,
  type FileState,
  gatherEvidence,
  oneLine,
  type RecentCall,
  shortSubject,
  type Span,
  type UserWordsWitness
} from "./Evidence.ts"
import {
  emptySnapshot,
  fileLine,
  type SnapshotItem,
  statement,
  labelledWordsItem,
  listItem,
  renderSnapshot,
  type SectionName,
  type Snapshot,
  snapshotTokens
} from "./Snapshot.ts"
import { type Action } from "./ToolCalls.ts"

/**
 * Options of the extractive snapshot. Code writes it from evidence alone, without a model, so the same conversation always
 * gives the same text. Each section has a share of one budget; what the sections do not use goes to the index of names.
 *
 * One file: the sections, the budget they share and the audit that completes them decide together what fits.
 */
export interface ExtractOptions {
  /** Tells whether the user wrote these words in that entry. Absent: decided from the summarised entries. */
  readonly userWords?: UserWordsWitness | undefined
  /** Secrets of the whole conversation. The snapshot shows none of their values. */
  readonly secrets?: ReadonlyArray<Secret> | undefined
  /** Upper bound for the rendered snapshot, in estimated tokens. */
  readonly budget: number
  /** What the user wants kept. Names and sentences that mention it come first. */
  readonly focus?: string | undefined
  /** Texts that stay in the window. Their names are not indexed again. */
  readonly kept: ReadonlyArray<string>
  readonly cwd?: string | undefined
  /** Spans to show verbatim: the original request, the latest request and the user's pins. */
  readonly pins?:
    | {
        readonly original?: Span | undefined
        readonly latest?: Span | undefined
        readonly pinned?: ReadonlyArray<Span> | undefined
      }
    | undefined
}

/** The audit of a snapshot's exact facts: their number, and where they are. */
export interface AnchorAudit {
  /** Anchors of the summarised messages that were checked: the 1,000 with the highest weight, or all. */
  readonly anchors: number
  readonly inSnapshot: number
  readonly inTail: number
  /** Anchors that code added to the summary. */
  readonly restored: number
}

/** A snapshot, its text within the budget, and the audit of its facts. */
export interface ExtractedSnapshot {
  readonly snapshot: Snapshot
  readonly text: string
  readonly audit: AnchorAudit
}

/** Shares of the budget. Unused shares and the remainder go to the index. */
const shares = {
  goal: 0.1,
  constraints: 0.06,
  decisions: 0.04,
  errors: 0.04,
  summary: 0.08,
  artifacts: 0.07,
  files: 0.05,
  commands: 0.05,
  recent: 0.05,
  todos: 0.05
}

const cost = (entry: SnapshotItem): number => estimateText(entry.text) + 1

/** Returns as many items as fit the budget, in the given order. */
const within = (items: Iterable<SnapshotItem>, budget: number): Array<SnapshotItem> => {
  const kept: Array<SnapshotItem> = []
  let left = budget
  for (const candidate of items) {
    const tokens = cost(candidate)
    if (tokens > left) continue
    left -= tokens
    kept.push(candidate)
  }
  return kept
}

/** Returns the user's words: whole if they fit the budget, else their beginning and where the rest is. */
const spanItems = (label: string, span: Span, budget: number): Array<SnapshotItem> => {
  const whole = labelledWordsItem(label, span)
  if (cost(whole) <= budget) return [whole]
  let length = Math.min(span.text.length, Math.floor(budget * 3))
  while (length > 0 && cost(labelledWordsItem(label, { ...span, text: span.text.slice(0, length) })) > budget - 24) {
    length = Math.floor(length * 0.85)
  }
  const shown = firstUnits(span.text, length)
  if (shown === "") return []
  const where = span.handle === undefined ? "" : `; all of it: ${span.handle}`
  return [
    labelledWordsItem(label, { ...span, text: shown }),
    statement(
      `${label} rest`,
      `${span.text.length - shown.length} more characters of these words are not shown${where}`
    )
  ]
}

const ofEntry = (entry: string, handle: string | undefined): string =>
  handle === undefined ? entry : `${entry} ${handle}`

const fileText = (path: string, file: FileState): string => {
  const counts = [
    file.changes > 0 ? `${file.changes} ${file.changes === 1 ? "change" : "changes"}` : "",
    file.reads > 0 ? `${file.reads} ${file.reads === 1 ? "read" : "reads"}` : ""
  ].filter((text) => text !== "")
  return `${path}: ${file.state}${counts.length > 0 ? ` (${counts.join(", ")}; ${ofEntry(file.entry, file.handle)})` : ` (${file.entry})`}`
}

const actionText = (action: Action): string => {
  switch (action._tag) {
    case "Read":
      return `read ${action.path}`
    case "Write":
      return `wrote ${action.path}`
    case "Edit":
      return `edited ${action.path}`
    case "Delete":
      return `deleted ${action.path}`
    case "Command":
      return `ran ${oneLine(action.command, 120)} → ${action.exit === undefined ? "no exit code" : `exit ${action.exit}`}`
    case "Search":
      return `searched ${oneLine(action.query, 80)}`
    case "Todos":
      return `wrote the todo list (${action.todos.length})`
    case "Other":
      return action.summary === "" ? "called" : oneLine(action.summary, 100)
  }
}

const recentItem = (recent: RecentCall): SnapshotItem =>
  statement(
    `${recent.entry} ${actionText(recent.action)}`,
    `${recent.entry} ${recent.tool}: ${actionText(recent.action)}${recent.failed && recent.action._tag !== "Command" ? " (failed)" : ""}`
  )

const touchesFocus = (text: string, focus: ReadonlyArray<string>): boolean => {
  const lower = text.toLowerCase()
  return focus.some((word) => lower.includes(word))
}

const focusWords = (focus: string | undefined): Array<string> =>
  (focus ?? "")
    .toLowerCase()
    .match(/[\p{L}\p{N}_./-]{3,}/gu)
    ?.filter((word) => !/^(?:the|and|keep|for|with|that|this)$/.test(word)) ?? []

const newestFirst = <A>(values: Iterable<A>): Array<A> => [...values].reverse()

const open = (status: string): boolean => !/^(?:completed|done|cancelled|canceled)$/i.test(status)

/** The items that list names: those that the agent or the user used, and those that only tools showed. */
const indexKeys = ["names used", "names shown by tools"] as const
const indexLine = /^- names (?:used|shown by tools)[^:]*:\s*/
const indexTexts: Readonly<Record<(typeof indexKeys)[number], string>> = {
  "names used": "names used by the agent or the user, by weight:",
  "names shown by tools": "names shown by tools only, newest first:"
}

/** Returns the items of the index. A list without names gives no item. */
const indexItems = (names: ReadonlyArray<readonly [name: string, used: boolean]>): Array<SnapshotItem> =>
  indexKeys.flatMap((key) => {
    const listed = names.filter(([, used]) => used === (key === "names used")).map(([name]) => name)
    return listed.length === 0 ? [] : [listItem(key, indexTexts[key], listed)]
  })

/** Returns the names in an earlier snapshot's index, best first. */
const earlierIndex = (snapshot: Snapshot | undefined): Array<string> =>
  (snapshot?.key_knowledge ?? []).flatMap((known) =>
    indexLine.test(known.text)
      ? known.text
          .replace(indexLine, "")
          .split(/\s+/)
          .filter((name) => name !== "")
      : []
  )

/** Weight by kind. A bare number is rarely useful outside its sentence unless it was used often. */
const kindWeight: Readonly<Record<AnchorKind, number>> = { path: 1, url: 0.7, symbol: 1, id: 1, number: 0.8 }
/** How much the length of a name reduces its rank. */
const lengthPenalty = 0.7

const ranked = (evidence: Evidence, focus: ReadonlyArray<string>): Array<readonly [name: string, tokens: number]> => {
  const scores: Array<readonly [string, number, number]> = []
  for (const [name, { kind, weight }] of evidence.anchors) {
    const tokens = estimateText(name) + 1
    const wanted = focus.length > 0 && touchesFocus(name, focus) ? 20 : 1
    scores.push([name, tokens, (weight * kindWeight[kind] * wanted) / tokens ** lengthPenalty])
  }
  return scores.sort((a, b) => b[2] - a[2] || (a[0] < b[0] ? -1 : 1)).map(([name, tokens]) => [name, tokens] as const)
}

/**
 * Returns what an earlier snapshot says in a section and the new items do not cover, newest first. Files and failures are
 * left out, because the evidence already holds them.
 */
const carried = (evidence: Evidence, name: SectionName, taken: ReadonlyArray<SnapshotItem>): Array<SnapshotItem> => {
  const keys = new Set(taken.map((known) => known.key))
  return (evidence.previous?.[name] ?? []).filter(
    ({ key, text }) => !keys.has(key) && !indexLine.test(text) && !fileLine.test(text) && !failureLine.test(text)
  )
}

/** Matches `[pending] text`, one entry of a todo list. The next list replaces the whole list. */
const todoLine = /^- \[[^\]]+\] /

/** The input of a section: the evidence, its share of the budget in tokens, and the user's focus. */
interface Room {
  readonly evidence: Evidence
  readonly options: ExtractOptions
  readonly focus: ReadonlyArray<string>
  readonly share: (name: keyof typeof shares) => number
}

const roomOf = (evidence: Evidence, options: ExtractOptions): Room => ({
  evidence,
  options,
  focus: focusWords(options.focus),
  share: (name) => Math.floor(options.budget * shares[name])
})

/** Moves texts that mention the focus to the front. */
const focused = <A extends { readonly text: string }>(
  focus: ReadonlyArray<string>,
  all: ReadonlyArray<A>
): Array<A> => [
  ...all.filter(({ text }) => touchesFocus(text, focus)),
  ...all.filter(({ text }) => !touchesFocus(text, focus))
]

/** Writes the original and the latest request verbatim, and what an earlier snapshot held besides. */
const goalItems = ({ evidence, options, share }: Room): Array<SnapshotItem> => {
  const { original, latest = evidence.requests.at(-1) } = options.pins ?? {}
  const earlier = evidence.previous?.overall_goal.find((known) => known.key === "original request")
  // After an earlier summary, the first request in the entries is not the original one.
  const first = original ?? (evidence.previous === undefined ? evidence.requests[0] : undefined)
  const goal: Array<SnapshotItem> = []
  if (first !== undefined) goal.push(...spanItems("original request", first, share("goal")))
  else if (earlier !== undefined) goal.push(...within([earlier], share("goal") * 2))
  if (latest !== undefined && latest.text !== first?.text) {
    goal.push(...spanItems("latest request", latest, share("goal")))
  }
  goal.push(...within(carried(evidence, "overall_goal", goal), share("goal")))
  return goal
}

/** Writes the user's pins, newest first, within a fifth of the budget. */
const pinnedItems = ({ options }: Room): Array<SnapshotItem> => {
  const pinned: Array<SnapshotItem> = []
  let left = options.budget * 0.2
  for (const span of newestFirst(options.pins?.pinned ?? [])) {
    const items = spanItems(`pinned by the user (${span.entry}:${span.part}:${span.start})`, span, left)
    pinned.push(...items)
    left -= items.reduce((sum, each) => sum + cost(each), 0)
  }
  return pinned
}

/** Writes the user's pins, then the user's constraints, newest first, verbatim. */
const constraintItems = (room: Room): Array<SnapshotItem> => {
  const { evidence, focus, share } = room
  const distinct = [...new Map(evidence.constraints.map((span) => [span.text, span])).values()]
  const constraints = pinnedItems(room)
  const said = within(
    focused(focus, newestFirst(distinct)).map((span) => labelledWordsItem(`the user said (${span.entry})`, span)),
    share("constraints")
  )
  constraints.push(...said)
  constraints.push(...within(carried(evidence, "active_constraints", constraints), share("constraints")))
  return constraints
}

const artifactItems = ({ evidence, share }: Room): Array<SnapshotItem> => {
  const artifacts = within(
    newestFirst(evidence.files)
      .filter(([, file]) => file.state !== "read")
      .map(([path, file]) => statement(path, fileText(path, file))),
    share("artifacts")
  )
  artifacts.push(...within(carried(evidence, "artifact_trail", artifacts), share("artifacts") / 2))
  return artifacts
}

const fileItems = ({ evidence, options, share }: Room): Array<SnapshotItem> => {
  const files = within(
    [
      ...(options.cwd === undefined ? [] : [statement("cwd", `working directory: ${options.cwd}`)]),
      ...newestFirst(evidence.files)
        .filter(([, file]) => file.state === "read")
        .map(([path, file]) => statement(path, fileText(path, file)))
    ],
    share("files")
  )
  files.push(...within(carried(evidence, "file_system_state", files), share("files") / 2))
  return files
}

/** Writes the commands with their last results, newest first, then the latest calls in order. */
const actionItems = ({ evidence, share }: Room): Array<SnapshotItem> => {
  const commands = newestFirst(evidence.commands).map(([command, run]) =>
    statement(
      command,
      `${oneLine(command, 160)} → ${run.exit === undefined ? "no exit code" : `exit ${run.exit}`}${
        run.ending === "" ? "" : `, last line: ${oneLine(run.ending, 100)}`
      } (${ofEntry(run.entry, run.handle)})`
    )
  )
  return [
    ...within(commands, share("commands")),
    ...within(newestFirst(evidence.recent).map(recentItem), share("recent")).reverse()
  ]
}

/** Writes the todo list, open items first, and the unresolved failures. */
const taskItems = ({ evidence, share }: Room): Array<SnapshotItem> => {
  const list = [...(evidence.todos?.todos ?? [])].sort((a, b) => Number(open(b.status)) - Number(open(a.status)))
  const failures = newestFirst(evidence.errors).map(([what, failure]) =>
    statement(
      what,
      `unresolved failure of ${shortSubject(what)} (${ofEntry(failure.entry, failure.handle)}):`,
      failure.text.split("\n")
    )
  )
  const task = [
    ...within(
      list.map((todo) => statement(todo.text, `[${todo.status}] ${oneLine(todo.text, 240)}`)),
      share("todos")
    ),
    ...within(failures, share("errors"))
  ]
  const older = carried(evidence, "task_state", task)
  task.push(
    ...within(evidence.todos === undefined ? older : older.filter(({ text }) => !todoLine.test(text)), share("todos"))
  )
  return task
}

/** Writes the agent's decisions and the content of earlier summaries. */
const knowledgeItems = ({ evidence, focus, share }: Room): Array<SnapshotItem> => {
  const decisions = focused(focus, newestFirst(evidence.decisions)).map((said) =>
    statement(said.text, `the agent (${said.entry}): ${oneLine(said.text, 300)}`)
  )
  const summaries = evidence.summaries.map((said) => {
    const text = firstUnits(said.text, share("summary") * 3)
    return statement(
      `summary ${said.entry}`,
      `an earlier summary, written by a model (${ofEntry(said.entry, said.handle)}): ${oneLine(text, text.length)}`
    )
  })
  const knowledge = [
    ...within(decisions, share("decisions")),
    ...summaries.flatMap((summary) => within([summary], share("summary")))
  ]
  knowledge.push(...within(carried(evidence, "key_knowledge", knowledge), share("decisions") + share("summary")))
  return knowledge
}

/** Writes a snapshot from the evidence that `gatherEvidence` returned. */
export function* composeSnapshot(evidence: Evidence, options: ExtractOptions): SlicedWork<ExtractedSnapshot> {
  const room = roomOf(evidence, options)
  const snapshot: Snapshot = {
    overall_goal: goalItems(room),
    active_constraints: constraintItems(room),
    key_knowledge: knowledgeItems(room),
    artifact_trail: artifactItems(room),
    file_system_state: fileItems(room),
    recent_actions: actionItems(room),
    task_state: taskItems(room)
  }
  yield options.budget * 40
  return yield* withIndex(fitToBudget(snapshot, options.budget), evidence, options, room.focus)
}

/** The order in which sections lose items: the least informative first. */
const dropOrder: ReadonlyArray<SectionName> = [
  "file_system_state",
  "recent_actions",
  "key_knowledge",
  "artifact_trail",
  "active_constraints",
  "task_state",
  "overall_goal"
]

/** Drops items from the ends of sections, in `dropOrder`, until the snapshot fits its budget. */
export const fitToBudget = (snapshot: Snapshot, budget: number): Snapshot => {
  const fitted: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...snapshot }
  const sizes = new Map(dropOrder.map((name) => [name, snapshot[name].map(cost)]))
  let total = snapshotTokens(emptySnapshot)
  for (const costs of sizes.values()) for (const tokens of costs) total += tokens
  for (const name of dropOrder) {
    const costs = sizes.get(name) ?? []
    let kept = costs.length
    for (; total > budget && kept > 0; kept -= 1) total -= costs[kept - 1] ?? 0
    fitted[name] = snapshot[name].slice(0, kept)
  }
  // The estimate adds up single items; rendered together they may take slightly more.
  for (const name of dropOrder) {
    while (snapshotTokens(fitted) > budget && fitted[name].length > 0) fitted[name] = fitted[name].slice(0, -1)
  }
  return fitted
}

/** The search for more names stops after this many that did not fit. */
const maxAuditRounds = 100

/** Number of anchors, highest weight first, that an audit checks. */
const audited = 1_000

/** Adds the index: the best names that fit the rest of the budget, without those that stay in the window. */
function* withIndex(
  snapshot: Snapshot,
  evidence: Evidence,
  options: ExtractOptions,
  focus: ReadonlyArray<string>
): SlicedWork<ExtractedSnapshot> {
  const text = renderSnapshot(snapshot)
  const candidates = ranked(evidence, focus)
  yield candidates.length * 200
  const inSnapshot = anchorsOf(text)
  const inTail = new Set<string>()
  for (const kept of options.kept) {
    for (const name of anchorsOf(kept).keys()) inTail.add(name)
    yield kept.length * 8
  }
  let left = options.budget - estimateText(text) - 32
  const names: Array<readonly [name: string, used: boolean]> = []
  let listed = ""
  let misses = 0
  for (const name of earlierNamesFirst(candidates, evidence)) {
    if (left < 3) break
    // Names in a row share their rounding.
    const tokens = estimateText(name) - 0.4
    if (tokens > left) misses += 1
    if (misses > maxAuditRounds) break
    if (tokens > left || inSnapshot.has(name) || inTail.has(name) || listed.includes(name) || text.includes(name))
      continue
    names.push([name, evidence.anchors.get(name)?.used ?? true])
    listed += ` ${name}`
    left -= tokens
    yield 2_000
  }
  const { final, restored } = shrunkIndex(snapshot, names, options.budget)
  const rendered = renderSnapshot(final)
  const used = candidates.slice(0, audited)
  let held = 0
  let tail = 0
  const shown = anchorsOf(rendered)
  for (const [name] of used) {
    if (shown.has(name) || rendered.includes(name)) held += 1
    else if (inTail.has(name)) tail += 1
    yield 2_000
  }
  return { snapshot: final, text: rendered, audit: { anchors: used.length, inSnapshot: held, inTail: tail, restored } }
}

/** Returns the candidates by rank. The best names of an earlier index are among them, because they were used before. */
const earlierNamesFirst = (candidates: ReadonlyArray<readonly [string, number]>, evidence: Evidence): Array<string> => {
  const earlier = earlierIndex(evidence.previous)
  const names = candidates.map(([name]) => name)
  if (earlier.length === 0) return names
  const merged: Array<string> = []
  for (let i = 0; i < Math.max(names.length, earlier.length); i += 1) {
    const name = names[i]
    const old = earlier[Math.floor(i / 2)]
    if (name !== undefined) merged.push(name)
    if (old !== undefined && i % 2 === 0) merged.push(old)
  }
  return [...new Set(merged)]
}

/** Returns the snapshot with as many of the names as its budget allows. */
const shrunkIndex = (
  snapshot: Snapshot,
  names: ReadonlyArray<readonly [name: string, used: boolean]>,
  budget: number
): { readonly final: Snapshot; readonly restored: number } => {
  for (let count = names.length; count > 0; count = Math.floor(count * 0.97) - 1) {
    const items = indexItems(names.slice(0, count))
    const final = { ...snapshot, key_knowledge: [...snapshot.key_knowledge, ...items] }
    if (snapshotTokens(final) <= budget) return { final, restored: count }
  }
  return { final: snapshot, restored: 0 }
}

/**
 * Completes a snapshot that a model wrote. The user's requests and constraints go to the front verbatim, open todos and
 * failures are added, the text is cut to its share of the budget, and the names that the model omitted form an index.
 */
export function* completeSnapshot(
  written: Snapshot,
  evidence: Evidence,
  options: ExtractOptions
): SlicedWork<ExtractedSnapshot> {
  const room = roomOf(evidence, options)
  const inFront = (exact: ReadonlyArray<SnapshotItem>, name: SectionName): ReadonlyArray<SnapshotItem> => {
    const keys = new Set(exact.map((known) => known.key))
    const texts = new Set(exact.map((known) => known.text))
    return [...exact, ...written[name].filter(({ key, text }) => !keys.has(key) && !texts.has(text))]
  }
  const snapshot: Snapshot = {
    ...written,
    overall_goal: inFront(goalItems(room), "overall_goal"),
    active_constraints: inFront(constraintItems(room), "active_constraints"),
    task_state: inFront(taskItems(room), "task_state")
  }
  yield options.budget * 40
  return yield* withIndex(fitToBudget(snapshot, Math.floor(options.budget * modelShare)), evidence, options, room.focus)
}

/** The largest share of the budget for the model's own words. The rest is for exact facts that it omitted. */
const modelShare = 0.75

/** Writes the extractive snapshot of some entries. */
export function* extractSnapshot(
  entries: ReadonlyArray<Entry>,
  options: ExtractOptions
): SlicedWork<ExtractedSnapshot> {
  return yield* composeSnapshot(yield* gatherEvidence(entries, options.userWords, options.secrets), options)
}
