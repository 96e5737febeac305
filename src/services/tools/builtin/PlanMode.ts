/** Plan mode: while a plan is made nothing is changed, and the user decides when it is done. */

import { Effect, FileSystem, type Path, Schema } from "effect"
import { decode } from "../../../domain/text/Bytes.ts"
import { quotedPath } from "../../../domain/text/WorkspacePath.ts"
import { type ApprovalMode, editGrant } from "../../../domain/tools/Approval.ts"
import { textDisplay } from "../../../domain/tools/ToolResult.ts"
import { read } from "../../platform/RegularFile.ts"
import type { Workspace } from "../../workspace/Workspace.ts"
import { Approval } from "../Approval.ts"
import { Plans } from "../Plans.ts"
import { fileReadFailure, make, makePrepared, pathArgument, type Question, type Tool, ToolFailure } from "../Tool.ts"
import { type FileReader, fileReader } from "./FolderToolArguments.ts"

/** Maximum size of a plan, in bytes: users do not read more before they approve it. */
const maxPlanBytes = 262_144

/** What the model may do in each mode. */
const modeAfterPlan: Readonly<Record<ApprovalMode, string>> = {
  none: "The user approves each change, as before.",
  edits: "Edits of files in the workspace run without asking; the user approves all other changes.",
  all: "Everything runs without asking.",
  plan: "Nothing may be changed yet."
}

/** Instructions to the model when planning starts. */
const planInstructions = (file: string): string =>
  `Do not change or execute anything until the user has approved a plan. Read what you need, ask what only the user can decide, and write the plan to ${quotedPath(file)}, the only file you may write. Then call exit_plan_mode.`

/** The `enter_plan_mode` tool: lets a model start a plan. Asks the user, unless the mode is already `plan`. */
export const enterPlanMode: Effect.Effect<Tool, never, Approval | Plans> = Effect.gen(function* () {
  const approval = yield* Approval
  const { file } = yield* Plans
  return make({
    name: "enter_plan_mode",
    description:
      "Starts planning: you may only read, and write one plan file, until the user has approved the plan. Use it for work of many steps or for an unclear request, not for a question or a small change.",
    parameters: Schema.Struct({
      reason: Schema.optionalKey(
        Schema.String.annotate({ description: "Why to plan first, in one sentence for the user" })
      )
    }),
    result: Schema.String,
    kind: "read",
    keeps: true,
    timeout: "Infinity",
    title: ({ reason = "" }) => reason,
    question: ({ reason = "" }) =>
      Effect.map(approval.mode, (mode) =>
        mode === "plan"
          ? undefined
          : {
              detail: `${reason === "" ? "" : `${reason}\n`}The agent plans first; nothing is changed or executed until you approve the plan.`,
              grants: [],
              covers: "this plan",
              mustBeSeen: true,
              otherwise: "continue without a plan"
            }
      ),
    run: () =>
      Effect.gen(function* () {
        const wasOn = (yield* approval.mode) === "plan"
        yield* approval.setMode("plan")
        return {
          value: `${wasOn ? "You are already planning." : "Planning has started."} ${planInstructions(file)}`,
          display: textDisplay("planning: nothing is changed until the plan is approved")
        }
      })
  })
})

/** The plan of one conversation, and what it is read and approved with. */
interface Planning extends FileReader {
  readonly approval: Approval["Service"]
  readonly plans: Plans["Service"]
}

const missing = (file: string, what: string): ToolFailure =>
  new ToolFailure({
    message: `${what}; write the plan to ${quotedPath(file)} with write_file, then call exit_plan_mode again`,
    type: "plan_missing"
  })

const tooLong = (what: string): ToolFailure =>
  new ToolFailure({
    message: `${what} has more than ${maxPlanBytes / 1_024} KiB, too much to review; make the plan shorter`,
    type: "file_too_large"
  })

/** The file of a plan, by path or by name. */
const fileOf = ({ path, plans, workspace }: Planning, named = "") => {
  const name = named.trim()
  return name === "" || name === path.basename(plans.file) || name === plans.file
    ? Effect.succeed(plans.file)
    : pathArgument(workspace, name, "read")
}

/** The plan in a file of the workspace. */
const writtenPlan = Effect.fnUntraced(function* (planning: Planning, name: string | undefined) {
  const file = yield* fileOf(planning, name)
  const shown = planning.workspace.shown(file)
  const bytes = yield* read(file, shown, maxPlanBytes).pipe(
    Effect.provideService(FileSystem.FileSystem, planning.fs),
    Effect.mapError((error) =>
      error.type === "file_not_found"
        ? missing(file, `there is no plan in ${shown}`)
        : error.type === "file_too_large"
          ? tooLong(shown)
          : fileReadFailure(error)
    )
  )
  const { text } = decode(bytes)
  if (text.includes("\0")) return yield* missing(file, `${shown} is not a text file`)
  return text.trim() === "" ? yield* missing(file, `${shown} is empty`) : text
})

const ExitParameters = Schema.Struct({
  plan_path: Schema.optionalKey(
    Schema.String.annotate({ description: "The file with the plan (default: the plan file)" })
  ),
  plan: Schema.optionalKey(Schema.String.annotate({ description: "The whole plan as text, if it is not in a file" }))
})

/** The plan that a call asks the user to approve. */
const planOf = Effect.fnUntraced(function* (planning: Planning, { plan = "", plan_path }: typeof ExitParameters.Type) {
  if ((yield* planning.approval.mode) !== "plan") {
    return yield* new ToolFailure({
      message: "there is no plan to approve; start one with enter_plan_mode",
      type: "no_plan_mode"
    })
  }
  if (plan.trim() === "") return yield* writtenPlan(planning, plan_path)
  return plan.length > maxPlanBytes ? yield* tooLong("the plan") : plan
})

const planQuestion = (detail: string): Question => ({
  detail,
  grants: [editGrant],
  covers: "the plan, and edits of files from then on",
  mustBeSeen: true,
  otherwise: "revise the plan and call exit_plan_mode again"
})

/** Keeps the approved plan and ends planning. */
const approvePlan = Effect.fnUntraced(function* ({ approval, plans }: Planning, plan: string) {
  const kept = yield* plans.approve(plan)
  const mode = yield* approval.leavePlan
  return {
    value: `The user approved the plan. It is stored in ${quotedPath(kept)}: read it again when in doubt. Carry it out now. ${modeAfterPlan[mode]}`,
    display: textDisplay("the plan is approved")
  }
})

/** The `exit_plan_mode` tool: shows the plan to the user. An approved plan is kept, and the mode before the plan applies again. */
export const exitPlanMode: Effect.Effect<
  Tool,
  never,
  Approval | FileSystem.FileSystem | Path.Path | Plans | Workspace
> = Effect.gen(function* () {
  const planning: Planning = { ...(yield* fileReader), approval: yield* Approval, plans: yield* Plans }
  return makePrepared({
    name: "exit_plan_mode",
    description:
      "Shows the plan to the user for approval. Call it while planning, when the plan is complete. The user approves it or says what to change.",
    parameters: ExitParameters,
    result: Schema.String,
    kind: "read",
    keeps: true,
    timeout: "Infinity",
    prepare: (args) =>
      planOf(planning, args).pipe(
        Effect.cached,
        Effect.map((plan) => ({
          question: Effect.map(plan, planQuestion),
          run: Effect.uninterruptible(Effect.flatMap(plan, (text) => approvePlan(planning, text)))
        }))
      )
  })
})
