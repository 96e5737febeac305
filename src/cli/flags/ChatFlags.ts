/** Flags that choose a session and how it is compressed, and the session options that they make. */

import { Effect } from "effect"
import { type Command, Flag } from "effect/cli"
import { latestName } from "../../domain/session/SessionName.ts"
import { ApprovalMode } from "../../domain/tools/Approval.ts"
import type { HostOptions } from "../../services/runtime/AgentParts.ts"
import type { SessionOptions } from "../../services/runtime/SessionOpening.ts"
import { badInput, type ExitError } from "../output/ExitError.ts"
import * as Input from "./SharedFlags.ts"

/** The flags of every command that talks to a model. */
export const flags = {
  model: Input.optional(
    Flag.String("model").pipe(Flag.withAlias("m"), Flag.withMetavar("name")),
    "Use this model (default: the session's, then PALIMPSEST_MODEL, then settings)"
  ),
  session: Input.text("session", "name", "Save the conversation under this id; resume it if it exists"),
  resume: Input.optional(
    Flag.String("resume").pipe(Flag.withAlias("r"), Flag.withMetavar("session"), Flag.withOptionalValue("")),
    `Resume a session: ${latestName}, its number, its title, or the beginning of its id; chat shows a list without one`
  ),
  continue: Input.flag("continue", `Resume the newest session; the same as --resume ${latestName}`).pipe(
    Flag.withAlias("c")
  ),
  threshold: Input.share("threshold", "Compress when this part of the window is used (1: only when nothing else fits)"),
  strategy: Input.optional(
    Input.strategy,
    `Strategy that compresses the conversation: ${Input.strategyNames} (default: the setting)`
  ),
  compressionModel: Input.models(
    "compression-model",
    "Model that writes summaries; of several, separated by commas, the next replaces one that fails"
  )
}

/** The flags of every command that runs an agent. */
export const agentFlags = {
  approve: Input.choice(
    "approve",
    ApprovalMode.literals,
    "Run without asking: none (no changes), edits, or all; plan: change nothing until you approve a plan"
  ),
  tools: Input.withDefault(Flag.Boolean("tools"), true, "Let the model use tools (default); --no-tools turns them off"),
  addDir: Flag.String("add-dir").pipe(
    Flag.withMetavar("folder"),
    Flag.withDescription("Also give access to this folder; repeatable"),
    Flag.atLeast(0)
  )
}

/** The parsed values of the flags. An empty `resume`: no session was named. */
export type ChatFlags = Partial<Command.Command.Config.Infer<typeof flags>>

/** The parsed flags of a chat. */
export type ChatOptions = ChatFlags & HostOptions & { readonly plain?: boolean | undefined }

/** Turns the flags into session options. Fails for invalid values and combinations. */
export const sessionOptions = Effect.fnUntraced(function* (
  flags: ChatFlags
): Effect.fn.Return<SessionOptions, ExitError> {
  const { compressionModel, model, session, strategy, threshold } = flags
  if (model?.trim() === "") return yield* badInput("--model needs the name of a model")
  if (model?.startsWith("replay:") === true) {
    return yield* badInput("use chat --model replay:FILE to step through a recording, or replay FILE to play it")
  }
  const latest = flags.continue === true ? latestName : undefined
  if ([session, flags.resume, latest].filter((name) => name !== undefined).length > 1) {
    return yield* badInput("--session, --resume and --continue exclude each other; name one session")
  }
  const resume = flags.resume ?? latest
  if (resume === "") {
    return yield* badInput(
      "--resume needs a session here: latest, its number, its title or the beginning of its id (palimpsest sessions list)"
    )
  }
  const options = { model, threshold, strategy, compressionModel }
  if (resume !== undefined) return { ...options, session: { _tag: "Resume", name: resume } }
  if (session !== undefined) return { ...options, session: { _tag: "Named", name: session } }
  return options
})
