import { Effect } from "effect"
import type { ChatEvent } from "../domain/ChatEvent.ts"
import { firstUnits } from "../domain/Bytes.ts"
import { type HookEvent, type HookEventName, type HookOutcome, unsaid } from "../domain/Hook.ts"
import { shortLine } from "../domain/OneLine.ts"
import type { HookPlace, HookSystem } from "./HookSystem.ts"

/** Hooks as one run sees them: where it takes place is known, and what they have to say to the person is told. */
export interface Hooked {
  /** Whether anybody would be told of such an event; costs nothing. */
  readonly has: (event: HookEventName) => boolean
  /** Tells the hooks, and the person what each of them says to them, under its name; costs nothing where there are none. */
  readonly fire: (event: HookEvent) => Effect.Effect<HookOutcome>
  /** A line for the person about the hooks, in the name of the program. */
  readonly say: (message: string) => Effect.Effect<void>
}

/** Where there are no hooks. */
export const unheard: Hooked = {
  has: () => false,
  fire: () => Effect.succeed(unsaid),
  say: () => Effect.void
}

/** Characters of a failure that a person is shown, of a hook's name, and of what it says itself. */
const mostTold = 300
const mostName = 80
const mostWords = 2_000

/** Hooks for one run at one place. Each failure is told once a run, in one line; `emit` may make the run wait. */
export const make = (
  hooks: HookSystem["Service"] | undefined,
  place: HookPlace,
  emit: (event: ChatEvent) => Effect.Effect<unknown>,
  /** What was told already. */
  told: Set<string> = new Set()
): Hooked => {
  if (hooks === undefined) return unheard
  const say = (message: string) => Effect.asVoid(emit({ _tag: "Notice", source: "hook", message }))
  const fire = Effect.fnUntraced(function* (event: HookEvent) {
    const outcome = yield* hooks.fire(event, { ...place, isTold: true })
    for (const { hook, message } of outcome.notices) {
      const words = message.length > mostWords ? `${firstUnits(message, mostWords)}…` : message
      yield* say(`hook ${shortLine(hook, mostName)}: ${words}`)
    }
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
