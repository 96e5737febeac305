import { Effect } from "effect"
import { Command, Flag } from "effect/cli"
import * as CarriedSession from "../flags/CarriedSession.ts"
import { withExamples } from "../flags/SharedFlags.ts"

/** The command `palimpsest resume SESSION --in AGENT`. */
export const resume = Command.make(
  "resume",
  {
    ...CarriedSession.flags,
    in: Flag.Literals("in", CarriedSession.agents).pipe(Flag.withDescription("Agent to continue the session in"))
  },
  Effect.fn("cli.resume")(({ in: agent, ...input }) => CarriedSession.run({ ...input, agent }))
).pipe(
  withExamples({
    "palimpsest resume 1f0c2d1a --in codex": "Continue a session of any agent in Codex"
  })
)
