import { Effect } from "effect"
import type { ChatEvent } from "../../domain/chat/ChatEvent.ts"
import { type HookEvent, type HookEventName, type HookOutcome, emptyOutcome } from "../../domain/hooks/Hook.ts"
import { firstUnits } from "../../domain/text/Bytes.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import type { HookPlace, HookSystem } from "./HookSystem.ts"

/** Hooks bound to one run: the place is fixed, and messages go to the user. */
export interface Hooked {
  /** Whether any hook receives this event. Free of cost. */
  readonly has: (event: HookEventName) => boolean
  /** Fires an event and shows each hook's messages to the user under its name. Free of cost when there are none. */
  readonly fire: (event: HookEvent) => Effect.Effect<HookOutcome>
  /** Fires an event whose work was cut off, in the background (`HookSystem.fireAside`). */
  readonly fireAside: (event: HookEvent) => Effect.Effect<void>
  /** Shows the user a line about the hooks, from the program. */
  readonly say: (message: string) => Effect.Effect<void>
}

/** No hooks at all. */
export const noHooks: Hooked = {
  has: () => false,
  fire: () => Effect.succeed(emptyOutcome),
  fireAside: () => Effect.void,
  say: () => Effect.void
}

/** Longest failure, hook name and hook message shown to the user, in characters. */
const maxFailureChars = 300
const maxNameChars = 80
const maxMessageChars = 2_000

/** Binds hooks to one run at one place. Each failure is reported once a run, in one line. `emit` may delay the run. */
export const make = (
  hooks: HookSystem["Service"] | undefined,
  place: HookPlace,
  emit: (event: ChatEvent) => Effect.Effect<unknown>,
  /** Failures already reported. */
  reportedFailures: Set<string> = new Set()
): Hooked => {
  if (hooks === undefined) return noHooks
  const say = (message: string) => Effect.asVoid(emit({ _tag: "Notice", source: "hook", message }))
  const fire = Effect.fnUntraced(function* (event: HookEvent) {
    const outcome = yield* hooks.fire(event, { ...place, isReportedByCaller: true })
    for (const { hook, message } of outcome.notices) {
      const words = message.length > maxMessageChars ? `${firstUnits(message, maxMessageChars)}…` : message
      yield* say(`hook ${shortLine(hook, maxNameChars)}: ${words}`)
    }
    for (const { hook, message } of outcome.failures) {
      const line = shortLine(`the hook ${hook} failed on ${event._tag}: ${message}`, maxFailureChars)
      if (reportedFailures.has(line)) continue
      reportedFailures.add(line)
      yield* say(line)
    }
    return outcome
  })
  return {
    has: hooks.has,
    fire: (event) => (hooks.has(event._tag) ? fire(event) : Effect.succeed(emptyOutcome)),
    fireAside: (event) => hooks.fireAside(event, place),
    say
  }
}
