/** The `prompt` command: shows what an agent would send from this folder before the first message. */

import { Effect, Schema, Stdio } from "effect"
import { Command, Flag } from "effect/cli"
import { PromptSize } from "../../domain/prompt/PromptInputs.ts"
import { printableLine } from "../../domain/text/InvisibleCharacters.ts"
import { estimateText } from "../../domain/tokens/Tokens.ts"
import type { PromptPreview, PromptPreviewOptions } from "../../services/runtime/PromptPreview.ts"
import * as Input from "../flags/SharedFlags.ts"
import type { ExitError } from "../output/ExitError.ts"
import * as Output from "../output/Output.ts"

/** The output of `--json`. */
const Shown = Schema.Struct({
  prompt: Schema.String,
  sections: Schema.Array(Schema.Struct({ key: Schema.String, tokens: Schema.Natural })),
  environment: Schema.NullOr(Schema.String),
  /** Estimated tokens. `prompt` is the sum of the sections; null means unknown. */
  tokens: Schema.Struct({
    prompt: Schema.Natural,
    tools: Schema.NullOr(Schema.Natural),
    environment: Schema.NullOr(Schema.Natural),
    total: Schema.Natural
  }),
  notices: Schema.Array(Schema.String)
})

/** The figures that are printed. */
export const shownOf = ({ built, environment, toolTokens }: PromptPreview): typeof Shown.Type => {
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

/** The tokens of each section, of the whole prompt, and of the rest of the request. */
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

/** Escapes control characters and keeps line breaks and indentation. */
const lines = (text: string): string =>
  text
    .split("\n")
    .map((line) => `${/^[ \t]*/.exec(line)?.[0] ?? ""}${printableLine(line)}`)
    .join("\n")

const flags = {
  size: Input.optional(
    Flag.Literals("size", PromptSize.literals).pipe(Flag.withAlias("mode")),
    "Prompt size: full, brief (some 300 words), minimal (as agents get it) or none (identity only)"
  ),
  plan: Input.flag("plan", "Print the prompt of plan mode"),
  model: Input.text("model", "name", "Print the prompt for this model; older models get more detail"),
  json: Input.json
}

/** The command `palimpsest prompt`. `assemble` builds the prompt that would be sent from this folder. */
export const promptCommand = <R>(
  assemble: (flags: PromptPreviewOptions) => Effect.Effect<PromptPreview, ExitError, R>
) =>
  Command.make(
    "prompt",
    flags,
    Effect.fn("cli.prompt")(function* ({ json, ...options }) {
      const shown = shownOf(yield* assemble(options))
      if (json) return yield* Output.json(Shown, shown)
      const stdio = yield* Stdio.Stdio
      // A file or pipe receives the exact bytes.
      yield* Output.text((yield* stdio.stdoutIsTerminal) ? lines(shown.prompt) : shown.prompt)
      yield* Effect.forEach(shown.notices, (line) => Output.notice(line), { discard: true })
      yield* Output.aside(Output.table(rowsOf(shown), "lr"))
    })
  ).pipe(
    Input.withExamples({
      "palimpsest prompt": "Print the prompt",
      "palimpsest prompt --json": "Print it with the tokens of each section and of the tools",
      "palimpsest prompt --mode minimal > agent.md": "Save the short form"
    })
  )
