import { Context, Effect, FileSystem, Path, Result } from "effect"
import { HttpClient } from "effect/http"
import { Dns } from "effect/net"
import { ChildProcessSpawner } from "effect/process"
import type { ToolResult } from "../../src/domain/tools/ToolResult.ts"
import { Environment } from "../../src/services/platform/Environment.ts"
import type { CallContext, Question, Tool, ToolFailure } from "../../src/services/tools/Tool.ts"
import { Workspace } from "../../src/services/workspace/Workspace.ts"

/** A call without an observer. */
export const context: CallContext = {
  id: "c1",
  agent: "main",
  progress: () => Effect.void,
  activity: () => Effect.void,
  waiting: (work) => work
}

type Services =
  | ChildProcessSpawner.ChildProcessSpawner
  | Dns.Dns
  | Environment
  | FileSystem.FileSystem
  | HttpClient.HttpClient
  | Path.Path
  | Workspace

/** Runs work without the services of its caller: a call has those with which its tool was made. */
const alone = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.updateContext(work, (around: Context.Context<Services>) =>
    Context.omit(
      ChildProcessSpawner.ChildProcessSpawner,
      Dns.Dns,
      Environment,
      FileSystem.FileSystem,
      HttpClient.HttpClient,
      Path.Path,
      Workspace
    )(around)
  ) as Effect.Effect<A, E>

/** Calls a tool as an agent does: first its question, then its result. */
export const callTool = Effect.fnUntraced(function* (
  tool: Tool,
  args: unknown,
  /** Runs between the question and its answer. */
  meanwhile: (question: Question | undefined) => Effect.Effect<void> = () => Effect.void
): Effect.fn.Return<
  { readonly title: string; readonly question: Question | undefined; readonly result: ToolResult },
  ToolFailure
> {
  const call = yield* alone(tool.call(args, context))
  const question = yield* alone(call.question)
  yield* meanwhile(question)
  return { title: call.title, question, result: yield* alone(call.run) }
})

/** Why a tool call failed, as `type: message`; undefined where it did not. */
export const failureOf = Effect.fnUntraced(function* (
  tool: Tool,
  args: unknown,
  meanwhile?: (question: Question | undefined) => Effect.Effect<void>
) {
  const ended = yield* Effect.result(callTool(tool, args, meanwhile))
  return Result.isFailure(ended) ? `${ended.failure.type}: ${ended.failure.message}` : undefined
})

/** The result of one call. */
export const resultOf = (tool: Tool, args: unknown): Effect.Effect<ToolResult, ToolFailure> =>
  Effect.map(callTool(tool, args), ({ result }) => result)

/** The text of one call for the model. */
export const answerOf = (tool: Tool, args: unknown): Effect.Effect<string, ToolFailure> =>
  Effect.map(resultOf(tool, args), ({ value }) => String(value))

/** Why a call is not carried out. */
export const refusalOf = (tool: Tool, args: unknown): Effect.Effect<string, unknown> =>
  Effect.map(Effect.flip(resultOf(tool, args)), ({ message }) => message)
