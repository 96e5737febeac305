/** The sections of the snapshot that code writes, each within its share of the budget. */

import { type Action, isOpenTodo } from "../../actions/Action.ts"
import { type EntryId, sequenceOf } from "../../conversation/Conversation.ts"
import { shortLine } from "../../text/OneLine.ts"
import { refusers } from "../../transcripts/voice/ResultVoice.ts"
import { summaryBody, summaryGoal } from "../../transcripts/voice/SummaryForms.ts"
import { makesCommit } from "../evidence/Commits.ts"
import type { LastCall } from "../evidence/Evidence.ts"
import { shortSubject } from "../evidence/ToolFailures.ts"
import {
  emptySnapshot,
  labelledWordsItem,
  type SectionName,
  sectionNames,
  type Snapshot,
  type SnapshotItem,
  snapshotOf,
  statement,
  userWordsIn
} from "../Snapshot.ts"
import {
  byEnds,
  cost,
  endsOf,
  focused,
  fullScale,
  linesOf,
  type Material,
  newestFirst,
  ofEntry,
  partOf,
  type SectionPart,
  shareOf,
  unformatted,
  withinBudget
} from "./Budget.ts"
import { carriedTo } from "./CarriedStatements.ts"
import { commandLine, commandItems, exitText, ranLine } from "./CommandLines.ts"
import { fileParts } from "./FileSections.ts"
import { isTransient } from "./NameIndex.ts"
import { shownMessages } from "./UserMessages.ts"
import { writtenParts } from "./WrittenSections.ts"

/** Returns the parts with the user's messages, what came with them, and the goal that an earlier summary has. */
const goalParts = ({ evidence, messages, options }: Material): ReadonlyArray<SectionPart> => {
  // After an earlier summary, the first request in the entries is not the one with which the conversation began.
  const first = options.pins?.original ?? (evidence.previous === undefined ? messages[0] : undefined)
  const { need, show } = shownMessages(messages, first)
  const enough = need(shareOf("messages", options.budget, fullScale))
  const attachments = newestFirst(evidence.attachments).map(({ entry, handle, text }, at) =>
    statement(
      `attachment ${entry} ${at}`,
      `with message ${entry} came ${text}${handle === undefined ? "" : `: recall ${handle}`}`
    )
  )
  const summaries = first === undefined ? evidence.summaries.slice(0, 1) : []
  return [
    partOf("overall_goal", "summary", (tokens) =>
      summaries.map(({ entry, handle, text }) => {
        const goal = byEnds(summaryGoal(text), Math.min(600, Math.max(80, tokens * 6)))
        return statement("goal", `the goal, as an earlier summary has it (${ofEntry(entry, handle)}): ${goal}`)
      })
    ),
    partOf("overall_goal", enough === undefined ? "latestMessages" : "messages", show, enough),
    partOf("overall_goal", "attachments", attachments)
  ]
}

/** Returns the parts with the user's pins, and those constraints that the messages do not show, both newest first. */
const constraintParts = ({ constraints, focus, options }: Material): ReadonlyArray<SectionPart> => {
  const pins = newestFirst(options.pins?.pinned ?? []).map((span) => ({ span, show: shownMessages([span]).show }))
  const said = focused(focus, newestFirst(constraints)).map((span) => ({
    text: span.text,
    item: labelledWordsItem(`the user said (${span.entry})`, span)
  }))
  return [
    partOf("active_constraints", "pinned", (tokens) => {
      let left = tokens
      return pins.flatMap(({ show, span }) => {
        const items = show(left)
        left -= items.reduce((sum, each) => sum + cost(each), 0)
        return items.map((item) => ({
          ...item,
          key: `pinned by the user (${span.entry}:${span.part}:${span.start})`
        }))
      })
    }),
    partOf("active_constraints", "constraints", (tokens, before) => {
      const shown = before("overall_goal")
        .flatMap((item) => userWordsIn(item.text).map(({ text }) => text))
        .join("\n\n")
      const hidden = said.filter(({ text }) => !shown.includes(text))
      return withinBudget(
        hidden.map(({ item }) => item),
        tokens
      )
    })
  ]
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

/** Returns the parts that say where the work stands: the agent's last words, the last action and the state of the checks. */
const nowParts = (material: Material): ReadonlyArray<SectionPart> => {
  const { evidence, short } = material
  const [last, first, ...others] = newestFirst(evidence.lastWords).map(({ entry, text }) => ({
    entry,
    line: unformatted(short(text))
  }))
  const { lastCall } = evidence
  const doing = lastCall === undefined ? [] : [statement("last action", short(lastActionText(lastCall, material)))]
  const checks = checkItems(material)
  const old = oldChecks(material)
  // A token has about 3.5 characters of prose.
  const wordsOf = (key: string, words: typeof last, least: number, tokens: number) =>
    words === undefined
      ? []
      : [statement(key, `${key}${endsOf(words.line, Math.max(least, Math.floor(tokens * 1.6)))}`)]
  return [
    partOf("task_state", "now", (tokens) => [
      ...withinBudget([...wordsOf(`now (${last?.entry}), in the agent's words: `, last, 80, tokens), ...doing], tokens),
      ...checks
    ]),
    partOf("task_state", "before", (tokens) => {
      const before = (words: typeof last) => wordsOf(`before that (${words?.entry}): `, words, 160, tokens)
      return withinBudget([...before(first), ...old, ...others.flatMap(before)], tokens)
    })
  ]
}

/** Returns the parts with the todo list, open items first, and the unresolved failures. */
const taskParts = (material: Material): ReadonlyArray<SectionPart> => {
  const { evidence, short } = material
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
  return [...nowParts(material), partOf("task_state", "todos", todos), partOf("task_state", "failures", failures)]
}

/** Returns the parts with the commits, and the commands with their last results; one that made a commit needs no line of its own. */
const actionParts = ({ evidence, short }: Material): ReadonlyArray<SectionPart> => {
  const commits = newestFirst(evidence.commits)
  const items = commits.map(({ entry, hash, subject }) =>
    statement(`commit ${hash}`, `commit ${hash}: ${shortLine(subject, 120)} (${entry})`)
  )
  const others = [...evidence.commands].filter(
    ([command]) => !(makesCommit(command) && commits.some(({ subject }) => command.includes(subject)))
  )
  return [
    partOf("recent_actions", "commits", items),
    partOf(
      "recent_actions",
      "commands",
      commandItems(new Map(others), short, (command) => evidence.failures.has(command))
    )
  ]
}

/** Characters of what another agent reported. */
const maxReportChars = 300

/** Returns the parts with the text of the task, earlier summaries, what was settled and reported, and the agent's decisions. */
const knowledgeParts = ({ evidence, focus, short }: Material): ReadonlyArray<SectionPart> => {
  const section = "key_knowledge"
  const tasks = evidence.tasks.map((task) => ({ ...task, line: unformatted(short(task.text.replaceAll("\\n", " "))) }))
  const summaries = evidence.summaries.map((summary) => ({
    ...summary,
    text: linesOf(short(summaryBody(summary.text)))
  }))
  const settled = newestFirst(evidence.settled).map(({ asked, entry, reply }) =>
    statement(`settled ${entry}`, `the user said ${shortLine(reply, 120)} (${entry}) to: ${short(asked)}`)
  )
  const reports = newestFirst(evidence.reports).map(({ entry, handle, text }) =>
    statement(
      `report ${entry} ${text}`,
      `another agent reported (${ofEntry(entry, handle)}): ${byEnds(short(text), maxReportChars)}`
    )
  )
  // The last words are listed as what the agent is at.
  const last = evidence.lastWords.at(-1)?.entry
  const stated = newestFirst(evidence.decisions).filter(({ entry }) => entry !== last)
  const decisions = focused(focus, stated).map((decision) =>
    statement(
      decision.text,
      `the agent (${decision.entry}): ${shortLine(short(decision.text).replaceAll("**", ""), 300)}`
    )
  )
  return [
    partOf(section, "task", (tokens) => {
      const chars = Math.floor((tokens / Math.max(1, tasks.length) - 40) * 3.2)
      const texts = tasks.map(({ entry, handle, line, source }) => {
        const shown = chars < 80 ? "" : `: ${endsOf(line, chars)}`
        return statement(`task ${source}`, `task text, ${short(source)} (${ofEntry(entry, handle)})${shown}`)
      })
      return withinBudget(texts, Math.max(tokens, 40 * tasks.length))
    }),
    partOf(section, "summary", (tokens) =>
      summaries.flatMap(({ entry, handle, text }) => {
        const lines = endsOf(text, Math.floor(tokens * 3)).split("\n")
        return withinBudget(
          [statement(`summary ${entry}`, `an earlier summary (${ofEntry(entry, handle)}):`, lines)],
          tokens
        )
      })
    ),
    partOf(section, "settled", settled),
    partOf(section, "reports", reports),
    partOf(section, "decisions", decisions)
  ]
}

/** Returns the parts that an earlier snapshot holds besides. What it says of the goal comes first. */
const carriedParts = ({ evidence }: Material, written: Snapshot): ReadonlyArray<SectionPart> =>
  sectionNames.map((section) => {
    const carried = carriedTo(evidence, section, written[section])
    const part = partOf(section, "carried", (tokens, before) => carried(before(section), tokens))
    return { ...part, isFirst: section === "overall_goal" }
  })

/**
 * Returns a function that writes all sections at a scale. The shares of the budget grow with the scale. `written`: what a model wrote, in
 * its bounds.
 */
export const sectionWriter = (material: Material, written = emptySnapshot): ((scale: number) => Snapshot) => {
  const { budget } = material.options
  const parts = [
    ...goalParts(material),
    ...constraintParts(material),
    ...taskParts(material),
    ...actionParts(material),
    ...fileParts(material),
    ...knowledgeParts(material),
    ...writtenParts(written, material.evidence),
    ...carriedParts(material, written)
  ]
  return (scale) => {
    const first: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...emptySnapshot }
    const rest: Record<SectionName, ReadonlyArray<SnapshotItem>> = { ...emptySnapshot }
    const sectionOf = (name: SectionName) => [...first[name], ...rest[name]]
    for (const { isFirst = false, need, section, share, write } of parts) {
      const sections = isFirst ? first : rest
      sections[section] = [...sections[section], ...write(shareOf(share, budget, scale, need), sectionOf)]
    }
    return snapshotOf(sectionOf)
  }
}
