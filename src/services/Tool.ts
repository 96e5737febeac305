import { Cause, Context, Duration, Effect, Predicate, Schema, SchemaIssue, Stream } from "effect"
import * as AiTool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import { parsedOrUndefined } from "../domain/JsonText.ts"
import type * as Approval from "../domain/Approval.ts"
import type { Activity } from "../domain/ChatEvent.ts"
import type { ToolResult } from "../domain/ToolResult.ts"

/** What a tool does to the world (domain/Approval.ts). */
export type ToolKind = Approval.ToolKind

/** A call that cannot be carried out. The message goes to the model: what was wrong, in one sentence it can act on. */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  message: Schema.String,
  /** What kind of failure, as the seeds name it (spec 14): `edit_no_change`, `file_not_found`, … */
  type: Schema.optionalKey(Schema.String)
}) {}

/** What a person is asked before a call runs. */
export interface Question {
  /** The diff or command, as it will be carried out. */
  readonly detail: string
  /**
   * What "this session" and "always" would allow from then on, one key each: `edit`, `shell:git status`, `fetch:example.com`,
   * `mcp:server`. All of them have to be allowed for the call not to be asked for. None: it is asked for every time.
   */
  readonly grants: ReadonlyArray<string>
  /** What those are in words: `edits of files`, `git status with options that only read`. */
  readonly covers: string
  /** The only places the call changes, absolute with links followed; absent: nobody knows. */
  readonly touches?: ReadonlyArray<string> | undefined
  /** Asked whatever was granted before: a person has to have seen it. */
  readonly mustBeSeen?: boolean | undefined
  /** Why it is asked although such calls may run unasked, in half a sentence. */
  readonly because?: string | undefined
  /** What the model is to do where the answer is no, in a few words. Absent: do without it, or ask. */
  readonly otherwise?: string | undefined
}

/** Where a call runs, and what it may tell on the way. */
export interface CallContext {
  /** The call's id, unique within its conversation. */
  readonly id: string
  /** The agent whose call it is. */
  readonly agent: string
  /** Shows what there is so far; replaces what was shown before. Never waits for long. */
  readonly progress: (text: string) => Effect.Effect<void>
  /** Tells what an agent does that this call started. */
  readonly activity: (agent: string, activity: Activity) => Effect.Effect<void>
  /** Runs what waits for a person: its time does not count against the agent's limit. */
  readonly waiting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** A call whose arguments were understood. */
export interface Call {
  /** The call in one line, for a person: `read_file src/main.ts`. */
  readonly title: string
  /** What has to be asked first; undefined: nothing. A failure answers the call. */
  readonly question: Effect.Effect<Question | undefined, ToolFailure>
  /** Carries it out. Interruptible; what it started is gone when it ends. */
  readonly run: Effect.Effect<ToolResult, ToolFailure>
}

/** Something a model may call. A value: agents are given those they may use, nothing registers itself anywhere. */
export interface Tool {
  readonly name: string
  /** Other names it answers to, for models and conversations that know it by those. They are not declared. */
  readonly aliases: ReadonlyArray<string>
  readonly description: string
  /** JSON schema of the arguments. */
  readonly parameters: unknown
  readonly kind: ToolKind
  /** Results that are never masked: later turns need them word for word (spec 5.4). */
  readonly keeps: boolean
  /** After so long the call is given up and the model told so, with what there was until then. Infinite: it ends by itself. */
  readonly timeout: Duration.Duration
  /** Understands the arguments; a failure says what was wrong with them. */
  readonly call: (args: unknown, context: CallContext) => Effect.Effect<Call, ToolFailure>
}

/** How a tool is declared. What it needs of the world is taken from where it is made. */
export interface ToolOptions<P extends Schema.Constraint, S extends Schema.Constraint> {
  readonly name: string
  readonly aliases?: ReadonlyArray<string> | undefined
  readonly description: string
  readonly parameters: P
  /** What it gives back: a text, or an object that is sent as it is. */
  readonly result: S
  readonly kind: ToolKind
  readonly keeps?: boolean | undefined
  /** Absent: 10 minutes. "Infinity": it sees to its end itself, or waits for a person. */
  readonly timeout?: Duration.Input | undefined
  /** Arguments as older conversations and other models write them, in the words of `parameters`. */
  readonly older?: ((args: Readonly<Record<string, unknown>>) => unknown) | undefined
  /** What stands behind the name in its one line. */
  readonly title?: ((args: P["Type"]) => string) | undefined
  /** What is asked first, with the diff or command. Absent: nothing, for a tool that only reads. */
  readonly question?:
    | ((args: P["Type"], context: CallContext) => Effect.Effect<Question | undefined, ToolFailure>)
    | undefined
  /** Carries a call out. A failure is answered to the model. */
  readonly run: (args: P["Type"], context: CallContext) => Effect.Effect<ToolResult<S["Type"]>, ToolFailure>
}

const usualTimeout = Duration.minutes(10)

const titleWidth = 160

/** One line of a title, clipped. */
const oneLine = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > titleWidth ? `${line.slice(0, titleWidth - 1)}…` : line
}

const named = (name: string, rest: string): string => oneLine(`${name} ${rest}`)

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** What was wrong with the arguments, in one sentence that names the places. */
const wrongArguments = (name: string, error: Schema.SchemaError): ToolFailure => {
  const { issues } = formatIssue(error.issue)
  const places = issues.slice(0, 3).map(({ message, path }) => {
    const where = (path ?? []).map((key) => String(typeof key === "object" ? key.key : key)).join(".")
    return where === "" ? message : `${where}: ${message}`
  })
  return new ToolFailure({ message: `${name} was called wrongly: ${places.join("; ")}`, type: "invalid_tool_params" })
}

/** Models now and then send their arguments as the text of a JSON object. */
const objectOf = (args: unknown): unknown => {
  if (args === undefined || args === null) return {}
  if (typeof args !== "string") return args
  return parsedOrUndefined(args) ?? args
}

const adapted = (args: unknown, older: ((args: Readonly<Record<string, unknown>>) => unknown) | undefined): unknown =>
  older !== undefined && Predicate.isObject(args) ? older({ ...args }) : args

/** What is asked and done for one call, where both come from the same preparation. */
export interface Prepared<A> {
  /** What has to be asked first; undefined: nothing. */
  readonly question: Effect.Effect<Question | undefined, ToolFailure>
  /** Carries out what was asked about. */
  readonly run: Effect.Effect<ToolResult<A>, ToolFailure>
}

/**
 * How a tool is declared whose question and run share what was found out for the call: what a person saw is then what is
 * done.
 */
export interface PreparedOptions<P extends Schema.Constraint, S extends Schema.Constraint> extends Omit<
  ToolOptions<P, S>,
  "question" | "run"
> {
  /** Looks at what a call is about, once, before anybody is asked. */
  readonly prepare: (args: P["Type"], context: CallContext) => Effect.Effect<Prepared<S["Type"]>>
}

/** A tool from its declaration: arguments are decoded before anything runs, results encoded before they are sent. */
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

/** `make`, where question and run come from one preparation a call. */
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
    older,
    prepare,
    timeout = usualTimeout,
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
    keeps,
    timeout: Duration.fromInputUnsafe(timeout),
    call: (given, context) =>
      decode(adapted(objectOf(given), older)).pipe(
        Effect.mapError((error) => wrongArguments(name, error)),
        Effect.flatMap((args) =>
          Effect.map(prepare(args, context), ({ question, run }) => ({
            title: named(name, title?.(args) ?? ""),
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

/** How the tools of a toolkit are taken over. */
export interface FromToolkit {
  /** What each does; absent: what its annotations say (`Readonly` reads, all else may do anything). */
  readonly kind?: ((tool: AiTool.Any) => ToolKind) | undefined
  /** What one of them asks first; absent: one that needs approval or does not only read shows its arguments. */
  readonly grant?: ((tool: AiTool.Any) => string) | undefined
  readonly covers?: string | undefined
}

/**
 * The tools of an `effect/ai` toolkit, as they are: their handlers run with the services of the caller. Preliminary results
 * are progress; a failure of a handler is told to the model.
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
      keeps: false,
      timeout: usualTimeout,
      call: (given, context) => {
        const args = objectOf(given)
        const detail = JSON.stringify(args, null, 2)
        return Effect.succeed({
          title: named(tool.name, JSON.stringify(args)),
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

/** A toolkit decodes its arguments itself, whatever they are, and says what is wrong with them. */
const isForToolkit = <Encoded>(_args: unknown): _args is Encoded => true

const handled = <Tools extends Record<string, AiTool.Any>>(
  toolkit: Toolkit.WithHandler<Tools>,
  name: keyof Tools,
  args: unknown,
  { id, progress }: CallContext
): Effect.Effect<ToolResult, ToolFailure, AiTool.HandlerServices<Tools[keyof Tools]>> =>
  Effect.gen(function* () {
    if (!isForToolkit<AiTool.ParametersEncoded<Tools[keyof Tools]>>(args)) return { value: "" }
    const results = yield* toolkit.handle(name, args, id)
    let last: AiTool.HandlerResult<Tools[keyof Tools]> | undefined
    yield* Stream.runForEach(results, (result) => {
      last = result
      return result.preliminary ? progress(sentenceOf(result.encodedResult)) : Effect.void
    })
    if (last?.isFailure === true) return yield* new ToolFailure({ message: sentenceOf(last.result) })
    return { value: last?.encodedResult ?? "" }
  }).pipe(
    // Whatever its handler fails with: the model is told, and goes on.
    Effect.catchCause((cause) => Effect.fail(new ToolFailure({ message: sentenceOf(Cause.squash(cause)) })))
  )
