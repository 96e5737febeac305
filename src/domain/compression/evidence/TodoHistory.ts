import { Predicate } from "effect"
import type { Action, Todo } from "../../actions/Action.ts"
import { answerText } from "../../actions/ToolResults.ts"
import { isErrorResponse, type Part } from "../../content/Content.ts"
import type { EntryId } from "../../conversation/Conversation.ts"
import { unprotect } from "../../text/UntrustedText.ts"
import type { Snapshot } from "../Snapshot.ts"
import { isFiledIssue } from "./FiledIssues.ts"

/** The agent's todo list: written whole by some agents, item by item by others (Claude Code's task tools). */
export interface TodoHistory {
  list: { readonly entry: EntryId; readonly todos: ReadonlyArray<Todo> } | undefined
  /** Items that are kept one by one, by number. */
  readonly items: Map<string, Todo>
}

/** The agent needs the number of an item to change it. */
const numbered = (id: string, subject: unknown): string => `#${id} ${String(subject)}`

/** Matches an item in a snapshot: `[status] text`. */
const todoLine = /^- \[([^\]\n]+)\] (.+)$/

/** Takes over the items of an earlier snapshot. */
export const resumeTodos = (history: TodoHistory, entry: EntryId, snapshot: Snapshot): void => {
  const todos = snapshot.task_state.flatMap((item) => {
    if (isFiledIssue(item.text)) return []
    const [, status, text] = todoLine.exec(item.text) ?? []
    return status === undefined || text === undefined ? [] : [{ status: unprotect(status), text: unprotect(text) }]
  })
  if (todos.length === 0) return
  history.list = { entry, todos }
  for (const todo of todos) {
    const id = /^#(\d+) /.exec(todo.text)?.[1]
    if (id !== undefined) history.items.set(id, todo)
  }
}

/** Records a todo list, or the change of one item. */
export const recordTodos = (
  history: TodoHistory,
  entry: EntryId,
  call: Part,
  actions: ReadonlyArray<Action>,
  answer: Part | undefined
): void => {
  for (const action of actions) if (action._tag === "Todos") history.list = { entry, todos: action.todos }
  const name = call.functionCall?.name.toLowerCase() ?? ""
  const args: unknown = call.functionCall?.args
  if ((name !== "taskcreate" && name !== "taskupdate") || !Predicate.isObject(args)) return
  if (answer === undefined || isErrorResponse(answer)) return
  const { items } = history
  if (name === "taskcreate") {
    const id = /#(\d+)/.exec(answerText(answer).slice(0, 200))?.[1]
    if (id !== undefined)
      items.set(id, { text: numbered(id, args.subject ?? args.description ?? ""), status: "pending" })
  } else {
    const id = String(args.taskId ?? "")
    const before = items.get(id)
    const text = typeof args.subject === "string" ? numbered(id, args.subject) : (before?.text ?? `task #${id}`)
    const status = typeof args.status === "string" ? args.status : (before?.status ?? "pending")
    if (status === "deleted") items.delete(id)
    else items.set(id, { text, status })
  }
  history.list = { entry, todos: [...items.values()] }
}
