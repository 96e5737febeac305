import { Context, Effect, Layer, Ref, Semaphore } from "effect"
import { type Answer, type ApprovalMode, type Decision, isAllowed } from "../domain/Approval.ts"
import type { Question } from "./Tool.ts"

/** A call that waits for an answer. */
export interface Asked extends Question {
  /** The agent that wants it. */
  readonly agent: string
  readonly tool: string
  /** The call in one line. */
  readonly title: string
}

/** How it is decided what may run. */
export interface ApprovalOptions {
  readonly mode: ApprovalMode
  /** What was allowed for always. */
  readonly granted: ReadonlyArray<string>
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
  }
>()("palimpsest/services/Approval") {
  /** Decisions by these rules. Grants for this session last as long as the service. */
  static readonly make = Effect.fnUntraced(function* ({
    ask,
    granted,
    keep,
    mode
  }: ApprovalOptions): Effect.fn.Return<Approval["Service"]> {
    const current = yield* Ref.make(mode)
    const grants = yield* Ref.make<ReadonlySet<string>>(new Set(granted))
    const one = yield* Semaphore.make(1)
    const isKnown = ({ grants: needed }: Asked) =>
      Effect.map(Effect.all([Ref.get(current), Ref.get(grants)]), ([how, held]) => isAllowed(how, held, needed))
    const asked = Effect.fnUntraced(function* (
      asked: Asked,
      question: (asked: Asked) => Effect.Effect<Answer>
    ): Effect.fn.Return<Decision> {
      // The answer to the call before may cover this one too.
      if (yield* isKnown(asked)) return { _tag: "Allowed" }
      const answer = yield* question(asked)
      if (answer._tag === "No") return { _tag: "Denied", words: answer.words }
      if (answer._tag !== "Once") yield* Ref.update(grants, (held) => new Set([...held, ...asked.grants]))
      if (answer._tag === "Always" && keep !== undefined) yield* keep(asked.grants)
      return { _tag: "Allowed" }
    })
    return {
      decide: Effect.fn("Approval.decide")(function* (call, asking) {
        if (yield* isKnown(call)) return { _tag: "Allowed" }
        if (ask === undefined) return { _tag: "Denied", words: "" }
        return yield* asking(one.withPermit(asked(call, ask)))
      }),
      setMode: (how) => Ref.set(current, how),
      mode: Ref.get(current)
    }
  })

  /** `make` as a layer. */
  static readonly layer = (options: ApprovalOptions) => Layer.effect(Approval, Approval.make(options))
}
