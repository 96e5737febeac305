/** What a tool is and how to make one: its declaration, its calls, its questions, its failures. */

import { Context, Duration, Effect, Predicate, Schema, SchemaIssue, Stream } from "effect"
import * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import type { Activity } from "../../domain/chat/ChatEvent.ts"
import { parsedOrUndefined } from "../../domain/text/JsonText.ts"
import { shortLine } from "../../domain/text/OneLine.ts"
import type * as Approval from "../../domain/tools/Approval.ts"
import type { ToolResult } from "../../domain/tools/ToolResult.ts"
import type { FileReadError } from "../platform/RegularFile.ts"
import type { Workspace, WorkspaceError } from "../workspace/Workspace.ts"

/** What a tool does to the world (domain/tools/Approval.ts). */
export type ToolKind = Approval.ToolKind

/** A failed call. The message is the answer to the model: the reason, in one sentence that it can act on. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  message: Schema.String,
  /** The kind of failure, in the words of Gemini CLI: `edit_no_change`, `file_not_found`, … */
  type: Schema.optionalKey(Schema.String)
}) {}

/** The failure of a tool that cannot read its file. */
export const fileReadFailure = ({ message, type }: FileReadError): ToolFailure => new ToolFailure({ message, type })

const workspaceFailure = ({ message, reason }: WorkspaceError): ToolFailure =>
  new ToolFailure({ message, type: reason === "InvalidPath" ? "invalid_tool_params" : "path_not_in_workspace" })

/** The absolute path that a tool may use for what its arguments name (`Workspace.path`). */
export const pathArgument = (workspace: Workspace["Service"], path: string, purpose: "read" | "write") =>
  Effect.mapError(workspace.path(path, purpose), workspaceFailure)

/** What the user is asked before a call runs. */
export interface Question {
  /** The diff or command, exactly as it will be carried out. */
  readonly detail: string
  /**
   * What the answers "this session" and "always" allow from then on, one key each: `edit`, `shell:git status`,
   * `fetch:example.com`, `mcp:server`. A call runs without asking when all of its keys are allowed. Without keys it always asks.
   */
  readonly grants: ReadonlyArray<string>
  /** The grants in words: `edits of files`, `git status with options that only read`. */
  readonly covers: string
  /** The only places the call changes, absolute with links followed. Absent: unknown. */
  readonly touches?: ReadonlyArray<string> | undefined
  /** Asks whatever was granted before: the user has to see it. */
  readonly mustBeSeen?: boolean | undefined
  /** Why the call asks although such calls may run without asking, in half a sentence. */
  readonly because?: string | undefined
  /** A text among the arguments that the user may edit before the call runs. Absent: none. */
  readonly edits?: { readonly argument: string; readonly text: string } | undefined
  /** What the model should do when the answer is no, in a few words. Default: do without it, or ask. */
  readonly otherwise?: string | undefined
}

/** The call that runs, and ways to report while it does. */
export interface CallContext {
  /** The id of the call, unique within its conversation. */
  readonly id: string
  /** The agent that made the call. */
  readonly agent: string
  /** Shows output so far, in place of what was shown before. Returns at once. */
  readonly progress: (text: string) => Effect.Effect<void>
  /** Reports what an agent does that this call started. */
  readonly activity: (agent: string, activity: Activity) => Effect.Effect<void>
  /** Runs something that waits for the user: that time does not count against the agent's limit. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** The context of a call that no user watches. */
export const unwatchedCall = (id: string, agent: string): CallContext => ({
  id,
  agent,
  progress: () => Effect.void,
  activity: () => Effect.void,
  waiting: (work) => work
})

/** A call with valid arguments. */
export interface Call {
  /** The call on one line, for the user: `read_file src/main.ts`. */
  readonly title: string
  /** What to ask first. Undefined: nothing. A failure is the answer to the call. */
  readonly question: Effect.Effect<Question | undefined, ToolFailure>
  /** Carries the call out. Interruptible; everything that it started ends with it. */
  readonly run: Effect.Effect<ToolResult, ToolFailure>
}

/**
 * A tool that a model may call.
 *
 * **Details**
 *
 * A tool is a value. Agents get the tools they may use; nothing registers itself. Make one with `make`, or with `makePrepared`
 * where the question and the run share work.
 */
export interface Tool {
  readonly name: string
  /** Other names that calls may use, for models and conversations that know them. They are not declared to the model. */
  readonly aliases: ReadonlyArray<string>
  readonly description: string
  /** The JSON schema of the arguments. */
  readonly parameters: unknown
  readonly kind: ToolKind
  /** Whether a call starts an agent. Such calls run side by side, whatever the agents do: each asks for itself, and no two write a file at once. */
  readonly isAgent?: true
  /** Whether results are never masked, because later turns need them word for word. */
  readonly isNeverMasked: boolean
  /** Time limit of a call. A stopped call answers with that fact and its output so far. Infinite: the tool ends by itself. */
  readonly timeout: Duration.Duration
  /** Decodes the arguments. A failure says what was wrong with them. */
  readonly call: (args: unknown, context: CallContext) => Effect.Effect<Call, ToolFailure>
}

/** Tools by each name that a call may use. A tool's own name counts before the alias of another. */
export const toolsByName = (tools: ReadonlyArray<Tool>): ReadonlyMap<string, Tool> => {
  const inOrder = tools.toReversed()
  return new Map([
    ...inOrder.flatMap((tool) => tool.aliases.map((alias) => [alias, tool] as const)),
    ...inOrder.map((tool) => [tool.name, tool] as const)
  ])
}

/** The declaration of a tool. */
export interface ToolOptions<P extends Schema.Constraint, S extends Schema.Constraint> {
  readonly name: string
  readonly aliases?: ReadonlyArray<string> | undefined
  readonly description: string
  readonly parameters: P
  /** The result: a text, or an object that is sent to the model as it is. */
  readonly result: S
  readonly kind: ToolKind
  readonly keeps?: boolean | undefined
  /** Default: 10 minutes. "Infinity" for a tool that ends by itself or waits for the user. */
  readonly timeout?: Duration.Input | undefined
  /** Translates arguments as older conversations and other models write them into those of `parameters`. */
  readonly adaptArguments?: ((args: Readonly<Record<string, unknown>>) => unknown) | undefined
  /** What follows the name in the title of a call. */
  readonly title?: ((args: P["Type"]) => string) | undefined
  /** What to ask first. Absent for a tool that only reads. */
  readonly question?:
    | ((args: P["Type"], context: CallContext) => Effect.Effect<Question | undefined, ToolFailure>)
    | undefined
  /** Carries a call out. A failure is the answer to the model. */
  readonly run: (args: P["Type"], context: CallContext) => Effect.Effect<ToolResult<S["Type"]>, ToolFailure>
}

const defaultTimeout = Duration.minutes(10)

const maxTitleChars = 160

/** A title on one line, at most `maxTitleChars` long. */
const callTitle = (name: string, rest: string): string => shortLine(`${name} ${rest}`, maxTitleChars - 1)

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** Returns what was wrong with the arguments, with their names, in one sentence. */
const invalidArguments = (name: string, error: Schema.SchemaError): ToolFailure => {
  const { issues } = formatIssue(error.issue)
  const places = issues.slice(0, 3).map(({ message, path }) => {
    const where = (path ?? []).map((key) => String(typeof key === "object" ? key.key : key)).join(".")
    return where === "" ? message : `${where}: ${message}`
  })
  return new ToolFailure({ message: `${name} was called wrongly: ${places.join("; ")}`, type: "invalid_tool_params" })
}

/** The arguments as an object: models sometimes send the text of one. */
const objectOf = (args: unknown): unknown => {
  if (args === undefined || args === null) return {}
  if (typeof args !== "string") return args
  return parsedOrUndefined(args) ?? args
}

const adapted = (args: unknown, older: ((args: Readonly<Record<string, unknown>>) => unknown) | undefined): unknown =>
  older !== undefined && Predicate.isObject(args) ? older({ ...args }) : args

/** The question and the run of one call, from the same preparation. */
export interface Prepared<A> {
  /** What to ask first. Undefined: nothing. */
  readonly question: Effect.Effect<Question | undefined, ToolFailure>
  /** Carries out what the question showed. */
  readonly run: Effect.Effect<ToolResult<A>, ToolFailure>
}

/** The declaration of a tool whose question and run share a preparation, so that what the user saw is what is done. */
export interface PreparedOptions<P extends Schema.Constraint, S extends Schema.Constraint> extends Omit<
  ToolOptions<P, S>,
  "question" | "run"
> {
  /** Prepares a call, once, before the question. */
  readonly prepare: (args: P["Type"], context: CallContext) => Effect.Effect<Prepared<S["Type"]>>
}

/**
 * Makes a tool from its declaration. Arguments are decoded before anything runs, results encoded before they are sent.
 *
 * **When to use**
 *
 * For most tools. Use `makePrepared` where the question needs work that the run should not repeat, and `fromToolkit` for tools
 * that exist as an `effect/ai` toolkit.
 *
 * **Example** (Making a tool)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tools } from "palimpsest"
 *
 * const lookUp = Tools.make({
 *   name: "look_up",
 *   description: "Looks up the year in which something was built.",
 *   parameters: Schema.Struct({ what: Schema.String }),
 *   result: Schema.Natural,
 *   kind: "read",
 *   run: ({ what }) => Effect.succeed({ value: what === "bridge" ? 1743 : 0 })
 * })
 * console.log(lookUp.name, lookUp.kind) // => look_up read
 * ```
 */
export const make = <
  P extends Schema.ConstraintCodec<unknown, unknown>,
  S extends Schema.ConstraintCodec<unknown, unknown>
>({
  question,
  run,
  ...rest
}: ToolOptions<P, S>): Tool =>
  makePrepared({
    ...rest,
    prepare: (args, context) =>
      Effect.succeed({
        question: question === undefined ? Effect.undefined : question(args, context),
        run: run(args, context)
      })
  })

/** Makes a tool whose question and run come from one preparation. */
export const makePrepared = <
  P extends Schema.ConstraintCodec<unknown, unknown>,
  S extends Schema.ConstraintCodec<unknown, unknown>
>(
  options: PreparedOptions<P, S>
): Tool => {
  const {
    aliases = [],
    description,
    keeps = false,
    kind,
    name,
    adaptArguments: older,
    prepare,
    timeout = defaultTimeout,
    title
  } = options
  const decode = Schema.decodeUnknownEffect(options.parameters)
  const encode = Schema.encodeEffect(options.result)
  return {
    name,
    aliases,
    description,
    parameters: AiTool.getJsonSchemaFromSchema(options.parameters),
    kind,
    isNeverMasked: keeps,
    timeout: Duration.fromInputUnsafe(timeout),
    call: (args, context) =>
      decode(adapted(objectOf(args), older)).pipe(
        Effect.mapError((error) => invalidArguments(name, error)),
        Effect.flatMap((args) =>
          Effect.map(prepare(args, context), ({ question, run }) => ({
            title: callTitle(name, title?.(args) ?? ""),
            question,
            run: run.pipe(
              Effect.flatMap((result) =>
                Effect.map(Effect.orDie(encode(result.value)), (value): ToolResult => ({ ...result, value }))
              )
            )
          }))
        )
      )
  }
}

/** Options of `fromToolkit`. */
export interface FromToolkit {
  /** The kind of each tool. Default: by its annotations (`Readonly` reads, all others may do anything). */
  readonly kind?: ((tool: AiTool.Any) => ToolKind) | undefined
  /** The grant of each tool. Default: one per tool. Tools that need approval, or that do more than read, ask and show their arguments. */
  readonly grant?: ((tool: AiTool.Any) => string) | undefined
  readonly covers?: string | undefined
}

/**
 * The tools of an `effect/ai` toolkit. Their handlers run with the services of the caller; preliminary results are shown as
 * progress, and a failure of a handler is the answer to the model.
 *
 * **Example** (Giving an agent the tools of an effect/ai toolkit)
 *
 * ```ts
 * import { Effect, Schema } from "effect"
 * import { Tool, Toolkit } from "effect/ai"
 * import { Tools } from "palimpsest"
 *
 * const Years = Toolkit.make(
 *   Tool.make("look_up", { parameters: Schema.Struct({ what: Schema.String }), success: Schema.Natural })
 * )
 * const YearsLayer = Years.toLayer({ look_up: () => Effect.succeed(1743) })
 * const tools = Effect.flatMap(Years, (toolkit) => Tools.fromToolkit(toolkit)).pipe(Effect.provide(YearsLayer))
 * console.log((await Effect.runPromise(tools)).map(({ name }) => name)) // => [ 'look_up' ]
 * ```
 */
export const fromToolkit = Effect.fnUntraced(function* <Tools extends Record<string, AiTool.Any>>(
  toolkit: Toolkit.WithHandler<Tools>,
  { covers, grant = ({ name }) => `tool:${name}`, kind = kindOf }: FromToolkit = {}
): Effect.fn.Return<ReadonlyArray<Tool>, never, AiTool.HandlerServices<Tools[keyof Tools]>> {
  const services = yield* Effect.context<AiTool.HandlerServices<Tools[keyof Tools]>>()
  return Object.values<AiTool.Any>(toolkit.tools).map((tool): Tool => {
    const what = kind(tool)
    const asks = what !== "read" || tool.needsApproval === true
    return {
      name: tool.name,
      aliases: [],
      description: AiTool.getDescription(tool) ?? "",
      parameters: AiTool.getJsonSchema(tool),
      kind: what,
      isNeverMasked: false,
      timeout: defaultTimeout,
      call: (input, context) => {
        const args = objectOf(input)
        const detail = JSON.stringify(args, null, 2)
        return Effect.succeed({
          title: callTitle(tool.name, JSON.stringify(args)),
          question: asks
            ? Effect.succeed({ detail, grants: [grant(tool)], covers: covers ?? `calls of ${tool.name}` })
            : Effect.undefined,
          run: Effect.provideContext(handled(toolkit, tool.name, args, context), services)
        })
      }
    }
  })
})

const kindOf = (tool: AiTool.Any): ToolKind => (Context.get(tool.annotations, AiTool.Readonly) ? "read" : "execute")

const sentenceOf = (error: unknown): string =>
  error instanceof Error ? error.message : typeof error === "string" ? error : JSON.stringify(error)

const handled = <Tools extends Record<string, AiTool.Any>>(
  toolkit: Toolkit.WithHandler<Tools>,
  name: keyof Tools,
  args: unknown,
  { id, progress }: CallContext
) =>
  Effect.gen(function* () {
    // A toolkit decodes its arguments itself, and reports what is wrong with them.
    const results = yield* toolkit.handle(name, args as AiTool.ParametersEncoded<Tools[keyof Tools]>, id)
    let last: AiTool.HandlerResult<Tools[keyof Tools]> | undefined
    yield* Stream.runForEach(results, (result) => {
      last = result
      return result.preliminary ? progress(sentenceOf(result.encodedResult)) : Effect.void
    })
    if (last?.isFailure === true) return yield* new ToolFailure({ message: sentenceOf(last.result) })
    return { value: last?.encodedResult ?? "" }
  }).pipe(
    // A failure of a handler is an answer: the model goes on. A defect is logged by the agent, and answered too.
    Effect.catch((error) =>
      error instanceof ToolFailure ? Effect.fail(error) : Effect.fail(new ToolFailure({ message: sentenceOf(error) }))
    )
  )

/** The tools as they are declared, of which only one runs. `why` is the answer of another, by its name. */
export const onlyTool = (
  tools: ReadonlyArray<Tool>,
  only: string,
  why: (name: string) => string
): ReadonlyArray<Tool> =>
  tools.map((tool) =>
    tool.name === only ? tool : { ...tool, call: () => Effect.fail(new ToolFailure({ message: why(tool.name) })) }
  )
