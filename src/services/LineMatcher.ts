import { Context, type Effect, type Scope } from "effect"

/** A line that matches. */
export interface MatchedLine {
  /** From 1, within the text. */
  readonly number: number
  /** The line, or the first few thousand characters of a longer one. */
  readonly text: string
}

/** A regular expression at work. */
export interface Matcher {
  /** The lines of a text that match, at most so many. Interrupting ends the work, however long a pattern would go on. */
  readonly lines: (text: string, most: number) => Effect.Effect<ReadonlyArray<MatchedLine>>
}

/** Matches lines where no pattern, however bad, stops the program. */
export class LineMatcher extends Context.Service<
  LineMatcher,
  {
    /** A matcher for a valid expression. It lives as long as the scope. */
    readonly make: (source: string, flags: string) => Effect.Effect<Matcher, never, Scope.Scope>
  }
>()("palimpsest/services/LineMatcher") {}
