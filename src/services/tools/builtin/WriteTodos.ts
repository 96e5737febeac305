/** The `write_todos` tool: keeps the plan of the work. */

import { Effect, Schema } from "effect"
import { Todo } from "../../../domain/tools/ToolResult.ts"
import { make, type Tool, ToolFailure } from "../Tool.ts"

/** What is wrong with a list. Undefined: nothing. */
const wrong = (todos: ReadonlyArray<Todo>): string | undefined => {
  const blank = todos.findIndex(({ description }) => description.trim() === "")
  if (blank >= 0) return `step ${blank + 1} has no description; give each step one`
  const active = todos.filter(({ status }) => status === "in_progress").length
  return active > 1
    ? `${active} steps are in_progress, but at most one is allowed; the list was not changed`
    : undefined
}

/** The list as the model sees it: numbered, with statuses. */
const echo = (todos: ReadonlyArray<Todo>): string =>
  todos.length === 0
    ? "The list is empty now."
    : `The list is now:\n${todos.map(({ description, status }, index) => `${index + 1}. [${status}] ${description}`).join("\n")}`

/** The `write_todos` tool. Each call gives the whole list. */
export const writeTodos: Tool = make({
  name: "write_todos",
  description:
    "Keeps a list of the steps of longer work, for you and the user. Each call replaces the whole list. Mark the current step as in_progress, never more than one, and each step as completed when it is done.",
  parameters: Schema.Struct({
    todos: Schema.Array(Todo.annotate({ description: "A step: its description and status" })).annotate({
      description: "All steps, in order"
    })
  }),
  result: Schema.String,
  kind: "read",
  title: ({ todos }) => `${todos.length} step${todos.length === 1 ? "" : "s"}`,
  run: ({ todos }) => {
    const problem = wrong(todos)
    return problem === undefined
      ? Effect.succeed({ value: echo(todos), display: { _tag: "Todos", todos } })
      : Effect.fail(new ToolFailure({ message: problem, type: "invalid_tool_params" }))
  }
})
