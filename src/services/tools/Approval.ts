/** Asks the user which tool calls may run, and keeps what the answers grant. */

import { Context, Effect, Layer, Ref, Semaphore } from "effect"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import {
  type Answer,
  type ApprovalMode,
  type ApprovalModes,
  canPersist,
  type Decision,
  grantIn,
  type HeldGrant,
  narrowerMode,
  nextMode,
  planModeRefusal,
  shownMode,
  startingModes,
  type ToolKind,
  verdict,
  withMode,
  withoutPlan
} from "../../domain/tools/Approval.ts"
import { steeringNote } from "../../domain/tools/SteeringFiles.ts"
import type { Question } from "./Tool.ts"

/** A call that waits for the user's answer. */
export interface ApprovalQuestion extends Question {
  /** The agent that makes the call. */
  readonly agent: string
  /** The id of the call, unique within the conversation of its agent. */
  readonly call?: string | undefined
  readonly tool: string
  /** The arguments with which the call runs. */
  readonly args?: unknown
  readonly kind: ToolKind
  /** The call on one line. */
  readonly title: string
  /** Whether a hook demands the user's review, whatever runs without asking. */
  readonly needsReview?: boolean | undefined
}

/** Options that decide which calls may run. */
export interface ApprovalOptions {
  readonly mode: ApprovalMode
  /** The widest mode: whatever mode is set, no other applies than the narrower of both. Absent: all. */
  readonly widest?: ApprovalMode | undefined
  /** The folder that the agent works in: a grant that is kept counts only in its sessions. Absent: in all. */
  readonly folder?: string | undefined
  /** Grants that the settings keep. */
  readonly granted: ReadonlyArray<string>
  /** The one file that may be written in plan mode, absolute with links followed (`Plans.file`). Absent: none. */
  readonly planFile?: string | undefined
  /** Asks the user. Absent: no user is available, and everything that is not granted is denied. */
  readonly ask?: ((question: ApprovalQuestion) => Effect.Effect<Answer>) | undefined
  /** Stores the grants of an "always" answer. */
  readonly keep?: ((grants: ReadonlyArray<string>) => Effect.Effect<void>) | undefined
  /** Removes a stored grant. */
  readonly forget?: ((grant: string) => Effect.Effect<void>) | undefined
}

/** Decides which calls run. The user is asked about one call at a time, whichever agent makes it. */
export class Approval extends Context.Service<
  Approval,
  {
    /**
     * Decides whether a call may run. `asking` runs before the user is asked, and the question waits for it. It does not run when no
     * question is needed.
     */
    readonly decide: (
      question: ApprovalQuestion,
      asking: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    ) => Effect.Effect<Decision>
    /** Changes the approval mode, from the next call on. */
    readonly setMode: (mode: ApprovalMode) => Effect.Effect<void>
    /** The current approval mode. */
    readonly mode: Effect.Effect<ApprovalMode>
    /** Changes to the next mode that differs to the user, and returns it. */
    readonly cycle: Effect.Effect<ApprovalMode>
    /** The mode to show to the user: `edits` also where a grant lets edits run. */
    readonly shownMode: Effect.Effect<ApprovalMode>
    /** The grants in force, oldest first. */
    readonly grants: Effect.Effect<ReadonlyArray<HeldGrant>>
    /** Takes a grant back, also from the settings. */
    readonly withdraw: (grant: string) => Effect.Effect<void>
    /** Ends the mode `plan`, restores the mode before it, and returns that mode. In another mode nothing changes. */
    readonly leavePlan: Effect.Effect<ApprovalMode>
  }
>()("palimpsest/services/tools/Approval") {
  /** Makes the service. Grants for this session last as long as the service. */
  static readonly make = Effect.fnUntraced(function* (options: ApprovalOptions): Effect.fn.Return<Approval["Service"]> {
    const state: ApprovalState = {
      options,
      modes: yield* Ref.make(startingModes(options.mode)),
      grants: yield* Ref.make<ReadonlyMap<string, HeldGrant>>(
        new Map(options.granted.map((grant) => [grant, { grant, isKept: true }]))
      ),
      asking: yield* Semaphore.make(1),
      isExplained: yield* Ref.make(false)
    }
    return {
      decide: (call, asking) => decide(state, call, asking),
      setMode: (mode) => Ref.update(state.modes, (modes) => withMode(modes, mode)),
      mode: currentMode(state),
      cycle: cycle(state),
      shownMode: Effect.map(rulesOf(state), shownMode),
      grants: Effect.map(Ref.get(state.grants), (held) => [...held.values()]),
      withdraw: (grant) => withdraw(state, grant),
      leavePlan: Effect.andThen(Ref.update(state.modes, withoutPlan), currentMode(state))
    }
  })

  /** `make` as a layer. */
  static readonly layer = (options: ApprovalOptions) => Layer.effect(Approval, Approval.make(options))
}

interface ApprovalState {
  readonly options: ApprovalOptions
  readonly modes: Ref.Ref<ApprovalModes>
  /** What is allowed by now: the grants of the settings and of earlier answers. */
  readonly grants: Ref.Ref<ReadonlyMap<string, HeldGrant>>
  /** Held while the user is asked about a call. */
  readonly asking: Semaphore.Semaphore
  /** Whether a question has explained already why some files ask each time. */
  readonly isExplained: Ref.Ref<boolean>
}

const currentMode = ({ modes, options: { widest = "all" } }: ApprovalState): Effect.Effect<ApprovalMode> =>
  Effect.map(Ref.get(modes), ({ now }) => narrowerMode(now, widest))

const rulesOf = Effect.fnUntraced(function* (state: ApprovalState) {
  const { folder, planFile } = state.options
  const granted = new Set((yield* Ref.get(state.grants)).keys())
  return { mode: yield* currentMode(state), granted, folder, planFile }
})

const cycle = Effect.fnUntraced(function* (state: ApprovalState) {
  const { mode: first, widest = "all" } = state.options
  const rules = yield* rulesOf(state)
  const shown = shownMode(rules)
  let mode = nextMode(rules.mode, first)
  // A mode that is too wide here, or that a grant makes the same as the present one, would show no change.
  while (mode !== rules.mode && (narrowerMode(mode, widest) !== mode || shownMode({ ...rules, mode }) === shown))
    mode = nextMode(mode, first)
  yield* Ref.update(state.modes, (modes) => withMode(modes, mode))
  return mode
})

const withdraw = Effect.fnUntraced(function* ({ grants, options: { forget } }: ApprovalState, grant: string) {
  const held = (yield* Ref.get(grants)).get(grant)
  yield* Ref.update(grants, (all) => new Map([...all].filter(([each]) => each !== grant)))
  if (held?.isKept === true && forget !== undefined) yield* forget(grant)
})

const decide = Effect.fn("Approval.decide")(function* (
  state: ApprovalState,
  call: ApprovalQuestion,
  asking: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
): Effect.fn.Return<Decision> {
  const { ask } = state.options
  const already = yield* decideUnasked(state, call)
  if (already !== undefined) return already
  if (ask === undefined) return { _tag: "Denied", words: "" }
  return yield* asking(state.asking.withPermit(askUser(state, call, ask)))
})

/** The decision that needs no question. Undefined: the user has to be asked. */
const decideUnasked = Effect.fnUntraced(function* (
  state: ApprovalState,
  call: ApprovalQuestion
): Effect.fn.Return<Decision | undefined> {
  const { planFile } = state.options
  switch (verdict(yield* rulesOf(state), call)) {
    case "allowed":
      return { _tag: "Allowed" }
    case "refused":
      return {
        _tag: "Refused",
        why: planModeRefusal(call.tool, planFile === undefined ? undefined : quotedPath(planFile))
      }
    case "asked":
      return undefined
  }
})

/** Asks the user about one call and keeps what the answer grants. */
const askUser = Effect.fnUntraced(function* (
  state: ApprovalState,
  call: ApprovalQuestion,
  ask: NonNullable<ApprovalOptions["ask"]>
): Effect.fn.Return<Decision> {
  // The answer to the previous call may also cover this one, or may have started a plan.
  const already = yield* decideUnasked(state, call)
  if (already !== undefined) return already
  const { because } = call
  const { folder, keep } = state.options
  const isFirst = because !== undefined && !(yield* Ref.getAndSet(state.isExplained, true))
  const answer = yield* ask(isFirst ? { ...call, because: `${because}. ${steeringNote}` } : call)
  if (answer._tag === "No") return { _tag: "Denied", words: answer.words }
  if (answer._tag === "Edited") return answer
  if (answer._tag === "Once") return { _tag: "Allowed" }
  const lasting = answer._tag === "Always" ? call.grants.filter(canPersist).map((grant) => grantIn(grant, folder)) : []
  const passing = answer._tag === "Always" ? call.grants.filter((grant) => !canPersist(grant)) : call.grants
  yield* Ref.update(
    state.grants,
    (held) =>
      new Map([
        ...held,
        ...passing.map((grant) => [grant, { grant, isKept: false }] as const),
        ...lasting.map((grant) => [grant, { grant, isKept: true }] as const)
      ])
  )
  if (keep !== undefined && lasting.length > 0) yield* keep(lasting)
  return { _tag: "Allowed" }
})
