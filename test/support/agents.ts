import { Effect, Layer, Schema, Stream } from "effect"
import type { ChatEvent } from "../../src/domain/chat/ChatEvent.ts"
import { call, type Content, isCall, isResponse, model, type Part, text } from "../../src/domain/content/Content.ts"
import { view } from "../../src/domain/conversation/Conversation.ts"
import type { ApprovalMode } from "../../src/domain/tools/Approval.ts"
import * as Offline from "../../src/layers/assembly/Offline.ts"
import * as ScriptedModel from "../../src/layers/testing/ScriptedModel.ts"
import * as Agent from "../../src/services/agent/Agent.ts"
import type { Profile, RunOptions } from "../../src/services/agent/AgentRun.ts"
import type { Chat } from "../../src/services/chat/Chat.ts"
import type { ChatSettings } from "../../src/services/chat/ChatSettings.ts"
import type { TurnError } from "../../src/services/chat/Turn.ts"
import type { ModelAnswer } from "../../src/services/model/Model.ts"
import { Approval, type ApprovalOptions } from "../../src/services/tools/Approval.ts"
import * as Tool from "../../src/services/tools/Tool.ts"
import { begin } from "./sending.ts"

/** Agents with a scripted model and small tools. */

/** An answer that calls tools. */
export const calling = (...parts: ReadonlyArray<Part>): ModelAnswer => ({
  content: model(...parts),
  finishReason: "STOP",
  usage: { prompt: 100, answer: 10, thoughts: 0, cached: 0 }
})

/** An answer in words, with the same usage. */
export const saying = (words: string): ModelAnswer => calling(text(words))

/** A tool that takes a word and returns the result of `run` for it. */
export const tool = (
  name: string,
  kind: Tool.ToolKind,
  run: (word: string, context: Tool.CallContext) => Effect.Effect<string, Tool.ToolFailure>,
  more: { readonly timeout?: "1 minute" | "Infinity"; readonly ends?: boolean } = {}
): Tool.Tool =>
  Tool.make({
    name,
    description: `${name}.`,
    parameters: Schema.Struct({ word: Schema.String, to: Schema.optionalKey(Schema.String) }),
    result: Schema.String,
    kind,
    ...(more.timeout === undefined ? {} : { timeout: more.timeout }),
    title: ({ word }) => word,
    question: ({ word }) =>
      kind === "read"
        ? Effect.undefined
        : Effect.succeed({
            detail: word,
            grants: [`${kind}:${name}`],
            covers: name,
            edits: { argument: "word", text: word }
          }),
    run: ({ to, word }, context) =>
      Effect.map(run(to === undefined ? word : `${word} to ${to}`, context), (value) => ({
        value,
        ...(more.ends === true ? { ends: true } : {})
      }))
  })

/** A call with a word. */
export const asking = (name: string, word: string, id?: string): Part => call(name, { word }, id)

/** The input of `work`. */
export interface Work extends Partial<Omit<Profile, "chat">> {
  readonly mode?: ApprovalMode
  readonly ask?: ApprovalOptions["ask"]
  readonly settings?: Partial<ChatSettings>
  readonly answers: ScriptedModel.Answers
}

/** An agent in memory, with what a test needs to observe it. */
export const agent = Effect.fnUntraced(function* ({ answers, ask, mode = "all", settings, ...profile }: Work) {
  const services = yield* Layer.build(
    Layer.merge(
      Offline.layerWithModel(ScriptedModel.layer(answers)),
      Approval.layer({ mode, granted: [], ...(ask === undefined ? {} : { ask }) })
    )
  )
  const { chat, events: log } = yield* Effect.provide(begin(settings), services)
  const whole: Profile = { name: "main", tools: [], ...profile, chat }
  return {
    chat,
    log,
    services,
    profile: whole,
    calls: Effect.provide(
      ScriptedModel.Script.use((script) => script.calls),
      services
    ),
    run: (input: string | ReadonlyArray<Part>, options?: RunOptions): Stream.Stream<ChatEvent, TurnError> =>
      Agent.run(whole, input, options).pipe(Stream.provideContext(services))
  }
})

/** All messages that the model sees, in short form: `user hi`, `model read(a)`, `user read → ok`. */
export const transcript = (chat: Chat["Service"]): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(chat.conversation, (conversation) =>
    view(conversation).map(({ entry }) => `${entry.author ?? entry.content.role} ${brief(entry.content)}`)
  )

const brief = (content: Content): string =>
  content.parts
    .map((part) => {
      if (isCall(part)) return `${part.functionCall.name}(${JSON.stringify(part.functionCall.args)})`
      if (isResponse(part)) {
        return `${part.functionResponse.name ?? ""} → ${JSON.stringify(part.functionResponse.response)}`
      }
      return part.text ?? Object.keys(part).join()
    })
    .join(" | ")
