import { Context, Effect, Layer } from "effect"
import { Environment } from "../../services/platform/Environment.ts"
import { environmentSecrets } from "../../services/transcripts/FindSecrets.ts"
import { makeSessionAnswers, type SessionScope } from "../../services/transcripts/SessionAnswers.ts"
import { sessions } from "./LiveAgentSessions.ts"
import { layer } from "./LiveTranscripts.ts"

/**
 * Answers questions about the sessions of every agent on this machine, until the scope closes. The values of this process's
 * environment variables that are secrets are left out, too.
 */
export const open = Effect.fnUntraced(function* (scope: SessionScope) {
  const context = yield* Layer.build(Layer.fresh(Layer.provideMerge(sessions, layer)))
  const variables = yield* Context.get(context, Environment).variables
  return yield* Effect.provideContext(makeSessionAnswers({ ...scope, known: environmentSecrets(variables) }), context)
})
