/** Reduces images to what the model's provider accepts, before they are sent. The whole image stays in the log. */

import { Clock, Effect, Ref } from "effect"
import type { Part } from "../../domain/content/Content.ts"
import { itemParts, view, type ViewItem } from "../../domain/conversation/Conversation.ts"
import { withoutMedia } from "../../domain/conversation/LeftOut.ts"
import { imageLimitsOf, isInlineImage, type OversizedImage, oversized } from "../../domain/model/ImageLimits.ts"
import type { Session } from "../../domain/session/Session.ts"
import { ImageReducer } from "../compression/strategies/ImageReducer.ts"
import type { ShownPart } from "../compression/strategies/StrategyRunner.ts"
import { withTokens } from "../tokens/TokenCounter.ts"
import type { ChatState, Emit, RequestContext } from "./ChatState.ts"
import { commit } from "./Commit.ts"

/** Why an image is left out. */
const tooLarge = "the model's provider does not accept this size, and it cannot be reduced here"

/** Attempts to bring an image below the limit of bytes; each has half the sides of the one before. */
const maxAttempts = 3

const reduced = Effect.fnUntraced(function* ({ data, height, mimeType, width }: OversizedImage, maxChars: number) {
  const { reduce } = yield* ImageReducer
  for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
    const scale = 2 ** attempt
    const made = yield* reduce(
      { mimeType, data },
      Math.max(1, Math.round(width / scale)),
      Math.max(1, Math.round(height / scale))
    )
    if (made === undefined || made.data.length <= maxChars) return made
  }
  return undefined
})

const imagesIn = (items: ReadonlyArray<ViewItem>): number =>
  items.reduce((sum, item) => sum + itemParts(item).filter(isInlineImage).length, 0)

/** Returns what is shown in the place of images that are too large. One that cannot be reduced is left out, if it has a handle. */
const shownFor = Effect.fnUntraced(function* (items: ReadonlyArray<ViewItem>, model: string, images: number) {
  const limits = imageLimitsOf(model)
  const shown: Array<ShownPart> = []
  for (const item of items) {
    for (const [part, each] of itemParts(item).entries()) {
      const large = oversized(each, limits, images)
      if (large === undefined) continue
      const made = yield* reduced(large, limits.maxChars)
      const handle = item.entry.handles[part]
      const place = { entry: item.entry.id, part, handle, shown: each, isNew: true, size: large.data.length }
      const replacement: Part | undefined =
        made !== undefined
          ? { inlineData: { ...made } }
          : handle === undefined
            ? undefined
            : withoutMedia(place, tooLarge)
      if (replacement !== undefined) shown.push({ entry: item.entry.id, part, replacement })
    }
  }
  return shown
})

/** The items of the view that were added since it was looked at for this model, and the number of its images. */
const uncheckedItems = (chat: ChatState, session: Session, model: string) => {
  const { images: before } = chat.requests
  const { view: chain } = session.conversation
  const fresh: Array<ViewItem> = []
  let node = chain
  const checked = before?.model === model ? before.view : undefined
  while (node !== undefined && node !== checked) {
    fresh.push(node.value)
    node = node.before
  }
  const known = node === undefined ? 0 : (before?.count ?? 0)
  const count = known + imagesIn(fresh)
  const { many } = imageLimitsOf(model)
  const isMany = count > many.count && known <= many.count
  return { count, items: isMany ? view(session.conversation) : fresh.toReversed() }
}

/** Reduces the images of the conversation. Says so when one is left out. */
export const fitImages = Effect.fnUntraced(function* (chat: ChatState, { model }: RequestContext, emit: Emit) {
  const { count, items } = uncheckedItems(chat, yield* Ref.get(chat.session), model)
  const shown = yield* shownFor(items, model, count)
  if (shown.length > 0) {
    yield* commit(chat, {
      _tag: "Masked",
      at: yield* Clock.currentTimeMillis,
      shorten: yield* withTokens(shown)
    })
    const out = shown.filter(({ replacement }) => !isInlineImage(replacement)).length
    if (out > 0) {
      const message = `${out === 1 ? "an image was" : `${out} images were`} left out of the request, because ${tooLarge}`
      yield* emit({ _tag: "Notice", source: "model", message })
    }
  }
  chat.requests.images = { view: (yield* Ref.get(chat.session)).conversation.view, model, count }
})

/** Returns what is shown of the images of a message that is not in the conversation yet. */
export const fittedImages = (chat: ChatState, { model }: RequestContext, items: ReadonlyArray<ViewItem>) =>
  shownFor(items, model, (chat.requests.images?.count ?? 0) + imagesIn(items))
