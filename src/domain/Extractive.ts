import { type AnchorKind, anchorsOf } from "./Anchors.ts"
import { firstUnits } from "./Bytes.ts"
import type { Entry } from "./Conversation.ts"
import {
  type Evidence,
  failureLine,
  type FileState,
  gather,
  oneLine,
  type Recent,
  shortSubject,
  type Span,
  type Witness
} from "./Evidence.ts"
import {
  emptySnapshot,
  fileLine,
  type Item,
  item,
  labelled,
  listItem,
  render,
  type SectionName,
  type Snapshot,
  snapshotTokens
} from "./Snapshot.ts"
import type { Secret } from "./Redaction.ts"
import { estimateText } from "./Tokens.ts"
import { type Action } from "./ToolCalls.ts"
import type { Work } from "./Work.ts"

/**
 * The snapshot that code writes, from evidence alone: no model, the same text for the same conversation. Every section has
 * its share of one budget; what sections leave over goes to the index of names.
 */
export interface ExtractOptions {
  /** Whether the user wrote these words in that entry; absent: by the entries that are summarised. */
  readonly said?: Witness | undefined
  /** Secrets of the whole conversation: none of their values is shown. */
  readonly secrets?: ReadonlyArray<Secret> | undefined
  /** Upper bound for the rendered snapshot, in estimated tokens. */
  readonly budget: number
  /** What the person wants kept: names and sentences that speak of it come first. */
  readonly focus?: string | undefined
  /** Texts that stay in the window anyway: what they hold need not be indexed again. */
  readonly kept: ReadonlyArray<string>
  readonly cwd?: string | undefined
  /** Spans that have to be shown word for word: the original and the latest request, and what the person pinned. */
  readonly pins?:
    | {
        readonly original?: Span | undefined
        readonly latest?: Span | undefined
        readonly asked?: ReadonlyArray<Span> | undefined
      }
    | undefined
}

/** What was found out about the exact facts of a snapshot. */
export interface Audit {
  /** Names, numbers, paths, … of what was summarised that were looked for: the 1,000 that weigh most, or all. */
  readonly anchors: number
  readonly inSnapshot: number
  readonly inTail: number
  /** Added by code to what the summary held. */
  readonly restored: number
}

/** A snapshot, its text within the budget, and what was found out about its facts. */
export interface Extract {
  readonly snapshot: Snapshot
  readonly text: string
  readonly audit: Audit
}

/** Shares of the budget. What is not used, and what is not listed, goes to the index. */
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

const cost = (entry: Item): number => estimateText(entry.text) + 1

/** As many items as fit, in the order given. */
const within = (items: Iterable<Item>, budget: number): Array<Item> => {
  const kept: Array<Item> = []
  let left = budget
  for (const candidate of items) {
    const tokens = cost(candidate)
    if (tokens > left) continue
    left -= tokens
    kept.push(candidate)
  }
  return kept
}

/** The person's words: all of them if they fit the budget, else their beginning and where to find the rest. */
const spanItems = (label: string, span: Span, budget: number): Array<Item> => {
  const whole = labelled(label, span)
  if (cost(whole) <= budget) return [whole]
  let length = Math.min(span.text.length, Math.floor(budget * 3))
  while (length > 0 && cost(labelled(label, { ...span, text: span.text.slice(0, length) })) > budget - 24) {
    length = Math.floor(length * 0.85)
  }
  const shown = firstUnits(span.text, length)
  if (shown === "") return []
  const where = span.handle === undefined ? "" : `; all of it: ${span.handle}`
  return [
    labelled(label, { ...span, text: shown }),
    item(`${label} rest`, `${span.text.length - shown.length} more characters of these words are not shown${where}`)
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

const recentItem = (recent: Recent): Item =>
  item(
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

/** The items that list names: those the agent or the person used, and those that only tools showed. */
const indexKeys = ["names used", "names shown by tools"] as const
const indexLine = /^- names (?:used|shown by tools)[^:]*:\s*/
const indexTexts: Readonly<Record<(typeof indexKeys)[number], string>> = {
  "names used": "names used by the agent or the user, by weight:",
  "names shown by tools": "names shown by tools only, newest first:"
}

/** The index as items: no item for a list without names. */
const indexItems = (names: ReadonlyArray<readonly [name: string, used: boolean]>): Array<Item> =>
  indexKeys.flatMap((key) => {
    const listed = names.filter(([, used]) => used === (key === "names used")).map(([name]) => name)
    return listed.length === 0 ? [] : [listItem(key, indexTexts[key], listed)]
  })

/** Names of an earlier snapshot's index, best first. */
const earlierIndex = (snapshot: Snapshot | undefined): Array<string> =>
  (snapshot?.key_knowledge ?? []).flatMap((known) =>
    indexLine.test(known.text)
      ? known.text
          .replace(indexLine, "")
          .split(/\s+/)
          .filter((name) => name !== "")
      : []
  )

/** Rarely wanted again unless used much: a bare number says little outside its sentence. */
const kindWeight: Readonly<Record<AnchorKind, number>> = { path: 1, url: 0.7, symbol: 1, id: 1, number: 0.8 }
/** How much the length of a name counts against it. */
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
 * Of an earlier snapshot, what the new sections do not speak of, newest knowledge first. Files and failures are not
 * carried as text: the evidence has taken them over.
 */
const carried = (evidence: Evidence, name: SectionName, taken: ReadonlyArray<Item>): Array<Item> => {
  const keys = new Set(taken.map((known) => known.key))
  return (evidence.previous?.[name] ?? []).filter(
    ({ key, text }) => !keys.has(key) && !indexLine.test(text) && !fileLine.test(text) && !failureLine.test(text)
  )
}

/** `[pending] text`: one entry of a todo list, which the next list replaces as a whole. */
const todoLine = /^- \[[^\]]+\] /

/** What a section is written from: the evidence, its share of the budget in tokens, and what the person wants kept. */
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

/** What speaks of the focus comes first. */
const focused = <A extends { readonly text: string }>(
  focus: ReadonlyArray<string>,
  all: ReadonlyArray<A>
): Array<A> => [
  ...all.filter(({ text }) => touchesFocus(text, focus)),
  ...all.filter(({ text }) => !touchesFocus(text, focus))
]

/** The original and the latest request, word for word, and what an earlier snapshot held beside them. */
const goalItems = ({ evidence, options, share }: Room): Array<Item> => {
  const { original, latest = evidence.requests.at(-1) } = options.pins ?? {}
  const earlier = evidence.previous?.overall_goal.find((known) => known.key === "original request")
  // Behind an earlier summary, the first request is not the one that began it all.
  const first = original ?? (evidence.previous === undefined ? evidence.requests[0] : undefined)
  const goal: Array<Item> = []
  if (first !== undefined) goal.push(...spanItems("original request", first, share("goal")))
  else if (earlier !== undefined) goal.push(...within([earlier], share("goal") * 2))
  if (latest !== undefined && latest.text !== first?.text) {
    goal.push(...spanItems("latest request", latest, share("goal")))
  }
  goal.push(...within(carried(evidence, "overall_goal", goal), share("goal")))
  return goal
}

/** What the person pinned, the newest first, as far as a fifth of the budget holds it. */
const pinnedItems = ({ options }: Room): Array<Item> => {
  const pinned: Array<Item> = []
  let left = options.budget * 0.2
  for (const span of newestFirst(options.pins?.asked ?? [])) {
    const items = spanItems(`pinned by the user (${span.entry}:${span.part}:${span.start})`, span, left)
    pinned.push(...items)
    left -= items.reduce((sum, each) => sum + cost(each), 0)
  }
  return pinned
}

/** What the person pinned, then what the user said must or must not be, newest first, word for word. */
const constraintItems = (room: Room): Array<Item> => {
  const { evidence, focus, share } = room
  const distinct = [...new Map(evidence.constraints.map((span) => [span.text, span])).values()]
  const constraints = pinnedItems(room)
  const said = within(
    focused(focus, newestFirst(distinct)).map((span) => labelled(`the user said (${span.entry})`, span)),
    share("constraints")
  )
  constraints.push(...said)
  constraints.push(...within(carried(evidence, "active_constraints", constraints), share("constraints")))
  return constraints
}

const artifactItems = ({ evidence, share }: Room): Array<Item> => {
  const artifacts = within(
    newestFirst(evidence.files)
      .filter(([, file]) => file.state !== "read")
      .map(([path, file]) => item(path, fileText(path, file))),
    share("artifacts")
  )
  artifacts.push(...within(carried(evidence, "artifact_trail", artifacts), share("artifacts") / 2))
  return artifacts
}

const fileItems = ({ evidence, options, share }: Room): Array<Item> => {
  const files = within(
    [
      ...(options.cwd === undefined ? [] : [item("cwd", `working directory: ${options.cwd}`)]),
      ...newestFirst(evidence.files)
        .filter(([, file]) => file.state === "read")
        .map(([path, file]) => item(path, fileText(path, file)))
    ],
    share("files")
  )
  files.push(...within(carried(evidence, "file_system_state", files), share("files") / 2))
  return files
}

/** The commands with their last ends, newest first, then the last things done, in order. */
const actionItems = ({ evidence, share }: Room): Array<Item> => {
  const commands = newestFirst(evidence.commands).map(([command, run]) =>
    item(
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

/** The todo list, what is open first, and the failures that nothing has resolved. */
const taskItems = ({ evidence, share }: Room): Array<Item> => {
  const list = [...(evidence.todos?.todos ?? [])].sort((a, b) => Number(open(b.status)) - Number(open(a.status)))
  const failures = newestFirst(evidence.errors).map(([what, failure]) =>
    item(
      what,
      `unresolved failure of ${shortSubject(what)} (${ofEntry(failure.entry, failure.handle)}):`,
      failure.text.split("\n")
    )
  )
  const task = [
    ...within(
      list.map((todo) => item(todo.text, `[${todo.status}] ${oneLine(todo.text, 240)}`)),
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

/** What the agent settled on, and what earlier summaries said. */
const knowledgeItems = ({ evidence, focus, share }: Room): Array<Item> => {
  const decisions = focused(focus, newestFirst(evidence.decisions)).map((said) =>
    item(said.text, `the agent (${said.entry}): ${oneLine(said.text, 300)}`)
  )
  const summaries = evidence.summaries.map((said) => {
    const text = firstUnits(said.text, share("summary") * 3)
    return item(
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

/** Writes the snapshot of what `gather` found. */
export function* compose(evidence: Evidence, options: ExtractOptions): Work<Extract> {
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
  return yield* withIndex(fit(snapshot, options.budget), evidence, options, room.focus)
}

/** The sections in which something is dropped first: what tells least. */
const dropOrder: ReadonlyArray<SectionName> = [
  "file_system_state",
  "recent_actions",
  "key_knowledge",
  "artifact_trail",
  "active_constraints",
  "task_state",
  "overall_goal"
]

/** Drops items, from the ends of the least telling sections first, until the snapshot is within its budget. */
export const fit = (snapshot: Snapshot, budget: number): Snapshot => {
  const fitted: Record<SectionName, ReadonlyArray<Item>> = { ...snapshot }
  const sizes = new Map(dropOrder.map((name) => [name, snapshot[name].map(cost)]))
  let total = snapshotTokens(emptySnapshot)
  for (const costs of sizes.values()) for (const tokens of costs) total += tokens
  for (const name of dropOrder) {
    const costs = sizes.get(name) ?? []
    let kept = costs.length
    for (; total > budget && kept > 0; kept -= 1) total -= costs[kept - 1] ?? 0
    fitted[name] = snapshot[name].slice(0, kept)
  }
  // The sum is of single items; what they take together may be a little more.
  for (const name of dropOrder) {
    while (snapshotTokens(fitted) > budget && fitted[name].length > 0) fitted[name] = fitted[name].slice(0, -1)
  }
  return fitted
}

/** Names that did not fit, after which no more are tried. */
const patience = 100

/** Anchors, best first, whose whereabouts an audit tells. */
const audited = 1_000

/** Adds the index: names by rank, as many as the budget still holds, without those that stand in the window anyway. */
function* withIndex(
  snapshot: Snapshot,
  evidence: Evidence,
  options: ExtractOptions,
  focus: ReadonlyArray<string>
): Work<Extract> {
  const text = render(snapshot)
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
    if (misses > patience) break
    if (tokens > left || inSnapshot.has(name) || inTail.has(name) || listed.includes(name) || text.includes(name))
      continue
    names.push([name, evidence.anchors.get(name)?.used ?? true])
    listed += ` ${name}`
    left -= tokens
    yield 2_000
  }
  const { final, restored } = shrunkIndex(snapshot, names, options.budget)
  const rendered = render(final)
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

/** Candidates by rank, the best of an earlier index among them: they were used once and may be again. */
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

/** The snapshot with as many of the names as its budget holds. */
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
 * A snapshot that a model wrote, completed: what the user asked and demanded stands in front word for word, open todos and
 * failures too; the whole is cut to its share of the budget, and the names it forgot are added as an index.
 */
export function* completed(written: Snapshot, evidence: Evidence, options: ExtractOptions): Work<Extract> {
  const room = roomOf(evidence, options)
  const inFront = (exact: ReadonlyArray<Item>, name: SectionName): ReadonlyArray<Item> => {
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
  return yield* withIndex(fit(snapshot, Math.floor(options.budget * modelShare)), evidence, options, room.focus)
}

/** Of the budget, what a model's own words may take at most; the rest is for the exact facts it left out. */
const modelShare = 0.75

/** The extractive snapshot of some entries. */
export function* extract(entries: ReadonlyArray<Entry>, options: ExtractOptions): Work<Extract> {
  return yield* compose(yield* gather(entries, options.said, options.secrets), options)
}
