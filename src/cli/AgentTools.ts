import { Effect, type Scope } from "effect"
import { Flag } from "effect/cli"
import { ApprovalMode } from "../domain/Approval.ts"
import { printable } from "../domain/Inspection.ts"
import type { Tool } from "../services/Tool.ts"
import type { ExitError } from "./ExitError.ts"
import * as Input from "./Input.ts"
import type { Opened } from "./OpenChat.ts"
import type { People, Runtime, Wanted, Worker } from "./Worker.ts"

/** What an agent of the command line may do: the flags, the tools, and what is told of them. */

/** What every command that lets an agent work takes. */
export const flags = {
  approve: Input.optional(Flag.Literals("approve", ApprovalMode.literals)).pipe(
    Flag.withDescription(
      "What runs without asking: none that changes anything, edits of files, or all; plan: nothing is changed before you approve a plan (default: none)"
    )
  ),
  tools: Flag.Boolean("tools").pipe(
    Flag.withDescription("Let the model use tools; with --no-tools it only talks"),
    Flag.withDefault(true)
  ),
  addDir: Flag.String("add-dir").pipe(
    Flag.withMetavar("folder"),
    Flag.withDescription("Another folder whose files may be used, beside this one; may be given more than once"),
    Flag.atLeast(0)
  )
}

/** Puts an agent to a conversation. What it has started ends with the scope. Its tools are loaded when there is need of them. */
export const make = Effect.fn("AgentTools.make")(function* (
  opened: Pick<Opened, "chat" | "files" | "id" | "isNew" | "session" | "settings">,
  wanted: Wanted,
  people: People
): Effect.fn.Return<Worker, ExitError, Runtime | Scope.Scope> {
  const toolbox = yield* Effect.promise(() => import("./Toolbox.ts"))
  return yield* toolbox.make(opened, wanted, people)
})

/** What stands behind a tool's meaning: whether it asks before it runs, as far as that is known before its call. */
const manner = (mode: ApprovalMode, { kind }: Tool): string => {
  if (kind === "read" || mode === "all" || (mode === "edits" && kind === "edit")) return ""
  return mode === "plan" && kind !== "fetch" ? " Waits for the plan." : " Asks first."
}

const firstSentence = (text: string): string => printable(text).split(/(?<=\.)\s/)[0] ?? ""

/** What each tool is for, and whether it asks: names and their meaning. */
export const described = ({
  agents,
  approval,
  tools
}: Worker): Effect.Effect<ReadonlyArray<readonly [string, string]>> =>
  Effect.map(approval.mode, (mode) =>
    tools
      .filter(({ name }) => !agents.tools.some((agent) => agent.name === name))
      .map((tool) => {
        const first = firstSentence(tool.description)
        return [tool.name, `${first}${manner(mode, tool)}`] as const
      })
  )

/** The agents that work can be given to: names and what they are for. */
export const agentsOf = ({ agents }: Worker): ReadonlyArray<readonly [string, string]> =>
  agents.tools.map(({ description, name }) => [name, firstSentence(description)] as const)
