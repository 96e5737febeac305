/** The contract of asking the user on behalf of the model. */

import { Context, Effect, Layer } from "effect"
import { ToolFailure } from "./Tool.ts"

/** One of the offered answers. */
export interface Choice {
  readonly label: string
  /** What the choice means, on one line. */
  readonly description: string | undefined
}

/** A question of a model to the user. */
export interface UserQuestion {
  readonly text: string
  /** The topic in a word or two. */
  readonly header: string | undefined
  /** The offered answers. The user may always answer in other words; with no choices, that is the only way. */
  readonly choices: ReadonlyArray<Choice>
  /** Whether the user may select more than one choice. */
  readonly several: boolean
}

/** Asks the user who works with the agent. */
export class UserPrompt extends Context.Service<
  UserPrompt,
  {
    /** Returns the user's answer, as free text or as the labels of choices. A failure says why there is none. Waits without a limit. */
    readonly ask: (question: UserQuestion) => Effect.Effect<string, ToolFailure>
  }
>()("palimpsest/services/tools/UserPrompt") {
  /** A layer without a user: every question fails with a message that says so. */
  static readonly layerUnavailable = Layer.succeed(UserPrompt, {
    ask: () =>
      Effect.fail(
        new ToolFailure({
          message: "no user is available to answer; make the most sensible choice and state your assumption",
          type: "nobody_there"
        })
      )
  })
}
