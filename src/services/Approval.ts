import { Context, Effect, Layer, Ref, Semaphore } from "effect"
import {
  type Answer,
  type ApprovalMode,
  canLast,
  type Decision,
  planFirst,
  type ToolKind,
  verdict
} from "../domain/Approval.ts"
import { steeringNote } from "../domain/SteeringFiles.ts"
import { quoted } from "../domain/WorkspacePath.ts"
import type { Question } from "./Tool.ts"

/** A call that waits for an answer. */
export interface Asked extends Question {
  /** The agent that wants it. */
  readonly agent: string
  readonly tool: string
  readonly kind: ToolKind
  /** The call in one line. */
  readonly title: string
  /** A hook wants a person to look, whatever may run unasked. */
  readonly isDoubted?: boolean | undefined
}

/** How it is decided what may run. */
export interface ApprovalOptions {
  readonly mode: ApprovalMode
  /** What was allowed for always. */
  readonly granted: ReadonlyArray<string>
  /** The one file that may be written while a plan is made, absolute with links followed (`Plans.file`). Absent: none. */
  readonly planFile?: string | undefined
  /** Asks a person; absent: there is none, and what is not allowed is denied. */
  readonly ask?: ((asked: Asked) => Effect.Effect<Answer>) | undefined
  /** Keeps what a person allowed for always. */
  readonly keep?: ((grants: ReadonlyArray<string>) => Effect.Effect<void>) | undefined
}

/** Decides which calls run. A person is asked about one call at a time, whoever wants it. */
export class Approval extends Context.Service<
  Approval,
  {
    /**
     * Whether a call may run. `asking` is told before a person is asked and waits with them; it is not told where the answer is
     * known.
     */
    readonly decide: (
      asked: Asked,
      asking: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    ) => Effect.Effect<Decision>
    /** Changes what runs unasked, from the next call on. */
    readonly setMode: (mode: ApprovalMode) => Effect.Effect<void>
    /** What runs unasked now. */
    readonly mode: Effect.Effect<ApprovalMode>
    /** Ends `plan` and goes back to what held before it, which is the answer; in another mode nothing changes. */
    readonly leavePlan: Effect.Effect<ApprovalMode>
  }
>()("palimpsest/services/Approval") {
  /** Decisions by these rules. Grants for this session last as long as the service. */
  static readonly make = Effect.fnUntraced(function* ({
    ask,
    granted,
    keep,
    mode,
    planFile
  }: ApprovalOptions): Effect.fn.Return<Approval["Service"]> {
    /** `before`: where a plan ends. Who began with a plan wants to be asked after it. */
    const modes = yield* Ref.make({ now: mode, before: mode === "plan" ? "none" : mode })
    const grants = yield* Ref.make<ReadonlySet<string>>(new Set(granted))
    const one = yield* Semaphore.make(1)
    const isExplained = yield* Ref.make(false)
    const judged = (call: Asked) =>
      Effect.map(Effect.all([Ref.get(modes), Ref.get(grants)]), ([{ now }, held]) =>
        verdict({ mode: now, granted: held, planFile }, call)
      )
    const known = Effect.fnUntraced(function* (call: Asked): Effect.fn.Return<Decision | undefined> {
      switch (yield* judged(call)) {
        case "allowed":
          return { _tag: "Allowed" }
        case "refused":
          return {
            _tag: "Refused",
            why: planFirst(call.tool, planFile === undefined ? undefined : quoted(planFile))
          }
        case "asked":
          return undefined
      }
    })
    const asked = Effect.fnUntraced(function* (
      asked: Asked,
      question: (asked: Asked) => Effect.Effect<Answer>
    ): Effect.fn.Return<Decision> {
      // The answer to the call before may cover this one too, or have begun a plan.
      const already = yield* known(asked)
      if (already !== undefined) return already
      const { because } = asked
      const isFirst = because !== undefined && !(yield* Ref.getAndSet(isExplained, true))
      const answer = yield* question(isFirst ? { ...asked, because: `${because}. ${steeringNote}` } : asked)
      if (answer._tag === "No") return { _tag: "Denied", words: answer.words }
      if (answer._tag !== "Once") yield* Ref.update(grants, (held) => new Set([...held, ...asked.grants]))
      const lasting = asked.grants.filter(canLast)
      if (answer._tag === "Always" && keep !== undefined && lasting.length > 0) yield* keep(lasting)
      return { _tag: "Allowed" }
    })
    return {
      decide: Effect.fn("Approval.decide")(function* (call, asking) {
        const already = yield* known(call)
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
