import { Effect, Ref, Schema } from "effect"
import type { AgentOutput } from "../domain/AgentDefinition.ts"
import * as Tool from "./Tool.ts"

/** By its name an agent hands in what it was asked for (spec 9). */
export const completeTask = "complete_task"

/** The way in which one agent hands in its result. */
export interface Completion {
  readonly tool: Tool.Tool
  /** What was handed in, as the text that goes on; undefined: nothing yet. */
  readonly submitted: Effect.Effect<string | undefined>
  /** Another task begins. */
  readonly reset: Effect.Effect<void>
}

const NotBlank = Schema.String.check(
  Schema.makeFilter((text) => text.trim() !== "", { expected: "a text that is not blank" })
)

const usual: AgentOutput = {
  name: "result",
  description:
    "All that whoever gave you the task gets to read: what you found or did, complete, with names and places",
  schema: NotBlank
}

/** Texts as they are, all else as JSON for people. */
const written = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2))

/**
 * The tool that ends an agent's work. What does not fit the schema is answered, and the agent goes on; the first result that
 * fits counts, a second one is an error.
 */
export const make = Effect.fnUntraced(function* ({
  description,
  name,
  schema
}: AgentOutput = usual): Effect.fn.Return<Completion> {
  const submitted = yield* Ref.make<string | undefined>(undefined)
  const encode = Schema.encodeEffect(schema)
  const tool = Tool.make({
    name: completeTask,
    description:
      "Hands in the result and ends your work. Call it once, when the task is done or cannot be done, and together with no other call.",
    parameters: Schema.Struct({ [name]: schema.annotate({ description }) }),
    result: Schema.Struct({ taskCompleted: Schema.Literal(true) }),
    kind: "read",
    run: (args) =>
      Effect.gen(function* () {
        const text = written(yield* Effect.orDie(encode(args[name])))
        const isFirst = yield* Ref.modify(submitted, (before) => [before === undefined, before ?? text])
        if (isFirst) return { value: { taskCompleted: true as const }, ends: true }
        return yield* new Tool.ToolFailure({
          message: `${completeTask} was called already; the first result counts`,
          type: "complete_task_twice"
        })
      })
  })
  return { tool, submitted: Ref.get(submitted), reset: Ref.set(submitted, undefined) }
})
