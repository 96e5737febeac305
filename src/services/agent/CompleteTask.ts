/** The tool `complete_task`, by which an agent submits its result. */

import { Effect, Ref, Schema } from "effect"
import type { AgentOutput } from "../../domain/agent/AgentDefinition.ts"
import * as Tool from "../tools/Tool.ts"

/** The name of the tool by which an agent submits its result. */
export const completeTask = "complete_task"

/** The tool by which one agent submits its result, and its state. */
export interface Completion {
  readonly tool: Tool.Tool
  /** The submitted result as text. Undefined: nothing has been submitted. */
  readonly submitted: Effect.Effect<string | undefined>
  /** Forgets the result, because another task begins. */
  readonly reset: Effect.Effect<void>
}

const NotBlank = Schema.String.check(
  Schema.makeFilter((text) => text.trim() !== "", { expected: "a text that is not blank" })
)

const defaultOutput: AgentOutput = {
  name: "result",
  description: "The only text that your caller reads: what you found or did, complete, with names and locations",
  schema: NotBlank
}

/** Text unchanged, any other value as indented JSON. */
const written = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

/**
 * Makes the tool that ends an agent's work. A result that does not fit the schema is answered with the error, and the agent continues. The first
 * valid result counts; a second one is an error.
 */
export const make = Effect.fnUntraced(function* ({
  description,
  name,
  schema
}: AgentOutput = defaultOutput): Effect.fn.Return<Completion> {
  const submitted = yield* Ref.make<string | undefined>(undefined)
  const encode = Schema.encodeEffect(schema)
  const tool = Tool.make({
    name: completeTask,
    description:
      "Submits the result and ends your work. Call it once, when the task is done or cannot be done, and without any other call.",
    parameters: Schema.Struct({ [name]: schema.annotate({ description }) }),
    result: Schema.Struct({ taskCompleted: Schema.Literal(true) }),
    kind: "read",
    run: (args) =>
      Effect.gen(function* () {
        const text = written(yield* Effect.orDie(encode(args[name])))
        const isFirst = yield* Ref.modify(submitted, (before) => [before === undefined, before ?? text])
        if (isFirst) return { value: { taskCompleted: true as const }, ends: true }
        return yield* new Tool.ToolFailure({
          message: `${completeTask} was already called; the first result counts`,
          type: "complete_task_twice"
        })
      })
  })
  return { tool, submitted: Ref.get(submitted), reset: Ref.set(submitted, undefined) }
})
