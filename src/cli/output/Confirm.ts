/** Asks the user of a command for confirmation. */

import { Effect, Stdio } from "effect"
import { Prompt } from "effect/cli"
import { badInput } from "./ExitError.ts"

/** Whether the user can be asked: input and output are a terminal. */
export const canConfirm = Effect.gen(function* () {
  const stdio = yield* Stdio.Stdio
  return (yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal)
})

/** Asks a question. Ctrl+C is a no. */
export const confirm = (message: string) =>
  Prompt.run(Prompt.Confirm({ message })).pipe(Effect.catchTag("QuitError", () => Effect.succeed(false)))

/** Asks a question; where the user cannot be asked, fails and says that `--yes` does it, too. `verb`: what it does. */
export const confirmOrFail = Effect.fnUntraced(function* (message: string, verb: string) {
  if (!(yield* canConfirm)) return yield* badInput(`cannot ask for confirmation here; use --yes to ${verb}`)
  return yield* confirm(message)
})
