/** What a tool call did, whatever agent made it. */
export type Action =
  | { readonly _tag: "Read"; readonly path: string }
  | { readonly _tag: "Write"; readonly path: string; readonly created: boolean | undefined }
  | { readonly _tag: "Edit"; readonly path: string }
  | { readonly _tag: "Delete"; readonly path: string }
  /** Its changes, or those of the files in it, were taken back: `ofNew` of files that git does not know, else of all others. */
  | { readonly _tag: "Restore"; readonly path: string; readonly ofNew?: true }
  | Command
  | { readonly _tag: "Search"; readonly query: string }
  | { readonly _tag: "Todos"; readonly todos: ReadonlyArray<Todo> }
  | { readonly _tag: "Other"; readonly summary: string }

/** A command of a shell. */
export interface Command {
  readonly _tag: "Command"
  readonly command: string
  readonly exit: number | undefined
  /** What it printed, where the response holds more than that. */
  readonly output?: string
  /** Whether nothing states its exit code, so that the output decides whether it succeeded. */
  readonly isExitHidden?: true
}

/** One entry of the agent's todo list, with the status in the agent's own words. */
export interface Todo {
  readonly text: string
  readonly status: string
}

/** Whether a todo is still to be done. */
export const isOpenTodo = ({ status }: Todo): boolean => !/^(?:completed|done|cancelled|canceled)$/i.test(status)

/** Makes the action of a deleted file. */
export const removed = (path: string): Action => ({ _tag: "Delete", path })

/** Makes the action of a written file. */
export const written = (path: string, created?: boolean): Action => ({ _tag: "Write", path, created })
