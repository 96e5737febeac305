import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer, Path, Stream } from "effect"
import { type Content, isCall, isResponse, outputText, type Part, text } from "../../../src/domain/content/Content.ts"
import { entries } from "../../../src/domain/conversation/Conversation.ts"
import { recordedTurns } from "../../../src/domain/evaluation/Replay.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { partTokens } from "../../../src/domain/tokens/Tokens.ts"
import { errorResponse, wireResponse } from "../../../src/domain/tools/ToolResult.ts"
import * as Offline from "../../../src/layers/assembly/Offline.ts"
import * as MemoryFileSystem from "../../../src/layers/testing/MemoryFileSystem.ts"
import * as MemoryTempStore from "../../../src/layers/testing/MemoryTempStore.ts"
import * as FileWorkspace from "../../../src/layers/workspace/FileWorkspace.ts"
import { run } from "../../../src/services/agent/Agent.ts"
import { InvalidRequestError, Model, ModelError, type ModelRequest } from "../../../src/services/model/Model.ts"
import { estimateContents, overheadParts, contentParts } from "../../../src/services/tokens/Calibrations.ts"
import { TokenCounter } from "../../../src/services/tokens/TokenCounter.ts"
import { Approval } from "../../../src/services/tools/Approval.ts"
import { readFile } from "../../../src/services/tools/builtin/ReadFile.ts"
import { replace } from "../../../src/services/tools/builtin/Replace.ts"
import { writeFile } from "../../../src/services/tools/builtin/WriteFile.ts"
import { Transcripts } from "../../../src/services/transcripts/Transcripts.ts"
import { illegal } from "../../support/legal.ts"
import { agrees, callsOf, impliedFiles, type Redone, root, runsOf, toolsOf } from "../../support/recordedAgent.ts"
import { begin, taken } from "../../support/sending.ts"
import { sessionFile, type SessionName, sessionNames } from "../../support/sessions.ts"
import { assert, describe, it } from "../../support/vitest.ts"

/**
 * Recorded conversations drive the real loop: a scripted model makes the calls it made then, tools carry them out on files
 * that begin as the recording implies.
 */

const counted = new WeakMap<Part, number>()
const tokensOf = (part: Part): number => {
  const known = counted.get(part) ?? Work.runSync(partTokens(part, outputText(part)))
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
    return { runs: runsOf(recordedTurns(session.conversation)), calls: callsOf(all) }
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
  const { calls, runs } = yield* loaded(name)
  const script = recordedModel()
  const redone: Array<Redone> = []
  const files = impliedFiles(calls)
  const disk = MemoryFileSystem.layer({ [`${root}/.keep`]: "", ...files })
  const workspace = FileWorkspace.layer({ root, added: ["/"] }).pipe(Layer.provideMerge(Layer.merge(disk, Path.layer)))
  const tools = yield* Effect.gen(function* () {
    const ours = { read: yield* readFile, write: yield* writeFile, edit: yield* replace }
    return toolsOf(calls, ours, (call) => redone.push(call))
  }).pipe(Effect.provide(workspace))
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
    const profile = { name: "main", chat, tools }
    const endings: Record<string, number> = {}
    const ended = (how: string) => (endings[how] = (endings[how] ?? 0) + 1)
    for (const { answers, prompt } of runs) {
      script.answers.push(...answers)
      let message = prompt
      while (script.answers.length > 0) {
        const left = script.answers.length
        const { error, events } = yield* taken(Stream.provideService(run(profile, message), Approval, approval))
        ended(error?._tag ?? events[events.length - 1]?._tag ?? "nothing")
        message = [text("Go on.")]
        // What cannot be sent in such a window cannot be answered either.
        if (script.answers.length === left && events[events.length - 1]?._tag !== "ContextWindowWillOverflow") break
      }
      script.answers.length = 0
    }
    const { conversation } = yield* chat.whole
    return { script, redone, calls, endings, contents: entries(conversation).map(({ content }) => content) }
  }).pipe(Effect.provide(services))
})

/**
 * Calls that files decide, and how many of them came out as they did then. The others are reads of files that a command had
 * changed in between, or of lines behind an edit whose place nobody had seen.
 */
const decided: Readonly<Record<SessionName, readonly [decided: number, agreed: number]>> = {
  "claude-code-1512-lines": [70, 67],
  "claude-code-short": [0, 0],
  "claude-code-subagent": [2, 2],
  "claude-code-tools": [1, 1],
  "pi-1019-lines": [177, 167]
}

const windows: ReadonlyArray<readonly [window: number, threshold?: number]> = [
  [32_000],
  // Compressed only where the window forces it.
  [32_000, 1],
  [1_000_000]
]

describe("a recorded conversation drives the agent", () => {
  for (const name of sessionNames) {
    for (const [window, threshold] of windows) {
      it.effect(`${name} in a window of ${window}${threshold === undefined ? "" : ", full to its end"}`, function* () {
        const { calls, contents, endings, redone, script } = yield* again(name, window, threshold)
        assert.deepStrictEqual(script.problems, [], "no request parts a call from its response")
        assert.isAtMost(script.seen.largest, window)
        assert.deepStrictEqual(Object.keys(endings), ["Finished"])

        assert.isUndefined(illegal(contents))
        const parts = contents.flatMap((content) => content.parts)
        const answers = parts.filter(isResponse)
        assert.strictEqual(answers.length, parts.filter(isCall).length)
        // A few calls of a recording hang on answers that no agent would take; all others were made again.
        assert.isAtLeast(redone.length, calls.length - 4)
        const told = new Map(answers.map(({ functionResponse: { id, response } }) => [id, response]))
        for (const { failed, recorded, value } of redone) {
          const response = failed ? errorResponse(String(value)) : wireResponse(value)
          assert.deepStrictEqual(told.get(recorded.id), response, "what the model is told comes from the tool")
        }

        const verdicts = redone.flatMap((call) => agrees(call) ?? [])
        assert.deepStrictEqual([verdicts.length, verdicts.filter(Boolean).length], decided[name])
      })
    }
  }
})
