import * as NodeServices from "@effect/platform-node/NodeServices"
import { Duration, Effect, Layer, Stream } from "effect"
import {
  type Content,
  isCall,
  isErrorResponse,
  isResponse,
  isText,
  outputText,
  type Part,
  text
} from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { type RecordedTurn, recordedTurns } from "../../../src/domain/evaluation/Replay.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { partTokens } from "../../../src/domain/tokens/Tokens.ts"
import { errorResponse, wireResponse } from "../../../src/domain/tools/ToolResult.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import { run } from "../../../src/services/agent/Agent.ts"
import { InvalidRequestError, Model, ModelError, type ModelRequest } from "../../../src/services/model/Model.ts"
import { estimateContents, overheadParts, contentParts } from "../../../src/services/tokens/Calibrations.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { type Tool, ToolFailure } from "../../../src/services/tools/Tool.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { illegal } from "../../support/legal.ts"
import { begin, taken } from "../../support/sending.ts"
import { sessionFile, type SessionName, sessionNames } from "../../support/sessions.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/** Recorded conversations drive the real loop: a scripted model makes the calls it made then, and tools answer what they answered. */

/** The user messages of a recording with all answers that followed each, without tool results: those come from the tools. */
const runsOf = (turns: ReadonlyArray<RecordedTurn>) => {
  const runs: Array<{ readonly prompt: ReadonlyArray<Part>; readonly answers: Array<Content> }> = []
  for (const { answer, message } of turns) {
    const last = runs.at(-1)
    const goesOn = last?.answers.at(-1)?.parts.some(isCall) === true && message.some(isResponse)
    const prompt = message.filter(isText)
    if (goesOn) last.answers.push(answer)
    else runs.push({ prompt: prompt.length === 0 ? [text("Go on.")] : prompt, answers: [answer] })
  }
  return runs
}

/** The tools of a recording under their names. A call is answered by what stands beside its id, and noted. */
const toolsOf = (parts: ReadonlyArray<Part>, noted: Map<string, object>): ReadonlyArray<Tool> => {
  const answers = new Map(parts.filter(isResponse).map((part) => [part.functionResponse.id ?? "", part]))
  return [...new Set(parts.filter(isCall).map(({ functionCall: { name } }) => name))].map((name) => ({
    name,
    aliases: [],
    description: `The tool ${name} of a recording.`,
    parameters: { type: "object" },
    kind: /^(?:edit|write)$/i.test(name) ? "edit" : /^bash$/i.test(name) ? "execute" : "read",
    isNeverMasked: false,
    timeout: Duration.infinity,
    call: (_, { id }) => {
      const answer = answers.get(id)
      const said = (answer && outputText(answer)) ?? JSON.stringify(answer?.functionResponse.response ?? "")
      const failed = answer !== undefined && isErrorResponse(answer)
      noted.set(id, failed ? errorResponse(said) : wireResponse(said))
      const run = failed ? Effect.fail(new ToolFailure({ message: said })) : Effect.succeed({ value: said })
      return Effect.succeed({ title: name, question: Effect.undefined, run })
    }
  }))
}

const counted = new WeakMap<Part, number>()
const tokensOf = (part: Part): number => {
  const known = counted.get(part) ?? Work.runSync(partTokens(part))
  counted.set(part, known)
  return known
}

/** The estimator's count of a whole request, as the test of the window's bound counts. */
const sizeOf = (request: ModelRequest): number =>
  [...overheadParts(request), ...contentParts(request)].reduce((total, part) => total + tokensOf(part), 0)

const loaded = Effect.fnUntraced(
  function* (name: SessionName) {
    const transcripts = yield* Transcripts
    const { session } = yield* transcripts.load(sessionFile(name))
    const all = entries(session.conversation).map(({ content }) => content)
    return { runs: runsOf(recordedTurns(session.conversation)), parts: all.flatMap(({ parts }) => parts) }
  },
  Effect.provide(
    Transcripts.layer.pipe(
      Layer.provide([TokenCounter.layerEstimate, MemoryTempStore.layer]),
      Layer.provideMerge(NodeServices.layer)
    )
  )
)

/** A model that gives these answers, one a turn, and watches what it is asked. */
const recordedModel = () => {
  const answers: Array<Content> = []
  const problems: Array<string> = []
  const seen = { requests: 0, largest: 0 }
  const model = Model.of({
    generate: () => Effect.fail(new ModelError({ reason: new InvalidRequestError({ detail: "no summaries" }) })),
    stream: (request) =>
      Stream.suspend(() => {
        const size = sizeOf(request)
        seen.requests += 1
        seen.largest = Math.max(seen.largest, size)
        const problem = illegal(request.contents)
        if (problem !== undefined) problems.push(`request ${seen.requests}: ${problem}`)
        const parts = answers.shift()?.parts ?? [text("The recording goes no further here.")]
        const usage = { prompt: size, answer: 1, thoughts: 0, cached: 0 }
        return Stream.fromIterable([
          ...parts.map((part) => ({ parts: [part] })),
          { parts: [], finishReason: "STOP", usage }
        ])
      }),
    countTokens: Effect.fn("Model.countTokens")(estimateContents)
  })
  return { answers, problems, seen, layer: Layer.succeed(Model, model) }
}

/** A recording done again in a window; what came of it. */
const again = Effect.fnUntraced(function* (name: SessionName, window: number, threshold?: number) {
  const { parts, runs } = yield* loaded(name)
  const script = recordedModel()
  const noted = new Map<string, object>()
  const services = yield* Layer.build(
    Layer.merge(Offline.layerWithModel(script.layer), Approval.layer({ mode: "all", granted: [] }))
  )
  return yield* Effect.gen(function* () {
    const approval = yield* Approval
    const { chat } = yield* begin({
      window,
      systemInstruction: "You are an agent that does again what was done.",
      ...(threshold === undefined ? {} : { threshold })
    })
    const profile = { name: "main", chat, tools: toolsOf(parts, noted) }
    const endings = new Set<string>()
    for (const { answers, prompt } of runs) {
      script.answers.push(...answers)
      let message = prompt
      while (script.answers.length > 0) {
        const left = script.answers.length
        const { error, events } = yield* taken(Stream.provideService(run(profile, message), Approval, approval))
        endings.add(error?._tag ?? events.at(-1)?._tag ?? "nothing")
        message = [text("Go on.")]
        if (script.answers.length === left) break
      }
      script.answers.length = 0
    }
    const { conversation } = yield* chat.whole
    const made = parts.filter(isCall).length
    return { script, noted, made, endings, contents: entries(conversation).map(({ content }) => content) }
  }).pipe(Effect.provide(services))
})

describe("a recorded conversation drives the agent", () => {
  for (const name of sessionNames) {
    // The second is compressed only where the window forces it. The two long ones are done again in one way each.
    const ways = name === "pi-1019-lines" ? [undefined] : name === "claude-code-1512-lines" ? [1] : [undefined, 1]
    for (const threshold of ways) {
      it.effect(`${name} in a small window${threshold === undefined ? "" : ", full to its end"}`, function* () {
        const window = 32_000
        const { contents, endings, made, noted, script } = yield* again(name, window, threshold)
        assert.deepStrictEqual(script.problems, [], "no request parts a call from its response")
        assert.isAtMost(script.seen.largest, window)
        assert.deepStrictEqual([...endings], ["Finished"])

        assert.isUndefined(illegal(contents))
        const parts = contents.flatMap((content) => content.parts)
        const answers = parts.filter(isResponse)
        assert.strictEqual(answers.length, parts.filter(isCall).length)
        // A few calls of a recording hang on answers that no agent would take; all others were made again.
        assert.isAtLeast(noted.size, made - 4)
        const told = new Map(answers.map(({ functionResponse: { id = "", response } }) => [id, response]))
        for (const [id, response] of noted) {
          assert.deepStrictEqual(told.get(id), response, "what the model is told comes from the tool")
        }
      })
    }
  }
})
