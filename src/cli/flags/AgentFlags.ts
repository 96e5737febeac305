import { Flag } from "effect/cli"
import { ApprovalMode } from "../../domain/tools/Approval.ts"
import * as Input from "./SharedFlags.ts"

/** The flags of every command that runs an agent. */
export const flags = {
  approve: Input.optional(
    Flag.Literals("approve", ApprovalMode.literals),
    "Run without asking: none (no changes), edits, or all; plan: change nothing until you approve a plan"
  ),
  tools: Input.withDefault(Flag.Boolean("tools"), true, "Let the model use tools (default); --no-tools turns them off"),
  addDir: Flag.String("add-dir").pipe(
    Flag.withMetavar("folder"),
    Flag.withDescription("Also give access to this folder; repeatable"),
    Flag.atLeast(0)
  )
}
