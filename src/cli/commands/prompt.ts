import { Effect, Schema, Stdio } from "effect"
import { Command, Flag } from "effect/cli"
import { printable } from "../../domain/Inspection.ts"
import { PromptSize } from "../../domain/prompt/PromptInputs.ts"
import { estimateText } from "../../domain/Tokens.ts"
import type { Built } from "../../services/SystemPrompt.ts"
import type { ExitError } from "../ExitError.ts"
import * as Input from "../Input.ts"
import * as Output from "../Output.ts"

/** What is asked for; what is undefined is as the settings have it. */
export interface PromptFlags {
  readonly size: PromptSize | undefined
  /** As it is while a plan is made. */
  readonly plan: boolean
  readonly model: string | undefined
}

/** What goes with every request before the conversation. */
export interface Assembled {
  readonly built: Built
  /** Estimated tokens of the tools' declarations. */
  readonly toolTokens?: number | undefined
  /** The message about the surroundings, as it would be sent. */
  readonly environment?: string | undefined
}

/** What `--json` prints. */
const Shown = Schema.Struct({
  prompt: Schema.String,
  sections: Schema.Array(Schema.Struct({ key: Schema.String, tokens: Schema.Natural })),
  environment: Schema.NullOr(Schema.String),
  /** Estimated. `prompt` counts the sections together; null: not known here. */
  tokens: Schema.Struct({
    prompt: Schema.Natural,
    tools: Schema.NullOr(Schema.Natural),
    environment: Schema.NullOr(Schema.Natural),
    total: Schema.Natural
  }),
  notices: Schema.Array(Schema.String)
})

/** What is printed of it, as numbers. */
export const shownOf = ({ built, environment, toolTokens }: Assembled): typeof Shown.Type => {
  const prompt = estimateText(built.text)
  const around = environment === undefined ? null : estimateText(environment)
  return {
    prompt: built.text,
    sections: built.sections.map(({ key, text }) => ({ key, tokens: estimateText(text) })),
    environment: environment ?? null,
    tokens: {
      prompt,
      tools: toolTokens ?? null,
      environment: around,
      total: prompt + (toolTokens ?? 0) + (around ?? 0)
    },
    notices: built.notices
  }
}

/** The tokens of each section, then of the whole, then of what goes with it. */
export const rowsOf = ({ sections, tokens }: ReturnType<typeof shownOf>): ReadonlyArray<readonly [string, string]> => [
  ["SECTION", "TOKENS"],
  ...sections.map(({ key, tokens: own }) => [key, Output.number(own)] as const),
  ["system prompt", Output.number(tokens.prompt)],
  ...(tokens.tools === null ? [] : [["tools", Output.number(tokens.tools)] as const]),
  ...(tokens.environment === null ? [] : [["environment", Output.number(tokens.environment)] as const]),
  ...(tokens.tools === null && tokens.environment === null
    ? []
    : [["in each request", Output.number(tokens.total)] as const])
]

/** Lines as they are, but for what would steer a terminal; what stands at their beginning stays. */
const lines = (text: string): string =>
  text
    .split("\n")
    .map((line) => `${/^[ \t]*/.exec(line)?.[0] ?? ""}${printable(line)}`)
    .join("\n")

const flags = {
  size: Input.optional(Flag.Literals("size", PromptSize.literals)).pipe(
    Flag.withDescription("How much of it: full, minimal as agents get it, or none but who it is")
  ),
  plan: Flag.Boolean("plan").pipe(Flag.withDescription("As it is while a plan is made"), Flag.withDefault(false)),
  model: Input.optional(Flag.String("model")).pipe(
    Flag.withMetavar("name"),
    Flag.withDescription("For this model: older ones are told more")
  ),
  json: Input.json
}

/** `palimpsest prompt`; `assemble` puts together what would be sent from this folder. */
export const promptCommand = <R>(assemble: (flags: PromptFlags) => Effect.Effect<Assembled, ExitError, R>) =>
  Command.make(
    "prompt",
    flags,
    Effect.fn("cli.prompt")(function* ({ json, ...wanted }) {
      const shown = shownOf(yield* assemble(wanted))
      if (json) return yield* Output.json(Shown, shown)
      const stdio = yield* Stdio.Stdio
      // Into a file it goes byte for byte.
      yield* Output.text((yield* stdio.stdoutIsTerminal) ? lines(shown.prompt) : shown.prompt)
      yield* Effect.forEach(shown.notices, (line) => Output.notice(line), { discard: true })
      yield* Output.aside(Output.table(rowsOf(shown), "lr"))
    })
  ).pipe(
    Command.withDescription(
      "Print the system prompt as ask sends it from this folder: itself on stdout, the tokens of its sections on stderr"
    ),
    Command.withExamples([
      { command: "palimpsest prompt", description: "Read it" },
      {
        command: "palimpsest prompt --json",
        description: "With the tokens of each section and of all that goes with it"
      },
      { command: "palimpsest prompt --size minimal > agent.md", description: "Keep the short form" }
    ])
  )
