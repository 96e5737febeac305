/** The `save_memory` tool: remembers a fact in a memory file. */

import { Effect, Predicate, Schema } from "effect"
import { MemoryScope } from "../../../domain/memory/MemoryText.ts"
import { type Display, textDisplay } from "../../../domain/tools/ToolResult.ts"
import { Memory, type MemoryChange, type SavedFact } from "../../memory/Memory.ts"
import { type CallContext, makePrepared, type Question, type Tool, ToolFailure } from "../Tool.ts"
import type { UserPrompt } from "../UserPrompt.ts"

/** Options of the `save_memory` tool. */
interface SaveMemoryOptions {
  /** Asks the user for the scope of a fact when the model names none. Absent: the model has to name it. */
  readonly ask?: UserPrompt["Service"]["ask"] | undefined
}

const labels: Readonly<Record<MemoryScope, string>> = { project: "This project", global: "Everywhere" }

/** The scope in the user's answer: an offered choice, or the word itself. */
const scopeOf = (answer: string): MemoryScope | undefined => {
  const word = answer.trim().toLowerCase()
  return MemoryScope.literals.find((scope) => word === scope || word === labels[scope].toLowerCase())
}

const failure = (message: string, type = "memory_tool_execution_error") => new ToolFailure({ message, type })

const Parameters = Schema.Struct({
  fact: Schema.String.check(
    Schema.makeFilter((fact: string) => fact.trim() !== "" || "there is nothing in it; say the fact")
  ).annotate({ description: "The fact, as a short sentence that is clear by itself" }),
  scope: Schema.optionalKey(
    MemoryScope.annotate({
      description:
        "Its scope: project for this project alone, global for all of the user's work. Leave it out when unclear; the user is then asked"
    })
  )
})

const knownArguments = new Set(Object.keys(Parameters.fields))

/** Asks the user for the scope of a fact. */
const askScope = Effect.fnUntraced(function* (ask: SaveMemoryOptions["ask"], fact: string, { waiting }: CallContext) {
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
  return (
    scopeOf(answer) ??
    (yield* failure(
      `the user chose neither this project nor everywhere, so nothing was saved; the answer was: ${answer}`
    ))
  )
})

const questionOf = ({ after, before, diff, file, scope, shown }: MemoryChange): Question | undefined =>
  after === before
    ? undefined
    : {
        detail: `${shown}\n${diff.diff}`,
        touches: [file],
        grants: [scope === "global" ? "memory:global" : `memory:${file}`],
        covers: scope === "global" ? "facts in your own memory" : `facts in ${shown}`
      }

const resultOf = ({ diff: { added, diff, removed }, shown }: SavedFact) => {
  const isNew = diff !== ""
  const message = isNew ? `Remembered in ${shown}; it holds from the next request on.` : `${shown} says so already.`
  const display: Display = isNew
    ? { _tag: "Diff", file: shown, diff, added, removed }
    : textDisplay(`${shown} says so already`)
  return { value: { success: true, message }, display }
}

/**
 * The `save_memory` tool. The model or the user chooses the scope of a fact; it is never guessed. The user sees the change of the
 * file, and exactly that is written.
 */
export const saveMemory = ({ ask }: SaveMemoryOptions = {}): Effect.Effect<Tool, never, Memory> =>
  Effect.map(Memory, (memory) => {
    const tool = makePrepared({
      name: "save_memory",
      description:
        "Stores one fact permanently: every later conversation begins with it. Use it for what the user asks you to remember, or would not want to repeat; not for the current task, nor for what the code itself shows.",
      parameters: Parameters,
      result: Schema.Struct({ success: Schema.Boolean, message: Schema.String }),
      kind: "edit",
      // It waits for the user; the write itself is short.
      timeout: "Infinity",
      title: ({ fact, scope }) => (scope === undefined ? fact : `(${scope}) ${fact}`),
      prepare: ({ fact, scope }, context) =>
        (scope === undefined ? askScope(ask, fact, context) : Effect.succeed(scope)).pipe(
          Effect.flatMap((chosen) => Effect.mapError(memory.plan(fact, chosen), ({ message }) => failure(message))),
          Effect.cached,
          Effect.map((planned) => ({
            question: Effect.map(planned, questionOf),
            run: Effect.flatMap(planned, (change) =>
              Effect.mapBoth(memory.save(change), {
                onFailure: ({ message }) => failure(message),
                onSuccess: resultOf
              })
            )
          }))
        )
    })
    return {
      ...tool,
      // Text that the model added is part of the fact; leaving it out silently would lose it.
      call: (args, context) => {
        const unknown = Predicate.isObject(args) ? Object.keys(args).filter((key) => !knownArguments.has(key)) : []
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
