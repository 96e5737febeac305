import type { Action, Todo } from "../../actions/Action.ts"
import { itemChangeIn } from "../../actions/AgentTools.ts"
import { answerText } from "../../actions/ToolResults.ts"
import { isErrorResponse, type Part } from "../../content/Content.ts"
import type { EntryId } from "../../conversation/Conversation.ts"

/**
 * The items of the work: the agent's todo list, written whole by some agents, item by item by others (with its number, which the agent needs to change it),
 * and the issues that the agent filed in a tracker by command, closed or took on.
 */
export interface TodoHistory {
  list: { readonly entry: EntryId; readonly todos: ReadonlyArray<Todo> } | undefined
  /** Items that are kept one by one, by number. */
  readonly items: Map<string, Todo>
  /** The filed issues, by id. */
  readonly issues: Map<string, Todo>
}

/** Returns a history without items. */
export const noTodos = (): TodoHistory => ({ list: undefined, items: new Map(), issues: new Map() })

/** Records a todo list, or the change of one item. */
export const recordTodos = (
  history: TodoHistory,
  entry: EntryId,
  call: Part,
  actions: ReadonlyArray<Action>,
  answer: Part | undefined
): void => {
  for (const action of actions) if (action._tag === "Todos") history.list = { entry, todos: action.todos }
  if (answer === undefined || isErrorResponse(answer)) return
  const { args, name = "" } = call.functionCall ?? {}
  const change = itemChangeIn(name, args, () => answerText(answer))
  if (change?.id === undefined) return
  const { items } = history
  const { id, text } = change
  const before = items.get(id)
  const status = change.status ?? before?.status ?? "pending"
  if (status === "deleted") items.delete(id)
  else
    items.set(id, {
      text: text === undefined ? (before?.text ?? `task #${id}`) : `#${id} ${text}`,
      status: status === "closed" ? "completed" : status
    })
  history.list = { entry, todos: [...items.values()] }
}

const tracker =
  /\b(?:bd|gh\s+issue|glab\s+issue)\s+(create|new|close|done|reopen|update)\b((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^|;&\n"'])*)/g
/** The answer to a filed issue: `Created issue: app-12x`, or its address. */
const created = /(?:Created issue:?\s+|\/issues\/)([A-Za-z0-9][\w.-]{0,40})/
const title = /(?:(?:--title|(?<!\S)-t)[= ]|^)\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')/
const idOperand = /(?:^|\s)#?([A-Za-z][\w.]*-[\w.]+|\d+)(?=\s|$)/g

const textOf = (id: string, subject: string): string => `issue ${id}: ${subject}`

/** Records what a command that succeeded did to issues of a tracker. */
export const followIssues = (issues: Map<string, Todo>, command: string, output: string): void => {
  if (!/\b(?:bd|gh|glab)\b/.test(command)) return
  for (const [, verb = "", rest = ""] of command.slice(0, 4_000).matchAll(tracker)) {
    if (verb === "create" || verb === "new") {
      const id = created.exec(output.slice(0, 2_000))?.[1]
      const [, double, single] = title.exec(rest.trim()) ?? []
      const subject = double ?? single
      if (id !== undefined && subject !== undefined) issues.set(id, { text: textOf(id, subject), status: "open" })
      continue
    }
    for (const [, id = ""] of rest.replace(/"[^"]*"|'[^']*'/g, "").matchAll(idOperand)) {
      const known = issues.get(id)
      if (known === undefined) continue
      const status = /--status[= ](\w+)/.exec(rest)?.[1]
      const next = verb === "reopen" ? "open" : verb === "update" ? (status ?? known.status) : "completed"
      issues.set(id, { ...known, status: /^(?:closed|done)$/.test(next) ? "completed" : next })
    }
  }
}
