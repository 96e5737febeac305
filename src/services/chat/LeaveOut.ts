/** Takes out of a conversation what its provider refuses, so that the next request is accepted. It stays in the log, behind its handle. */

import { Clock, Effect, Ref } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { view } from "../../domain/conversation/Conversation.ts"
import {
  hasMedia,
  leftOut,
  type MediaPlace,
  mediaIn,
  type RefusedMedia,
  withoutMedia
} from "../../domain/conversation/LeftOut.ts"
import { untrustedLine } from "../../domain/text/UntrustedText.ts"
import { mayBeAnyContent, type RefusedContent } from "../../domain/wire/ProviderFault.ts"
import { toolNames } from "../../domain/wire/ToolDeclarations.ts"
import { declaredNames, withoutTools } from "../hooks/ModelHooks.ts"
import type { InvalidRequestError, ModelErrorReason } from "../model/Model.ts"
import { withTokens } from "../tokens/TokenCounter.ts"
import type { ChatState, Emit } from "./ChatState.ts"
import { commit } from "./Commit.ts"

const kindOf = (reason: ModelErrorReason): RefusedMedia | RefusedContent | undefined =>
  reason._tag === "RequestBytesError" ? "bytes" : reason._tag === "InvalidRequestError" ? reason.refused : undefined

const whys: Readonly<Record<RefusedMedia, string>> = {
  image: "the model's provider does not accept it",
  file: "the model's provider does not accept it",
  bytes: "the request had more bytes than the server takes"
}

const counted = (places: ReadonlyArray<MediaPlace>, kind: RefusedMedia): string => {
  const noun = kind === "image" ? "image" : "file"
  return places.length === 1 ? `${kind === "image" ? "an" : "a"} ${noun} was` : `${places.length} ${noun}s were`
}

const noticeOf = (places: ReadonlyArray<MediaPlace>, kind: RefusedMedia, reason: ModelErrorReason): string => {
  const handles = places.flatMap(({ handle }) => (handle === undefined ? [] : [handle]))
  const recall = handles.length === 0 ? "" : `; recall ${handles.slice(0, 3).join(", ")} returns what was left out`
  const detail = reason._tag === "InvalidRequestError" ? ` (${untrustedLine(reason.detail)})` : ""
  return `${counted(places, kind)} left out of the request, because ${whys[kind]}${detail}${recall}`
}

/** How often the same refusal is taken to be of one tool more. A provider that refuses all tools is not asked once for each. */
const maxAlike = 2

/** Leaves out the tool whose declaration was refused: with it, every request is. */
const leaveOutTool = Effect.fnUntraced(function* (
  { requests, settings }: ChatState,
  { detail, tool: named = "" }: InvalidRequestError,
  emit: Emit
) {
  const { refusedTools } = requests
  const { tools = [] } = yield* Ref.get(settings)
  const sent = withoutTools(tools, refusedTools)
  const [list, tool] = typeof named === "object" ? named : ([undefined, named] as const)
  const declared = declaredNames({ tools: list === undefined ? sent : sent.slice(list, list + 1) })
  const ownName = toolNames(declared.map((name) => ({ name, parameters: {} }))).own
  const name = typeof tool === "number" ? declared[tool] : declared.find((each) => each === ownName(tool))
  if (name === undefined) return false
  refusedTools.add(name)
  // The request is smaller without it.
  requests.context = undefined
  yield* emit({
    _tag: "Notice",
    source: "model",
    message: `the model's provider does not accept the tool ${name} (${untrustedLine(detail)}); it is left out of requests from here on`
  })
  return true
})

/**
 * Takes out what was refused, and says so. Returns false when there is nothing to take out: then the failure stands. `message`: the parts of the
 * message that is not part of the conversation yet, which goes back to the user. `earlier`: why the attempts of this request before were refused.
 */
export const leaveOut = Effect.fnUntraced(function* (
  chat: ChatState,
  reason: ModelErrorReason,
  message: ReadonlyArray<Part>,
  earlier: ReadonlyArray<ModelErrorReason>,
  emit: Emit
) {
  const refused = kindOf(reason)
  if (refused === undefined) return false
  if (refused === "signature") {
    if (chat.requests.isUnsigned) return false
    chat.requests.isUnsigned = true
    yield* emit({
      _tag: "Notice",
      source: "model",
      message:
        "the provider does not accept the signed thoughts of an earlier answer; they are left out of requests from here on"
    })
    return true
  }
  if (refused === "tool") {
    const alike = earlier.filter(({ message: text }) => text === reason.message)
    return reason._tag === "InvalidRequestError" && alike.length < maxAlike && (yield* leaveOutTool(chat, reason, emit))
  }
  const items = view((yield* Ref.get(chat.session)).conversation)
  const isThere = refused === "bytes" || hasMedia(message, refused) || mediaIn(items, refused).length > 0
  const isOther = !isThere && reason._tag === "InvalidRequestError" && mayBeAnyContent(reason.detail)
  const kind = !isOther ? refused : refused === "image" ? "file" : "image"
  const places = leftOut(mediaIn(items, kind), kind, message, earlier.length)
  if (places.length === 0) return false
  const shorten = yield* withTokens(
    places.map((place) => ({ entry: place.entry, part: place.part, replacement: withoutMedia(place, whys[kind]) }))
  )
  yield* commit(chat, { _tag: "Masked", at: yield* Clock.currentTimeMillis, shorten })
  yield* emit({ _tag: "Notice", source: "model", message: noticeOf(places, kind, reason) })
  return true
})
