import { type Action, isOpenTodo } from "../../actions/Action.ts"
import { type EntryId, sequenceOf } from "../../conversation/Conversation.ts"
import { shortLine } from "../../text/OneLine.ts"
import { refusers } from "../../transcripts/voice/ResultVoice.ts"
import { summaryBody, summaryGoal } from "../../transcripts/voice/SummaryForms.ts"
import { makesCommit } from "../evidence/Commits.ts"
import type { LastCall } from "../evidence/Evidence.ts"
import { shortSubject } from "../evidence/ToolFailures.ts"
import type { Span } from "../evidence/UserRequests.ts"
import {
  isUnconfirmed,
  labelledWordsItem,
  type Snapshot,
  type SnapshotItem,
  statement,
  userWordsIn
} from "../Snapshot.ts"
import {
  byEnds,
  cost,
  endsOf,
  focused,
  messagesShare,
  newestFirst,
  ofEntry,
  type Material,
  type Shares,
  sharesAt,
  linesOf,
  unformatted,
  withinBudget,
  type Writer
} from "./Budget.ts"
import { carriedTo } from "./CarriedStatements.ts"
import { commandItems, commandLine, exitText, ranLine } from "./CommandLines.ts"
import { artifactItems, fileItems } from "./FileSections.ts"
import { isTransient } from "./NameIndex.ts"
import { showMessages, type ShownMessages } from "./UserMessages.ts"

/** The sections of the snapshot that code writes, each within its share of the budget. */

/** Writes the user's messages, and what an earlier snapshot held besides. */
const goalItems = ({ evidence, messages, messagesNeed, options }: Material): ((share: Shares) => ShownMessages) => {
  // After an earlier summary, the first request in the entries is not the one with which the conversation began.
  const first = options.pins?.original ?? (evidence.previous === undefined ? messages[0] : undefined)
  const [summary] = evidence.summaries
  const show = showMessages(messages, first)
  const attachments = newestFirst(evidence.attachments).map(({ entry, handle, text }, at) =>
    statement(
      `attachment ${entry} ${at}`,
      `with message ${entry} came ${text}${handle === undefined ? "" : `: recall ${handle}`}`
    )
  )
  const carried = carriedTo(evidence, "overall_goal")([])
  // Of words that only an earlier snapshot has, oldest first, the first say what the work is for and the latest where it is.
  const words = carried.filter(isUnconfirmed)
  const byWorth = [
    ...carried.filter((item) => !isUnconfirmed(item)),
    ...words.slice(0, 1),
    ...newestFirst(words.slice(1))
  ]
  return (share) => {
    const isRoomForAll = messagesNeed <= options.budget * messagesShare
    const { clipped, items } = show(share(isRoomForAll ? "messages" : "latestMessages", messagesNeed))
    if (first === undefined && summary !== undefined) {
      items.unshift(
        statement(
          "goal",
          `the goal, as an earlier summary has it (${ofEntry(summary.entry, summary.handle)}): ${byEnds(summaryGoal(summary.text), Math.min(600, Math.max(80, share("besideMessages") * 4)))}`
        )
      )
    }
    const media = withinBudget(attachments, share("besideMessages") / 2)
    const kept = new Set(withinBudget(byWorth, share("besideMessages")))
    return { items: [...carried.filter((item) => kept.has(item)), ...items, ...media], clipped }
  }
}

/** Writes the user's pins, newest first. */
const pinnedItems = ({ options }: Material): Writer => {
  const pins = newestFirst(options.pins?.pinned ?? []).map((span) => ({ span, show: showMessages([span]) }))
  return (share) => {
    const pinned: Array<SnapshotItem> = []
    let left = share("pinned")
    for (const { show, span } of pins) {
      const { items } = show(left)
      pinned.push(
        ...items.map((item) => ({ ...item, key: `pinned by the user (${span.entry}:${span.part}:${span.start})` }))
      )
      left -= items.reduce((sum, each) => sum + cost(each), 0)
    }
    return pinned
  }
}

/** Writes the user's pins, then those constraints that the messages above do not show, newest first. */
const constraintItems = (material: Material): ((share: Shares, shown: ShownMessages) => Array<SnapshotItem>) => {
  const all = focused(material.focus, newestFirst(material.constraints))
  const made = new Map<Span, SnapshotItem>()
  const itemOf = (span: Span): SnapshotItem => {
    const item = made.get(span) ?? labelledWordsItem(`the user said (${span.entry})`, span)
    made.set(span, item)
    return item
  }
  const pinned = pinnedItems(material)
  const carried = carriedTo(material.evidence, "active_constraints")
  return (share, { clipped, items }) => {
    const hidden = new Set([...clipped].map(({ entry, part }) => `${entry}:${part}`))
    const shown = items.flatMap(({ text }) => userWordsIn(text))
    const distinct = all.filter(
      ({ entry, part, text }) =>
        hidden.has(`${entry}:${part}`) && !shown.some((words) => words.entry === entry && words.text.includes(text))
    )
    const constraints = [...pinned(share), ...withinBudget(distinct.map(itemOf), share("constraints"))]
    constraints.push(...withinBudget(carried(constraints), share("constraints")))
    return constraints
  }
}

const actionText = (action: Action, failed: boolean, { evidence, short }: Material): string => {
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
      return `ran ${ranLine(short(action.command))} → ${exitText(action.exit, evidence.commands.get(action.command)?.ok)}`
    case "Search":
      return `searched ${shortLine(action.query, 80)}${failed ? " (failed)" : ""}`
    case "Todos":
      return `wrote the todo list (${action.todos.length})`
    case "Other":
      return action.summary === "" ? "called" : shortLine(short(action.summary), 100)
    default:
      return ""
  }
}

const lastActionText = ({ action, entry, failed, refusedBy, tool }: LastCall, material: Material): string =>
  refusedBy !== undefined
    ? `last action (${entry}): a call of ${tool} that ${refusers[refusedBy]} refused${action._tag === "Command" ? `: ${ranLine(material.short(action.command))}` : ""}`
    : `last action (${entry}): ${action._tag === "Other" && !action.summary.startsWith(`${tool} `) ? `${tool} ` : ""}${actionText(action, failed, material)}`

/** Writes the last result of each check, with its command. A run whose output does not tell says nothing. */
const checkItems = ({ evidence, short }: Material): ReadonlyArray<SnapshotItem> =>
  [...evidence.checks].flatMap(([kind, { command, entry, ok }]) =>
    ok === undefined
      ? []
      : [statement(kind, `${kind} ${ok ? "passed" : "failed"}: ${commandLine(short(command))} (${entry})`)]
  )

/** Names the checks that ran before the last change of a file. */
const oldChecks = ({ evidence: { checks, files } }: Material): ReadonlyArray<SnapshotItem> => {
  const changes = [...files].flatMap(([path, { changed }]) =>
    changed === undefined || isTransient(path) ? [] : [{ path, at: sequenceOf(changed) }]
  )
  const last = changes.sort((a, b) => b.at - a.at)[0] ?? { path: "", at: 0 }
  const isOld = (entry: EntryId): boolean => sequenceOf(entry) < last.at
  const old = [true, false].flatMap((passed) => {
    const kinds = [...checks].flatMap(([kind, { entry, ok }]) => (ok === passed && isOld(entry) ? [kind] : []))
    return kinds.length === 0 ? [] : [`${kinds.join(", ")} ${passed ? "passed" : "failed"}`]
  })
  const text = `since ${old.join(" and ")}, ${last.path.replace(/^.*[\\/]/, "")} changed`
  return old.length === 0 ? [] : [statement("old", text)]
}

/** Writes where the work stands: the agent's last words, the last action and the state of the checks. */
const nowItems = (material: Material): Writer => {
  const { evidence, short } = material
  const [last, ...before] = newestFirst(evidence.lastWords)
    .slice(0, 12)
    .map(({ entry, text }) => ({ entry, line: unformatted(short(text)) }))
  const { lastCall } = evidence
  const doing = lastCall === undefined ? [] : [statement("last action", short(lastActionText(lastCall, material)))]
  const checks = checkItems(material)
  const old = oldChecks(material)
  return (share) => {
    const budget = share("now")
    // A token has about 3.5 characters of prose.
    const length = Math.max(80, Math.floor(budget * 1.6))
    const lastText = last === undefined ? "" : endsOf(last.line, length)
    const items = [
      ...(last === undefined ? [] : [statement("now", `now (${last.entry}), in the agent's words: ${lastText}`)]),
      ...doing
    ]
    const earlier = before.map(({ entry, line }) =>
      statement(
        `before that ${entry}`,
        `before that (${entry}): ${endsOf(line, Math.max(160, Math.floor(budget * 0.5)))}`
      )
    )
    return [
      ...withinBudget(items, budget),
      ...checks,
      ...withinBudget([...earlier.slice(0, 1), ...old, ...earlier.slice(1)], share("before"))
    ]
  }
}

/** Writes where the work stands, the unresolved failures and the todo list, open items first. */
const taskItems = (material: Material): Writer => {
  const { evidence, short } = material
  const now = nowItems(material)
  const todos = [...(evidence.todos?.todos ?? []), ...newestFirst(evidence.issues)]
    .sort((a, b) => Number(isOpenTodo(b)) - Number(isOpenTodo(a)))
    .map((todo) => statement(todo.text, `[${todo.status}] ${shortLine(todo.text, 240)}`))
  // The list of commands tells of the others.
  const open = newestFirst(evidence.failures).filter(([, { isQuoted }]) => isQuoted)
  const failures = open.map(([what, { entry, handle, refusedBy, text }]) =>
    statement(
      what,
      `${refusedBy === undefined ? "unresolved failure of" : `refused by ${refusers[refusedBy]}:`} ${shortSubject(short(what))} (${ofEntry(entry, handle)})${text === "" ? "" : ":"}`,
      text.split("\n").map(short)
    )
  )
  const carried = carriedTo(evidence, "task_state")
  return (share) => {
    const task = [...now(share), ...withinBudget(todos, share("todos")), ...withinBudget(failures, share("failures"))]
    task.push(...withinBudget(carried(task), share("carried")))
    return task
  }
}

/** Writes the commits, then the commands with their last results; one that made a commit needs no line of its own. */
const actionItems = ({ evidence, short }: Material): Writer => {
  const commits = newestFirst(evidence.commits)
  const items = commits.map(({ entry, hash, subject }) =>
    statement(`commit ${hash}`, `commit ${hash}: ${shortLine(subject, 120)} (${entry})`)
  )
  const others = [...evidence.commands].filter(
    ([command]) => !(makesCommit(command) && commits.some(({ subject }) => command.includes(subject)))
  )
  const list = commandItems(new Map(others), short, (command) => evidence.failures.has(command))
  const carried = carriedTo(evidence, "recent_actions")
  return (share) => {
    const actions = [...withinBudget(items, share("commits")), ...list(share("commands"))]
    actions.push(...withinBudget(carried(actions), share("carried")))
    return actions
  }
}

/** Characters of what another agent reported. */
const maxReportChars = 300

/** Writes the text of the task, the agent's decisions and the content of earlier summaries. */
const knowledgeItems = ({ evidence, focus, short }: Material): Writer => {
  const tasks = evidence.tasks.map((task) => ({ ...task, line: unformatted(short(task.text.replaceAll("\\n", " "))) }))
  const summaries = evidence.summaries.map((summary) => ({
    ...summary,
    text: linesOf(short(summaryBody(summary.text)))
  }))
  // The last words are listed as what the agent is at.
  const last = evidence.lastWords.at(-1)?.entry
  const stated = newestFirst(evidence.decisions).filter(({ entry }) => entry !== last)
  const decisions = focused(focus, stated).map((decision) =>
    statement(
      decision.text,
      `the agent (${decision.entry}): ${shortLine(short(decision.text).replaceAll("**", ""), 300)}`
    )
  )
  const settled = newestFirst(evidence.settled).map(({ asked, entry, reply }) =>
    statement(`settled ${entry}`, `the user said ${shortLine(reply, 120)} (${entry}) to: ${short(asked)}`)
  )
  const reports = newestFirst(evidence.reports).map(({ entry, handle, text }) =>
    statement(
      `report ${entry} ${text}`,
      `another agent reported (${ofEntry(entry, handle)}): ${byEnds(short(text), maxReportChars)}`
    )
  )
  const carried = carriedTo(evidence, "key_knowledge")
  return (share) => {
    const taskChars = Math.floor((share("task") / Math.max(1, tasks.length) - 40) * 3.2)
    const taskTexts = tasks.map(({ entry, handle, line, source }) => {
      const shown = taskChars < 80 ? "" : `: ${endsOf(line, taskChars)}`
      return statement(`task ${source}`, `task text, ${short(source)} (${ofEntry(entry, handle)})${shown}`)
    })
    const summaryTexts = summaries.map(({ entry, handle, text }) =>
      statement(
        `summary ${entry}`,
        `an earlier summary (${ofEntry(entry, handle)}):`,
        endsOf(text, Math.floor(share("summary") * 3)).split("\n")
      )
    )
    const knowledge = [
      ...withinBudget(taskTexts, Math.max(share("task"), 40 * tasks.length)),
      ...summaryTexts.flatMap((summary) => withinBudget([summary], share("summary"))),
      ...withinBudget(settled, share("settled")),
      ...withinBudget(reports, share("reports")),
      ...withinBudget(decisions, share("decisions"))
    ]
    knowledge.push(...withinBudget(carried(knowledge), share("carried") * 2))
    return knowledge
  }
}

/** Returns a function that writes all sections at a scale. The shares of the budget grow with the scale. */
export const sectionWriter = (material: Material): ((scale: number) => Snapshot) => {
  const goal = goalItems(material)
  const constraints = constraintItems(material)
  const task = taskItems(material)
  const actions = actionItems(material)
  const artifacts = artifactItems(material)
  const files = fileItems(material)
  const knowledge = knowledgeItems(material)
  return (scale) => {
    const share = sharesAt(material.options.budget, scale)
    const shown = goal(share)
    return {
      overall_goal: shown.items,
      active_constraints: constraints(share, shown),
      task_state: task(share),
      recent_actions: actions(share),
      artifact_trail: artifacts(share),
      file_system_state: files(share),
      key_knowledge: knowledge(share)
    }
  }
}
