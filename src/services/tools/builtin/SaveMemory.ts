import { Effect, Predicate, Schema } from "effect"
import { MemoryScope } from "../../../domain/memory/MemoryText.ts"
import { type Display, textDisplay } from "../../../domain/tools/ToolResult.ts"
import { Memory, type SavedFact } from "../../memory/Memory.ts"
import { makePrepared, type Tool, ToolFailure } from "../Tool.ts"
import type { UserPrompt } from "../UserPrompt.ts"

/** Options of the `save_memory` tool. */
export interface SaveMemoryOptions {
  /** Asks the user where a fact belongs when the model does not say. Absent: the model has to say. */
  readonly ask?: UserPrompt["Service"]["ask"] | undefined
}

const labels: Readonly<Record<MemoryScope, string>> = { project: "This project", global: "Everywhere" }

/** The offered answers; the user may also type the word. */
const scopeOf = (answer: string): MemoryScope | undefined => {
  const said = answer.trim().toLowerCase()
  return MemoryScope.literals.find((scope) => said === scope || said === labels[scope].toLowerCase())
}

const knownLabels = new Set(["fact", "scope"])

const failure = (message: string, type = "memory_tool_execution_error") => new ToolFailure({ message, type })

const displayOf = ({ diff: { added, diff, removed }, shown }: SavedFact): Display =>
  diff === "" ? textDisplay(`${shown} says so already`) : { _tag: "Diff", file: shown, diff, added, removed }

/**
 * The `save_memory` tool: remembers a fact. The model or the user says where it belongs, it is never guessed. The user sees the
 * change of the file, and exactly that is written.
 */
export const saveMemory = ({ ask }: SaveMemoryOptions = {}): Effect.Effect<Tool, never, Memory> =>
  Effect.gen(function* () {
    const memory = yield* Memory
    const tool = makePrepared({
      name: "save_memory",
      description:
        "Stores one fact permanently: every later conversation begins with it. Use it for what the user asks you to remember, or would not want to repeat; not for the current task, nor for what the code itself shows.",
      parameters: Schema.Struct({
        fact: Schema.String.check(
          Schema.makeFilter((fact: string) => fact.trim() !== "" || "there is nothing in it; say the fact")
        ).annotate({ description: "The fact, as a short sentence that is clear by itself" }),
        scope: Schema.optionalKey(
          MemoryScope.annotate({
            description:
              "Its scope: project for this project alone, global for all of the user's work. Leave it out when unclear; the user is then asked"
          })
        )
      }),
      result: Schema.Struct({ success: Schema.Boolean, message: Schema.String }),
      kind: "edit",
      // It waits for the user; the write itself is short.
      timeout: "Infinity",
      title: ({ fact, scope }) => (scope === undefined ? fact : `(${scope}) ${fact}`),
      prepare: ({ fact, scope }, { waiting }) =>
        Effect.gen(function* () {
          const plan = (where: MemoryScope) =>
            Effect.mapError(memory.plan(fact, where), ({ message }) => failure(message))
          if (scope !== undefined) return yield* plan(scope)
          if (ask === undefined) {
            return yield* failure(
              `no user is available to choose the scope; call save_memory again with scope "project" or "global"`,
              "invalid_tool_params"
            )
          }
          const answer = yield* waiting(
            ask({
              text: `Where should this be remembered: ${fact.trim()}`,
              header: "Memory",
              choices: [
                { label: labels.project, description: "In the memory file of this folder" },
                { label: labels.global, description: "In your own memory file, for all projects" }
              ],
              several: false
            })
          )
          const said = scopeOf(answer)
          return said === undefined
            ? yield* failure(
                `the user chose neither this project nor everywhere, so nothing was saved; the answer was: ${answer}`
              )
            : yield* plan(said)
        }).pipe(
          Effect.cached,
          Effect.map((planned) => ({
            question: Effect.map(planned, ({ after, before, diff, file, scope: where, shown }) =>
              after === before
                ? undefined
                : {
                    detail: `${shown}\n${diff.diff}`,
                    touches: [file],
                    grants: [where === "global" ? "memory:global" : `memory:${file}`],
                    covers: where === "global" ? "facts in your own memory" : `facts in ${shown}`
                  }
            ),
            run: Effect.flatMap(planned, (change) =>
              memory.save(change).pipe(
                Effect.mapError(({ message }) => failure(message)),
                Effect.map((saved) => ({
                  value: {
                    success: true,
                    message:
                      saved.diff.diff === ""
                        ? `${saved.shown} says so already.`
                        : `Remembered in ${saved.shown}; it holds from the next request on.`
                  },
                  display: displayOf(saved)
                }))
              )
            )
          }))
        )
    })
    return {
      ...tool,
      // Text that the model added is part of the fact; leaving it out silently would lose it.
      call: (args, context) => {
        const unknown = Predicate.isObject(args) ? Object.keys(args).filter((key) => !knownLabels.has(key)) : []
        return unknown.length === 0
          ? tool.call(args, context)
          : Effect.fail(
              failure(
                `save_memory takes fact and scope, and nothing else: not ${unknown.join(", ")}`,
                "invalid_tool_params"
              )
            )
      }
    }
  })
