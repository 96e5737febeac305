import { failureLine } from "../evidence/CommandHistory.ts"
import { isLook, isMilestone } from "../evidence/Commands.ts"
import type { Evidence, RecentCall } from "../evidence/Evidence.ts"
import { changedHeading, type FileState, listedFile, namesOf, readHeading } from "../evidence/FileHistory.ts"
import { oneLine, shortSubject } from "../evidence/ToolFailures.ts"
import type { Span } from "../evidence/UserRequests.ts"
import {
  changeItem,
  fileLine,
  labelledWordsItem,
  type SectionName,
  type Snapshot,
  type SnapshotItem,
  statement,
  userWordsIn
} from "../Snapshot.ts"
import type { Action } from "../ToolCalls.ts"
import { isIndex } from "./NameIndex.ts"
import {
  byEnds,
  cost,
  focused,
  listing,
  newestFirst,
  ofEntry,
  type Material,
  type Room,
  shareOf,
  shortener,
  within
} from "./Room.ts"
import { latestLabel, showMessages } from "./UserMessages.ts"

/** The sections of the snapshot that code writes, each within its share of the budget. */

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`

const fileText = (path: string, file: FileState): string => {
  const counts = [
    file.changes > 0 ? plural(file.changes, "change") : "",
    file.reads > 0 && file.changes === 0 ? plural(file.reads, "read") : ""
  ].filter((text) => text !== "")
  const changes = namesOf(file)
  const names = changes.length === 0 ? "" : `: ${changes.map((name) => name.replace(/[(),;:]/g, "")).join(", ")}`
  const notes = [`${counts.join(", ")}${names}`, ofEntry(file.entry, file.handle)].filter((text) => text !== "")
  return `${path}: ${file.state} (${notes.join("; ")})`
}

const open = (status: string): boolean => !/^(?:completed|done|cancelled|canceled)$/i.test(status)

/** Lines of an earlier snapshot that code writes anew each time. */
const rewritten =
  /^- (?:changed, too|seen, but not read|last written to |commands, latest first|read, but not changed|now \(|before that \(|next|last action|tests |types |lint |build |read, newest first|working directory|\[[^\]]+\] |… |names|messages of|\d+ messages of the user)/

/**
 * Returns what an earlier snapshot says in a section and the new items do not cover, newest first. Files, failures and what
 * describes the moment are left out, because the evidence holds them or they have passed.
 */
const carried = (evidence: Evidence, name: SectionName, taken: ReadonlyArray<SnapshotItem>): Array<SnapshotItem> => {
  const keys = new Set(taken.map((known) => known.key))
  return (evidence.previous?.[name] ?? []).filter(
    (item) =>
      !keys.has(item.key) &&
      !isIndex(item) &&
      !rewritten.test(item.text) &&
      !fileLine.test(item.text) &&
      !failureLine.test(item.text)
  )
}

/** The share of the budget within which every message of the user is shown, at least by its ends. */
const mostMessages = 0.35

/** Returns what a summary by another program says of the goal: under its heading, or at its beginning. */
const goalIn = (text: string, chars: number): string => {
  const under = /(?:Primary Request and Intent:?|#+ Goal|<overall_goal>)\s*([\s\S]{1,2000})/i.exec(text)?.[1] ?? text
  return byEnds(under.split(/\n(?=\d+\. \S|#+ )|<\//)[0] ?? under, Math.min(600, chars))
}

/** Writes the user's messages, and what an earlier snapshot held besides. */
const goalItems = ({
  evidence,
  messages,
  messagesNeed,
  options,
  share
}: Room): { items: Array<SnapshotItem>; clipped: ReadonlySet<Span> } => {
  // After an earlier summary, the first request in the entries is not the one with which the conversation began.
  const first = options.pins?.original ?? (evidence.previous === undefined ? messages[0] : undefined)
  const { clipped, items } = showMessages(
    messages,
    Math.max(share("messages"), Math.min(messagesNeed, options.budget * mostMessages)),
    first
  )
  const [summary] = evidence.summaries
  if (first === undefined && summary !== undefined) {
    items.unshift(
      statement(
        "goal",
        `the goal, as an earlier summary has it (${ofEntry(summary.entry, summary.handle)}): ${goalIn(summary.text, Math.max(80, share("messages") * 2))}`
      )
    )
  }
  const shown = new Set(messages.map(({ entry }): string => entry))
  // What the log still has is shown from the log.
  const older = carried(evidence, "overall_goal", []).flatMap((item) => {
    if (userWordsIn(item.text).some(({ entry }) => shown.has(entry))) return []
    const wasLatest = items.length > 0 && item.text.startsWith(`${latestLabel}:\n`)
    return [wasLatest ? changeItem(item, (text) => text.slice(latestLabel.length + 2)) : item]
  })
  return { items: [...within(older, share("messages") / 2), ...items], clipped }
}

/** Writes the user's pins, newest first. */
const pinnedItems = ({ options, share }: Room): Array<SnapshotItem> => {
  const pinned: Array<SnapshotItem> = []
  let left = share("pinned")
  for (const span of newestFirst(options.pins?.pinned ?? [])) {
    const { items } = showMessages([span], left)
    pinned.push(
      ...items.map((item) => ({ ...item, key: `pinned by the user (${span.entry}:${span.part}:${span.start})` }))
    )
    left -= items.reduce((sum, each) => sum + cost(each), 0)
  }
  return pinned
}

/** Writes the user's pins, then those constraints that the messages above do not show, newest first. */
const constraintItems = (room: Room, clipped: ReadonlySet<Span>): Array<SnapshotItem> => {
  const { evidence, focus, share } = room
  const hidden = new Set([...clipped].map(({ entry, part }) => `${entry}:${part}`))
  const distinct = room.constraints.filter(({ entry, part }) => hidden.has(`${entry}:${part}`))
  const constraints = pinnedItems(room)
  const said = within(
    focused(focus, newestFirst(distinct)).map((span) => labelledWordsItem(`the user said (${span.entry})`, span)),
    share("constraints")
  )
  constraints.push(...said)
  constraints.push(...within(carried(evidence, "active_constraints", constraints), share("constraints")))
  return constraints
}

const intention =
  /\b(?:let me|let's|I'll|I will|I need to|I'm going to|I am going to|going to|next|now I|now,? let|then I|remaining|still (?:need|to do|open)|to do)\b/i

/** Returns the agent's last sentence that states what it is about to do. */
const intentionOf = ({ lastWords }: Evidence): { readonly entry: string; readonly text: string } | undefined => {
  // An intention that later words followed has been carried out, or given up.
  for (const { entry, text } of lastWords.slice(-1)) {
    const sentences = text.match(/[^\n.!?]+(?:[.!?](?!\s|$)[^\n.!?]*)*[.!?:]?/g) ?? []
    const found = sentences.findLast((sentence) => intention.test(sentence) && sentence.trim().length >= 12)
    if (found !== undefined) return { entry, text: found.trim() }
  }
  return undefined
}

const resultOf = (ok: boolean | undefined): string => (ok === undefined ? "no clear result" : ok ? "passed" : "failed")

const actionText = (action: Action, failed: boolean): string => {
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
      return `ran ${oneLine(action.command, 160)} → ${action.exit === undefined ? "no exit code" : `exit ${action.exit}`}`
    case "Search":
      return `searched ${oneLine(action.query, 80)}${failed ? " (failed)" : ""}`
    case "Todos":
      return `wrote the todo list (${action.todos.length})`
    case "Other":
      return action.summary === "" ? "called" : oneLine(action.summary, 100)
  }
}

const lastActionText = ({ action, entry, failed, tool }: RecentCall): string =>
  `last action (${entry}): ${tool} ${actionText(action, failed)}`

/** Writes where the work stands: the agent's last words, its intention, the last action and the state of the checks. */
const nowItems = ({ evidence, share, short }: Room): Array<SnapshotItem> => {
  const budget = share("now")
  const [last, ...before] = newestFirst(evidence.lastWords)
  const recent = evidence.recent.at(-1)
  const next = intentionOf(evidence)
  // A token has about 3.5 characters of prose.
  const length = Math.max(160, Math.floor(budget * 1.6))
  const lastText = last === undefined ? "" : byEnds(short(last.text), length)
  const items = [
    ...(last === undefined ? [] : [statement("now", `now (${last.entry}), in the agent's words: ${lastText}`)]),
    ...(next === undefined || lastText.endsWith(next.text)
      ? []
      : [statement("next", `next (${next.entry}), in the agent's words: ${oneLine(short(next.text), 300)}`)]),
    ...(recent === undefined ? [] : [statement("last action", short(lastActionText(recent)))]),
    ...[...evidence.checks].map(([kind, { command, entry, ok }]) =>
      statement(kind, `${kind} ${resultOf(ok)}: ${oneLine(short(command), 80)} (${entry})`)
    ),
    ...before
      .slice(0, 11)
      .map(({ entry, text }) =>
        statement(
          `before that ${entry}`,
          `before that (${entry}): ${byEnds(short(text), Math.max(160, Math.floor(budget * 0.5)))}`
        )
      )
  ]
  return within(items, budget)
}

/** Writes where the work stands, the unresolved failures and the todo list, open items first. */
const taskItems = (room: Room): Array<SnapshotItem> => {
  const { evidence, options, share, short } = room
  const list = [...(evidence.todos?.todos ?? [])].sort((a, b) => Number(open(b.status)) - Number(open(a.status)))
  const failures = newestFirst(evidence.errors).map(([what, failure]) =>
    statement(
      what,
      `unresolved failure of ${short(shortSubject(what))} (${ofEntry(failure.entry, failure.handle)}):`,
      failure.text.split("\n").map(short)
    )
  )
  const task = [
    ...nowItems(room),
    ...within(
      list.map((todo) => statement(todo.text, `[${todo.status}] ${oneLine(todo.text, 240)}`)),
      Math.max(share("todos"), options.budget * leastShare)
    ),
    ...within(failures, share("failures"))
  ]
  task.push(...within(carried(evidence, "task_state", task), share("carried")))
  return task
}

/** A here-document is input; what it says stands in the file or the commit that it became. */
const withoutInput = (command: string): string => command.replace(/<<-?\s*['"]?\w+['"]?[\s\S]*/, "<<…")

/** Commands that leave nothing to know. */
const trivial = /^\s*(?:pwd|ls|cd|echo|clear|date|whoami)\b[^&|;]*$/

const commandsHeading = "commands, latest first; they succeeded where no exit code stands:"

/** Writes the commits, then the commands with their last results, milestones and then the newest first. */
const actionItems = ({ evidence, share, short }: Room): Array<SnapshotItem> => {
  const commits = newestFirst(evidence.commits).map(({ entry, hash, subject }) =>
    statement(`commit ${hash}`, `commit ${hash}: ${oneLine(subject, 120)} (${entry})`)
  )
  const runs = newestFirst(evidence.commands).filter(([command]) => !trivial.test(command))
  const worth = ([command, { ok }]: (typeof runs)[number]): number =>
    ok === true && isMilestone(command) ? 2 : isLook(command) ? 0 : 1
  const commands = runs
    .toSorted((a, b) => worth(b) - worth(a))
    .map(([command, run]) => {
      const hidden = run.ok === undefined ? "exit 0 behind a pipe" : "failed behind a pipe"
      const result =
        run.ok === true
          ? ""
          : ` → ${run.exit === undefined ? "no exit code" : run.exit === 0 ? hidden : `exit ${run.exit}`} (${ofEntry(run.entry, run.handle)})`
      return `${oneLine(withoutInput(short(command)), 120)}${result}`
    })
  const actions = [
    ...within(commits, share("commits")),
    ...listing("commands", commandsHeading, commands, share("commands"))
  ]
  actions.push(...within(carried(evidence, "recent_actions", actions), share("carried")))
  return actions
}

/** Newer and more often changed files first. */
const byWeight = (files: ReadonlyArray<readonly [string, FileState]>): ReadonlyArray<readonly [string, FileState]> =>
  files
    .map(
      ([path, file], index) =>
        [path, file, (1 + file.changes + file.reads / 2) * (0.3 + (index + 1) / files.length)] as const
    )
    .sort((a, b) => b[2] - a[2])
    .map(([path, file]) => [path, file] as const)

/** Lines of an edit that are shown, and characters of each. */
const shownEdit = { lines: 10, chars: 140 }

/** Lines that only import say less than those that follow. */
const importing = /^\s*(?:import\b|from\s|use\s|using\s|#include|package\s|require\b|alias\s|"[\w./-]+"$)/

/** Writes what the latest edits wrote: the latest of each file first, then those before. */
const editItems = ({ evidence }: Room): ReadonlyArray<SnapshotItem> => {
  const counts = new Map<string, number>()
  return newestFirst(evidence.edits)
    .map((edit) => {
      const rank = counts.get(edit.path) ?? 0
      counts.set(edit.path, rank + 1)
      return { ...edit, rank }
    })
    .sort((a, b) => a.rank - b.rank)
    .map(({ entry, path, text }, index) => {
      const lines = text.replaceAll("\t", "  ").split("\n")
      const shown = lines.filter((line) => line.trim().length > 2 && !importing.test(line)).slice(0, shownEdit.lines)
      const more = lines.length > shownEdit.lines ? [`… ${lines.length} lines in all`] : []
      return statement(`edit ${entry} ${index}`, `last written to ${path} (${entry}):`, [
        ...shown.map((line) => oneLineKeeping(line, shownEdit.chars)),
        ...more
      ])
    })
}

/** Returns a line with its indentation, clipped. */
const oneLineKeeping = (line: string, length: number): string => {
  const indent = /^ */.exec(line)?.[0].length ?? 0
  return `${" ".repeat(Math.min(indent, 8))}${oneLine(line, length)}`
}

/** The share of the budget within which all changed files, and all items of a todo list, are named. */
const leastShare = 0.12

const artifactItems = (room: Room): Array<SnapshotItem> => {
  const { evidence, options, share } = room
  const changed = byWeight([...evidence.files].filter(([, file]) => file.state !== "read"))
  const artifacts = within(
    [
      ...(options.cwd === undefined ? [] : [statement("cwd", `working directory: ${options.cwd}`)]),
      ...changed.map(([path, file]) => statement(path, fileText(path, file)))
    ],
    share("changed")
  )
  // Every changed file is named, whatever else can be said of it.
  const told = new Set(artifacts.map(({ key }) => key))
  const others = changed.filter(([path]) => !told.has(path)).map(([path, file]) => listedFile(path, file))
  artifacts.push(...listing("changed", changedHeading, others, Math.max(share("changed"), options.budget * leastShare)))
  artifacts.push(...within(editItems(room), share("edits")))
  artifacts.push(...within(carried(evidence, "artifact_trail", artifacts), share("carried")))
  return artifacts
}

const seenHeading = "seen, but not read:"

const fileItems = (room: Room): Array<SnapshotItem> => {
  const { evidence, share } = room
  const paths = byWeight([...evidence.files].filter(([, file]) => file.state === "read")).map(([path]) => path)
  const files = [
    ...listing("read", readHeading, paths, share("read")),
    ...listing("seen", seenHeading, room.seen, share("seen"))
  ]
  files.push(...within(carried(evidence, "file_system_state", files), share("carried")))
  return files
}

/** Writes the text of the task, what was learned, the agent's decisions and the content of earlier summaries. */
const knowledgeItems = ({ evidence, focus, share, short }: Room): Array<SnapshotItem> => {
  const taskChars = Math.floor((share("task") / Math.max(1, evidence.tasks.length) - 40) * 3.2)
  const tasks = evidence.tasks.map(({ entry, handle, source, text }) => {
    const shown = taskChars < 80 ? "" : `: ${byEnds(short(text), taskChars)}`
    return statement(`task ${source}`, `task text, ${short(source)} (${ofEntry(entry, handle)})${shown}`)
  })
  const lessons = newestFirst(evidence.lessons).map(({ command, entry, error, files }) =>
    statement(
      `lesson ${entry}`,
      `${oneLine(short(command), 60)} failed (${entry}): ${oneLine(short(error), 140)}; it passed after changes to ${files.slice(0, 4).join(", ")}`
    )
  )
  const latest = new Set(evidence.lastWords.slice(-4).map(({ entry }) => entry))
  const stated = newestFirst(evidence.decisions).filter(({ entry }) => !latest.has(entry))
  const decisions = focused(focus, stated).map((said) =>
    statement(said.text, `the agent (${said.entry}): ${oneLine(short(said.text).replaceAll("**", ""), 300)}`)
  )
  const summaries = evidence.summaries.map((said) =>
    statement(
      `summary ${said.entry}`,
      `an earlier summary, written by a model (${ofEntry(said.entry, said.handle)}): ${byEnds(short(said.text), Math.floor(share("summary") * 3))}`
    )
  )
  const knowledge = [
    ...within(tasks, Math.max(share("task"), 40 * tasks.length)),
    ...summaries.flatMap((summary) => within([summary], share("summary"))),
    ...within(lessons, share("lessons")),
    ...within(decisions, share("decisions"))
  ]
  knowledge.push(...within(carried(evidence, "key_knowledge", knowledge), share("carried") * 2))
  return knowledge
}

/** Writes all sections. The shares of the budget grow with the scale. */
export const sectionsAt = (scale: number, material: Material): Snapshot => {
  const room: Room = {
    ...material,
    share: (name) => shareOf(material.options.budget * scale, name),
    short: shortener(material.options.cwd)
  }
  const { clipped, items } = goalItems(room)
  return {
    overall_goal: items,
    active_constraints: constraintItems(room, clipped),
    task_state: taskItems(room),
    recent_actions: actionItems(room),
    artifact_trail: artifactItems(room),
    file_system_state: fileItems(room),
    key_knowledge: knowledgeItems(room)
  }
}
