import { Effect } from "effect"
import { Command } from "effect/cli"
import * as CarriedSession from "../flags/CarriedSession.ts"
import { withExamples } from "../flags/SharedFlags.ts"

/** The command `palimpsest rescue SESSION`. */
export const rescue = Command.make(
  "rescue",
  CarriedSession.flags,
  Effect.fn("cli.rescue")((input) => CarriedSession.run({ ...input, agent: undefined }))
).pipe(
  withExamples({
    "palimpsest rescue 1f0c2d1a": "Write a session that opens again, and print the command that opens it",
    "palimpsest rescue session.jsonl --below 60k": "Limit its messages to 60,000 tokens"
  })
)
