import { Context, Effect, Layer } from "effect"
import { ToolFailure } from "./Tool.ts"

/** One of the answers that are offered. */
export interface Choice {
  readonly label: string
  /** What it means, in a line. */
  readonly description: string | undefined
}

/** What a person is asked by a model. */
export interface PersonQuestion {
  readonly text: string
  /** A word or two on what it is about. */
  readonly header: string | undefined
  /** None: any words are an answer. They are always allowed. */
  readonly choices: ReadonlyArray<Choice>
  /** Whether more than one choice may be taken. */
  readonly several: boolean
}

/** The person who works with the agent. */
export class Person extends Context.Service<
  Person,
  {
    /** Their answer, in words or by the labels of choices; a failure says why there is none. Waits as long as they do. */
    readonly ask: (question: PersonQuestion) => Effect.Effect<string, ToolFailure>
  }
>()("palimpsest/services/Person") {
  /** Nobody is there: every question says so. */
  static readonly layerNobody = Layer.succeed(Person, {
    ask: () =>
      Effect.fail(
        new ToolFailure({
          message: "nobody is there to answer; decide what is most sensible and say what you assumed",
          type: "nobody_there"
        })
      )
  })
}
