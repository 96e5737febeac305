import { Effect } from "effect"
import { ApprovalMode } from "../../../domain/tools/Approval.ts"
import { say } from "./ChatSession.ts"
import type { SlashCommand } from "./SlashCommand.ts"

const modeText: Readonly<Record<ApprovalMode, string>> = {
  none: "Asks before changes you haven't already allowed; /approvals lists what you allowed.",
  edits: "File edits in the workspace run without asking; other changes ask first.",
  all: "Everything runs without asking.",
  plan: "Nothing is changed or executed until you approve a plan."
}

/** `/approve [mode]`: shows or changes what runs without asking. */
export const approve: SlashCommand = {
  name: "approve",
  usage: `[${ApprovalMode.literals.join("|")}]`,
  help: "Show or change what runs without asking",
  run: Effect.fnUntraced(function* (session, argument) {
    const { mode, setMode } = session.agent.approval
    const chosen = ApprovalMode.literals.find((each) => each === argument.toLowerCase())
    if (argument !== "" && chosen === undefined) {
      return yield* say(
        session,
        `Choose what runs without asking: /approve ${ApprovalMode.literals.join(", /approve ")}.`
      )
    }
    if (chosen !== undefined) yield* setMode(chosen)
    yield* say(session, modeText[yield* mode])
  })
}
