/** Finds where pieces of work end: a conversation that is cut there keeps each piece on one side. */

import { type Action, isOpenTodo } from "../../../actions/Action.ts"
import { actionsOf } from "../../../actions/Actions.ts"
import { isCall, isResponse } from "../../../content/Content.ts"
import { beginsTurn } from "../../../conversation/Conversation.ts"
import type { IndexedView } from "../../../conversation/IndexedView.ts"
import { makesCommit } from "../../evidence/Commits.ts"

/** How clearly a piece of work ends before a message. */
export const WorkEnd = {
  none: 0,
  /** The agent goes on with another file. */
  file: 1,
  /** A commit was made, or an item of the agent's list was closed. */
  step: 2,
  /** The user asks for something else. */
  turn: 3
} as const
export type WorkEnd = (typeof WorkEnd)[keyof typeof WorkEnd]

/** Whether an action made a commit. */
const isCommit = (action: Action): boolean =>
  action._tag === "Command" && action.exit === 0 && makesCommit(action.command)

/** Returns the closed items of the list that actions wrote; undefined when they wrote none. */
const closedItems = (actions: ReadonlyArray<Action>): ReadonlyArray<string> | undefined =>
  actions.findLast((action) => action._tag === "Todos")?.todos.flatMap((todo) => (isOpenTodo(todo) ? [] : [todo.text]))

/** Returns what the calls that are answered by the message before this index did. */
const actionsBefore = (view: IndexedView, index: number): ReadonlyArray<Action> => {
  const responses = view.at(index - 1)?.entry.content.parts.filter(isResponse) ?? []
  const calls = responses.length === 0 ? [] : (view.at(index - 2)?.entry.content.parts.filter(isCall) ?? [])
  return calls.flatMap((call) => {
    const { id, name } = call.functionCall
    return actionsOf(
      call,
      responses.find(({ functionResponse: response }) => response.id === id && response.name === name)
    )
  })
}

const changedFiles = (actions: ReadonlyArray<Action>): ReadonlyArray<string> =>
  actions.flatMap((action) =>
    action._tag === "Edit" || action._tag === "Write" || action._tag === "Delete" ? [action.path] : []
  )

/** Returns a function that tells what ends before an index of a view. Indexes are asked for from the last one back. */
export const workEnds = (view: IndexedView): ((index: number) => WorkEnd) => {
  /** The files of the change that comes next. */
  let next: ReadonlyArray<string> = []
  /** Whether the list of work that stands before this index closes an item that the list before it had not closed. */
  const closesItem = (index: number, actions: ReadonlyArray<Action>): boolean => {
    const closed = closedItems(actions) ?? []
    for (let at = index - 1; closed.length > 0 && at > 0; at -= 1) {
      const before = closedItems(actionsBefore(view, at))
      if (before !== undefined) return closed.some((text) => !before.includes(text))
    }
    return closed.length > 0
  }
  return (index) => {
    const actions = actionsBefore(view, index)
    const files = changedFiles(actions)
    const isOther = files.length > 0 && next.length > 0 && !files.some((file) => next.includes(file))
    if (files.length > 0) next = files
    const item = view.at(index)
    if (item !== undefined && beginsTurn(item.entry)) return WorkEnd.turn
    if (actions.some(isCommit) || closesItem(index, actions)) return WorkEnd.step
    return isOther ? WorkEnd.file : WorkEnd.none
  }
}
