import { Context, type Effect, type Scope } from "effect"

/** A line that matches. */
export interface MatchedLine {
  /** From 1, within the text. */
  readonly number: number
  /** The line, or the first few thousand characters of a longer one. */
  readonly text: string
}

/** A matcher for one regular expression. */
export interface Matcher {
  /** Returns the matching lines of a text, at most `maxMatches`. Interrupting ends the search, however long the pattern would take. */
  readonly lines: (text: string, maxMatches: number) => Effect.Effect<ReadonlyArray<MatchedLine>>
}

/** Matches lines outside the main thread, so that no pattern can block the program. */
export class LineMatcher extends Context.Service<
  LineMatcher,
  {
    /** Makes a matcher for a valid expression, until the scope closes. */
    readonly make: (source: string, flags: string) => Effect.Effect<Matcher, never, Scope.Scope>
  }
>()("palimpsest/services/platform/LineMatcher") {}
