/** The slash commands `/approve` and `/approvals`: what runs without asking, and what the user allowed. */

import { Effect, Option } from "effect"
import { printableLine } from "../../../domain/text/InvisibleCharacters.ts"
import { ApprovalMode, grantText, type HeldGrant } from "../../../domain/tools/Approval.ts"
import { definitions } from "../../output/Columns.ts"
import { type ChatSession, say, type SlashCommand, tableColumns } from "./ChatSession.ts"

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

const duration = ({ isKept }: HeldGrant): string => (isKept ? "always, in your settings" : "until you leave")

/** Lists the grants with numbers. */
const list = Effect.fnUntraced(function* (session: ChatSession, held: ReadonlyArray<HeldGrant>) {
  const rows = held.map(
    (one, at) => [`${at + 1}`, `${printableLine(grantText(one.grant))} (${duration(one)})`] as const
  )
  yield* session.terminal.write(`${definitions(rows, yield* tableColumns(session))}\n`)
  yield* say(session, "/approvals NUMBER takes one back, /approvals all takes back all of them.")
})

/** `/approvals [number|all]`: shows what the user allowed, and takes it back. */
export const approvals: SlashCommand = {
  name: "approvals",
  aliases: ["permissions"],
  usage: "[number|all]",
  help: "Show what you allowed, and take it back",
  run: Effect.fnUntraced(function* (session, argument) {
    const { approval } = session.agent
    const held = yield* approval.grants
    if (held.length === 0) return yield* say(session, "You have allowed nothing so far; each change asks.")
    const withdraw = (grants: ReadonlyArray<HeldGrant>) =>
      Effect.forEach(
        grants,
        ({ grant }) => Effect.andThen(approval.withdraw(grant), say(session, `This asks again: ${grantText(grant)}.`)),
        { discard: true }
      )
    if (argument.toLowerCase() === "all") return yield* withdraw(held)
    if (argument !== "") {
      const one = held.find(({ grant }, at) => argument === String(at + 1) || argument === grant)
      return one === undefined
        ? yield* say(session, `There is no approval ${printableLine(argument)}; /approvals lists them.`)
        : yield* withdraw([one])
    }
    const choices = held.map((value) => ({
      value,
      label: printableLine(grantText(value.grant)),
      about: duration(value)
    }))
    const chosen = yield* Effect.option(session.terminal.choose("Enter takes an approval back", choices))
    // No list can be shown here.
    if (Option.isNone(chosen)) return yield* list(session, held)
    if (Option.isSome(chosen.value)) yield* withdraw([chosen.value.value])
  })
}
