import { Effect, Ref, type Scope } from "effect"
import type { AgentFailure } from "./AgentRunner.ts"

/** Counts the agents that run at once: each holds a slot for as long as it runs. */
export interface AgentSlots {
  /** Takes one of so many slots until the scope closes. Returns false when all are taken. */
  readonly take: (count: number) => Effect.Effect<boolean, AgentFailure, Scope.Scope>
}

/** Slots that several processes share under a name. That of a process that was killed is free again. */
export interface SharedSlots extends AgentSlots {
  readonly name: string
}

/** Slots of this process alone. */
export const inMemory = (): AgentSlots => {
  const taken = Ref.makeUnsafe(0)
  return {
    take: (count) =>
      Effect.acquireRelease(
        Ref.modify(taken, (before) => (before < count ? [true, before + 1] : [false, before])),
        (isTaken) => (isTaken ? Ref.update(taken, (before) => before - 1) : Effect.void)
      )
  }
}
