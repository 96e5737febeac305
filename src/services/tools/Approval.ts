import { Context, Effect, Layer, Ref, Semaphore } from "effect"
import { quotedPath } from "../../domain/text/WorkspacePath.ts"
import {
  type Answer,
  type ApprovalMode,
  canPersist,
  type Decision,
  planModeRefusal,
  type ToolKind,
  verdict
} from "../../domain/tools/Approval.ts"
import { steeringNote } from "../../domain/tools/SteeringFiles.ts"
import type { Question } from "./Tool.ts"

/** A call that waits for the user's answer. */
export interface ApprovalQuestion extends Question {
  /** The agent that makes the call. */
  readonly agent: string
  readonly tool: string
  readonly kind: ToolKind
  /** The call on one line. */
  readonly title: string
  /** Whether a hook demands the user's review, whatever runs without asking. */
  readonly needsReview?: boolean | undefined
}

/** Options that decide which calls may run. */
export interface ApprovalOptions {
  readonly mode: ApprovalMode
  /** Grants that the settings keep. */
  readonly granted: ReadonlyArray<string>
  /** The one file that may be written in plan mode, absolute with links followed (`Plans.file`). Absent: none. */
  readonly planFile?: string | undefined
  /** Asks the user. Absent: no user is available, and everything that is not granted is denied. */
  readonly ask?: ((asked: ApprovalQuestion) => Effect.Effect<Answer>) | undefined
  /** Stores the grants of an "always" answer. */
  readonly keep?: ((grants: ReadonlyArray<string>) => Effect.Effect<void>) | undefined
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
      asked: ApprovalQuestion,
      asking: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    ) => Effect.Effect<Decision>
    /** Changes the approval mode, from the next call on. */
    readonly setMode: (mode: ApprovalMode) => Effect.Effect<void>
    /** The current approval mode. */
    readonly mode: Effect.Effect<ApprovalMode>
    /** Ends the mode `plan`, restores the mode before it, and returns that mode. In another mode nothing changes. */
    readonly leavePlan: Effect.Effect<ApprovalMode>
  }
>()("palimpsest/services/tools/Approval") {
  /** Makes the service. Grants for this session last as long as the service. */
  static readonly make = Effect.fnUntraced(function* ({
    ask,
    granted,
    keep,
    mode,
    planFile
  }: ApprovalOptions): Effect.fn.Return<Approval["Service"]> {
    /** `before` is the mode that follows a plan. A session that starts in plan mode asks after it. */
    const modes = yield* Ref.make({ now: mode, before: mode === "plan" ? "none" : mode })
    const grants = yield* Ref.make<ReadonlySet<string>>(new Set(granted))
    const one = yield* Semaphore.make(1)
    const isExplained = yield* Ref.make(false)
    const judged = (call: ApprovalQuestion) =>
      Effect.map(Effect.all([Ref.get(modes), Ref.get(grants)]), ([{ now }, held]) =>
        verdict({ mode: now, granted: held, planFile }, call)
      )
    const decisionWithoutAsking = Effect.fnUntraced(function* (
      call: ApprovalQuestion
    ): Effect.fn.Return<Decision | undefined> {
      switch (yield* judged(call)) {
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
    const asked = Effect.fnUntraced(function* (
      asked: ApprovalQuestion,
      question: (asked: ApprovalQuestion) => Effect.Effect<Answer>
    ): Effect.fn.Return<Decision> {
      // The answer to the previous call may also cover this one, or may have started a plan.
      const already = yield* decisionWithoutAsking(asked)
      if (already !== undefined) return already
      const { because } = asked
      const isFirst = because !== undefined && !(yield* Ref.getAndSet(isExplained, true))
      const answer = yield* question(isFirst ? { ...asked, because: `${because}. ${steeringNote}` } : asked)
      if (answer._tag === "No") return { _tag: "Denied", words: answer.words }
      if (answer._tag !== "Once") yield* Ref.update(grants, (held) => new Set([...held, ...asked.grants]))
      const lasting = asked.grants.filter(canPersist)
      if (answer._tag === "Always" && keep !== undefined && lasting.length > 0) yield* keep(lasting)
      return { _tag: "Allowed" }
    })
    return {
      decide: Effect.fn("Approval.decide")(function* (call, asking) {
        const already = yield* decisionWithoutAsking(call)
        if (already !== undefined) return already
        if (ask === undefined) return { _tag: "Denied", words: "" }
        return yield* asking(one.withPermit(asked(call, ask)))
      }),
      setMode: (now) => Ref.update(modes, ({ before }) => ({ now, before: now === "plan" ? before : now })),
      mode: Effect.map(Ref.get(modes), ({ now }) => now),
      leavePlan: Ref.modify(modes, (held) => {
        const now = held.now === "plan" ? held.before : held.now
        return [now, { now, before: now }]
      })
    }
  })

  /** `make` as a layer. */
  static readonly layer = (options: ApprovalOptions) => Layer.effect(Approval, Approval.make(options))
}
