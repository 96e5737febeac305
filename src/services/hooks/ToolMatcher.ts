import { Effect } from "effect"
import { trimmedMatcher } from "../../domain/hooks/HookOutcome.ts"
import { PatternMatcher } from "../../domain/text/Pattern.ts"
import * as Patterns from "../platform/Patterns.ts"

/** Whether a hook is for a tool. */
export type ToolMatcher = (tool: string) => Effect.Effect<boolean>

const always: ToolMatcher = () => Effect.succeed(true)

/**
 * Makes the function of a matcher: a regular expression anywhere in the name of the tool, or the exact name when it is none that can be used. Without a
 * matcher, a hook is for all tools.
 */
export const toolMatcher = (matcher: string | undefined): Effect.Effect<ToolMatcher> => {
  const trimmed = trimmedMatcher(matcher)
  if (trimmed === undefined) return Effect.succeed(always)
  // Most are names, which need no engine.
  if (/^\w+$/.test(trimmed)) return Effect.succeed((tool) => Effect.succeed(tool.includes(trimmed)))
  return Effect.match(Patterns.compile(trimmed, { ignoresCase: false }), {
    onFailure: (): ToolMatcher => (tool) => Effect.succeed(tool === trimmed),
    onSuccess:
      (pattern): ToolMatcher =>
      (tool) =>
        Patterns.run(new PatternMatcher(pattern).line(tool)).pipe(
          Effect.map((found) => found !== undefined),
          // A hook may be there to refuse a call: better it runs once too often.
          Effect.orElseSucceed(() => true)
        )
  })
}
