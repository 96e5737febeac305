import { Effect } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import { type HookEvent, type HookEventName, type HookOutcome, unsaid } from "../domain/Hook.ts"
import { shortLine } from "../domain/OneLine.ts"
import type { HookPlace, HookSystem } from "./HookSystem.ts"

/** Hooks as one run sees them: where it takes place is known, and what they have to say to the person is told. */
export interface Hooked {
  /** Whether anybody would be told of such an event; costs nothing. */
  readonly has: (event: HookEventName) => boolean
  /** Tells the hooks, and the person what they say to them; costs nothing where there are none. */
  readonly fire: (event: HookEvent) => Effect.Effect<HookOutcome>
  /** A line for the person, in the name of the hooks. */
  readonly say: (message: string) => Effect.Effect<void>
}

/** Where there are no hooks. */
export const unheard: Hooked = {
  has: () => false,
  fire: () => Effect.succeed(unsaid),
  say: () => Effect.void
}

/** Characters of a failure that a person is shown. */
const mostTold = 300

/** Hooks for one run at one place. Each failure is told once a run, in one line; `emit` may make the run wait. */
export const make = (
  hooks: HookSystem["Service"] | undefined,
  place: HookPlace,
  emit: (event: ChatEvent) => Effect.Effect<unknown>
): Hooked => {
  if (hooks === undefined) return unheard
  const told = new Set<string>()
  const say = (message: string) => Effect.asVoid(emit({ _tag: "Notice", source: "hook", message }))
  const fire = Effect.fnUntraced(function* (event: HookEvent) {
    const outcome = yield* hooks.fire(event, { ...place, isTold: true })
    for (const message of outcome.messages) yield* say(message)
    for (const { hook, message } of outcome.failures) {
      const line = shortLine(`the hook ${hook} failed on ${event._tag}: ${message}`, mostTold)
      if (told.has(line)) continue
      told.add(line)
      yield* say(line)
    }
    return outcome
  })
  return {
    has: hooks.has,
    fire: (event) => (hooks.has(event._tag) ? fire(event) : Effect.succeed(unsaid)),
    say
  }
}
