import { Effect } from "effect"
import { plan } from "../../../src/domain/compression/strategies/palimpsest/Plan.ts"
import { rungCount } from "../../../src/domain/compression/strategies/palimpsest/Shortening.ts"
import { isResponse } from "../../../src/domain/content/Content.ts"
import { cleanCuts } from "../../../src/domain/conversation/CleanCuts.ts"
import {
  type Conversation,
  itemTokens,
  shown,
  sum,
  view,
  type ViewItem
} from "../../../src/domain/conversation/Conversation.ts"
import { freshMemory } from "../../../src/domain/conversation/FailureMemory.ts"
import { type IndexedView, indexedView, shortenedTokens } from "../../../src/domain/conversation/IndexedView.ts"
import { projectItems, requestTokens } from "../../../src/domain/conversation/Projection.ts"
import { applyEvent, emptySession, type Session } from "../../../src/domain/session/Session.ts"
import { runSync } from "../../../src/domain/text/SlicedWork.ts"
import { play, policyOf, type Script, scripts, thousand, worldOf } from "../../support/generate.ts"
import { assert, it } from "../../support/vitest.ts"

/** The index of a view that grew says what one says that is made anew, whatever happened in between. */

/** The sessions after each line of a script's log. */
const versions = Effect.fnUntraced(function* (script: Script) {
  const { events } = yield* play(worldOf(), script)
  let session: Session = emptySession
  return events.map((event) => {
    session = applyEvent(session, event)
    return session.conversation
  })
})

/** The same view in another list, which shares nothing with the first. */
const again = (conversation: Conversation): Conversation => ({
  ...conversation,
  view: shown(view(conversation), () => false, conversation).view
})

const saved = (item: ViewItem): number =>
  item.entry.content.role === "model"
    ? 0
    : sum(
        item.entry.content.parts.map((part, at) =>
          isResponse(part)
            ? Math.max(0, (item.shortened.get(at)?.tokens ?? item.entry.tokens[at] ?? 0) - shortenedTokens)
            : 0
        )
      )

/** What an index has to say, found without one. */
const expected = (items: ReadonlyArray<ViewItem>) => {
  const sent = projectItems(items)
  const sentIds = new Set(sent.map(({ entry }) => entry))
  return {
    requestTokens: requestTokens(sent),
    clean: cleanCuts(items),
    tokens: items.map(itemTokens),
    saved: items.map(saved),
    sent: items.map(({ entry }) => Number(sentIds.has(entry.id))),
    summaries: items.map(({ entry }) => Number(entry.author === "summary")),
    environment: items.filter(({ entry }) => entry.author === "environment").length,
    ids: items.map(({ entry }) => entry.id)
  }
}

const said = (index: IndexedView): ReturnType<typeof expected> => {
  const each = <A>(value: (at: number) => A) => Array.from({ length: index.length }, (_, at) => value(at))
  return {
    requestTokens: index.requestTokens,
    // From the end, as a plan asks.
    clean: [...each((at) => index.isClean(index.length - at)), index.isClean(0)].reverse(),
    tokens: each((at) => index.tokens(at, at + 1)),
    saved: each((at) => index.savedTokens(at, at + 1)),
    sent: each((at) => index.sent(at, at + 1)),
    summaries: each((at) => index.summaries(at, at + 1)),
    environment: index.environment,
    ids: index.slice(0).map(({ entry }) => entry.id)
  }
}

const planned = (conversation: Conversation, script: Script) =>
  Array.from({ length: rungCount }, (_, rung) =>
    runSync(plan(conversation, policyOf(script), { forced: true, memory: freshMemory, rung }))
  )

it.effect.prop(
  "IndexedView equals an index that is made anew, and so do plans, after every log line",
  [scripts],
  ([script]) =>
    Effect.gen(function* () {
      const all = yield* versions(script)
      const indexes = all.map((conversation) => runSync(indexedView(conversation.view)))
      // Earlier versions still say the same after later ones continued their columns.
      for (const [at, conversation] of all.entries()) {
        const index = indexes[at]
        if (index === undefined) continue
        assert.deepStrictEqual(said(index), expected(view(conversation)))
        assert.deepStrictEqual(planned(conversation, script), planned(again(conversation), script))
      }
      return true
    }).pipe(Effect.scoped, Effect.provide(worldOf().services)),
  { arbitrary: { ...thousand("indexed view", 60), size: 12 } }
)
