import { Context, Effect, type Scope, Stream } from "effect"
import type { ChatEvent } from "../../src/domain/chat/ChatEvent.ts"
import type { Part } from "../../src/domain/content/Content.ts"
import type { HookEvent, HookEventName, HookOutput } from "../../src/domain/hooks/Hook.ts"
import * as Agent from "../../src/services/agent/Agent.ts"
import type { RunOptions } from "../../src/services/agent/AgentRun.ts"
import type { TurnError } from "../../src/services/chat/Turn.ts"
import { HookSystem } from "../../src/services/hooks/HookSystem.ts"
import { agent, type Work } from "./agents.ts"

/** Hooks for tests: which answer they give to which event. */
export type Answers = {
  readonly [Name in HookEventName]?:
    | HookOutput
    | ((event: Extract<HookEvent, { readonly _tag: Name }>, count: number) => HookOutput | undefined)
}

const answerTo = (answers: Answers, event: HookEvent, count: number): HookOutput | undefined => {
  const answer = answers[event._tag]
  if (typeof answer !== "function") return answer
  // The function under the name of an event handles that event.
  const call: (event: never, count: number) => HookOutput | undefined = answer
  return Reflect.apply(call, undefined, [event, count])
}

/** Subscribes these answers; returns the received events, as they arrive. */
export const subscribed = Effect.fnUntraced(function* (
  hooks: HookSystem["Service"],
  answers: Answers
): Effect.fn.Return<ReadonlyArray<HookEvent>, never, Scope.Scope> {
  const told: Array<HookEvent> = []
  yield* hooks.subscribe("test", (event) =>
    Effect.sync(() => {
      told.push(event)
      return answerTo(answers, event, told.filter(({ _tag }) => _tag === event._tag).length)
    })
  )
  return told
})

/** An agent whose hooks give these answers. */
export const hookedAgent = Effect.fnUntraced(function* (work: Work, answers: Answers) {
  const made = yield* agent(work)
  const hooks = Context.get(made.services, HookSystem)
  const told = yield* subscribed(hooks, answers)
  return {
    ...made,
    hooks,
    told,
    run: (input: string | ReadonlyArray<Part>, options?: RunOptions): Stream.Stream<ChatEvent, TurnError> =>
      Agent.run({ ...made.profile, hooks }, input, options).pipe(Stream.provideContext(made.services))
  }
})

/** The events of one kind that hooks received. */
export const of = <Name extends HookEventName>(
  told: ReadonlyArray<HookEvent>,
  name: Name
): ReadonlyArray<Extract<HookEvent, { readonly _tag: Name }>> =>
  told.filter((event): event is Extract<HookEvent, { readonly _tag: Name }> => event._tag === name)
