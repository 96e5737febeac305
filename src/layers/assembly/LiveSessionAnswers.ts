import { Effect, type FileSystem, Layer, type Path, type Scope, type Stdio } from "effect"
import {
  makeSessionAnswers,
  type SessionAnswers,
  type SessionScope
} from "../../services/transcripts/SessionAnswers.ts"
import { sessions } from "./LiveAgentSessions.ts"
import { layer } from "./LiveTranscripts.ts"

/** Answers questions about the sessions of every agent on this machine, until the scope closes. */
export const open = (
  scope: SessionScope
): Effect.Effect<SessionAnswers, never, FileSystem.FileSystem | Path.Path | Scope.Scope | Stdio.Stdio> =>
  Effect.flatMap(Layer.build(Layer.provideMerge(sessions, layer)), (context) =>
    Effect.provideContext(makeSessionAnswers(scope), context)
  )
