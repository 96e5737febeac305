import { call, type Content, model, response, user } from "../../src/domain/content/Content.ts"

/** Calls of a coding agent's tools with their answers, in few words. */

/** A call with its answer. */
export type MadeCall = readonly [tool: string, args: unknown, answer: object]

/** Calls and answers as messages, each call with an id of its own. */
export const calls = (...made: ReadonlyArray<MadeCall>): Array<Content> =>
  made.flatMap(([tool, args, answer], at) => [
    model(call(tool, args, `${tool}${at}`)),
    user(response(tool, answer, `${tool}${at}`))
  ])

/** A command that ended with status 0. */
export const ran = (command: string, output = "ok"): MadeCall => ["Bash", { command }, { output }]

/** A command that failed. */
export const broke = (command: string, error: string): MadeCall => ["Bash", { command }, { error }]

export const saw = (file_path: string, output: string): MadeCall => ["Read", { file_path }, { output }]

export const wrote = (file_path: string, content: string): MadeCall => [
  "Write",
  { file_path, content },
  { output: "ok" }
]

export const edited = (file_path: string, old_string: string, new_string: string): MadeCall => [
  "Edit",
  { file_path, old_string, new_string },
  { output: "ok" }
]
