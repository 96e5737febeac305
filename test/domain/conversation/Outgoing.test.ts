import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect } from "effect"
import { call, type Content, model, response, text, user, withSignature } from "../../../src/domain/content/Content.ts"
import { wireContent } from "../../../src/domain/content/WireContent.ts"
import {
  append,
  type Conversation,
  empty,
  type Entry,
  entryId,
  entryTokens,
  view,
  type ViewItem,
  viewItem
} from "../../../src/domain/conversation/Conversation.ts"
import { Outgoing, type OutgoingRequest } from "../../../src/domain/conversation/Outgoing.ts"
import { projectItems, requestTokens } from "../../../src/domain/conversation/Projection.ts"
import { emptySession, type Session, applyEvent } from "../../../src/domain/session/Session.ts"
import * as Work from "../../../src/domain/text/SlicedWork.ts"
import { play, type Script, scripts, thousand, worldOf } from "../../support/generate.ts"

/** What is sent is what the projection says, however it was come by; and what was sent stays what it was. */

const follow = (outgoing: Outgoing, conversation: Conversation) =>
  Work.runSync(outgoing.follow(conversation.view, "gemini-2.5-pro"))

/** The message that waits behind a conversation. */
const waiting = (conversation: Conversation): ViewItem =>
  viewItem({
    id: entryId(conversation.next),
    content: user(text("And what comes next?")),
    tokens: [6],
    handles: []
  })

/** What a program put behind it. */
const attached = (conversation: Conversation): ViewItem =>
  viewItem({
    id: entryId(conversation.next + 1),
    content: user(text("The content of a file.")),
    author: "program",
    tokens: [6],
    handles: []
  })

const environmentOf = (conversation: Conversation): number =>
  view(conversation)
    .filter(({ entry }) => entry.author === "environment")
    .reduce((tokens, { entry }) => tokens + entryTokens(entry), 0)

/** What the request has to be, made anew from the whole view. */
const expected = (conversation: Conversation, next: ReadonlyArray<ViewItem>) => {
  const items = [...view(conversation), ...next]
  const sent = projectItems(items)
  const entries = new Map(items.map(({ entry }) => [entry.id, entry]))
  // A program's words go into the message that they stand behind, unless that is a result or nobody's.
  const contents: Array<Content> = []
  let isOpen: boolean = false
  for (const { content, entry: id } of sent) {
    const { author } = entries.get(id) ?? {}
    const made = withSignature(wireContent(content))
    const last = contents.at(-1)
    const goesOn: boolean = isOpen && author === "program" && content.role === "user"
    if (goesOn && last !== undefined) contents.splice(-1, 1, { ...last, parts: [...last.parts, ...made.parts] })
    else contents.push(made)
    const answers = entries.get(id)?.content.parts.some((part) => part.functionResponse !== undefined) === true
    isOpen = goesOn || (content.role === "user" && (author === undefined || author === "program") && !answers)
  }
  return {
    contents: JSON.stringify(contents),
    parts: JSON.stringify(sent.flatMap(({ content }) => content.parts)),
    // The projection counts an environment message with the request, not with the conversation.
    tokens: requestTokens(sent) + environmentOf(conversation)
  }
}
const shown = ({ contents, parts, tokens }: OutgoingRequest) => ({
  contents: JSON.stringify(contents),
  parts: JSON.stringify(parts()),
  tokens
})

/** Messages that end before a run that may still grow: what no later message changes. */
const settledOf = (contents: ReadonlyArray<Content>): ReadonlyArray<Content> => {
  const last = contents[contents.length - 1]
  return contents.slice(0, contents.findLastIndex(({ role }) => role !== last?.role) + 1)
}

const isPrefix = (before: ReadonlyArray<Content>, after: ReadonlyArray<Content>): boolean =>
  JSON.stringify(after.slice(0, before.length)) === JSON.stringify(before)

/** The session after each line of a script's log, and whether the line only added to it. */
const versions = Effect.fnUntraced(function* (script: Script) {
  const { events } = yield* play(worldOf(), script)
  let session: Session = emptySession
  return events.map((event) => {
    session = applyEvent(session, event)
    return { conversation: session.conversation, grows: event._tag === "Appended" || event._tag === "Answered" }
  })
})

/** What is wrong with an `Outgoing` that is given every version of a conversation, or every so-manieth. */
const wrong = (make: () => Outgoing, every: number) =>
  Effect.fnUntraced(function* (script: Script) {
    const outgoing = make()
    let before: ReadonlyArray<Content> = []
    const all = yield* versions(script)
    // Of a conversation of hundreds of messages some fifty versions say as much as all.
    const pace = Math.max(every, Math.floor(all.length / 50))
    for (const [index, { conversation, grows }] of all.entries()) {
      if (!grows) before = []
      if (index % pace !== 0) continue
      follow(outgoing, conversation)
      for (const next of [[], [waiting(conversation)], [waiting(conversation), attached(conversation)], []]) {
        const is = shown(outgoing.request(next))
        const should = expected(conversation, next)
        if (outgoing.request(next).environment !== environmentOf(conversation)) return "the environment is not counted"
        for (const key of ["contents", "parts", "tokens"] as const) {
          if (is[key] !== should[key]) return `after line ${index + 1}, ${key}: ${is[key]}\nin place of ${should[key]}`
        }
      }
      const { contents } = outgoing.request()
      if (!isPrefix(before, contents)) return `after line ${index + 1} what had been sent changed`
      before = settledOf(contents)
    }
    return undefined
  })

const holds = (make: () => Outgoing, every: number) => (script: Script) =>
  wrong(
    make,
    every
  )(script).pipe(
    Effect.scoped,
    Effect.provide(worldOf().services),
    Effect.flatMap((problem) => (problem === undefined ? Effect.succeed(true) : Effect.fail(problem)))
  )

/** Mutants: each does one thing that it must not. */
const mutants: Readonly<Record<string, new () => Outgoing>> = {
  "never begins anew": class extends Outgoing {
    private known = 0;
    override *follow(items: Conversation["view"], asked: string) {
      if ((items?.length ?? 0) <= this.known) return
      this.known = items?.length ?? 0
      yield* super.follow(items, asked)
    }
  },
  "leaves out the tail": class extends Outgoing {
    override request(next: ReadonlyArray<ViewItem> = []): OutgoingRequest {
      const made = super.request(next)
      return { ...made, contents: made.contents.slice(0, -1) }
    }
  },
  "counts the message twice": class extends Outgoing {
    override request(next: ReadonlyArray<ViewItem> = []): OutgoingRequest {
      const made = super.request(next)
      return { ...made, tokens: made.tokens + (next.length === 0 ? 0 : 6) }
    }
  }
}

const notices = (make: () => Outgoing, every: number) =>
  Effect.map(
    Arbitrary.checkEffect(scripts, holds(make, every), { runs: 100, seed: "mutant", maxShrinks: 0, size: 16 }),
    (result) => result._tag === "Falsified"
  )

const run = (seed: string) => ({ arbitrary: { ...thousand(seed, 100), size: 16 } })

describe("Outgoing", () => {
  it.effect.prop(
    "equals the projection after every log line, and its settled prefix does not change",
    [scripts],
    ([script]) => holds(() => new Outgoing(), 1)(script),
    run("outgoing")
  )

  it.effect.prop(
    "also when it is not read after every line",
    [scripts],
    ([script]) => holds(() => new Outgoing(), 3)(script),
    run("outgoing, seldom")
  )

  it.effect.each(Object.entries(mutants))("the checks detect one that %s", ([, Mutant]) =>
    Effect.map(
      notices(() => new Mutant(), 1),
      (noticed) => assert.isTrue(noticed)
    )
  )

  const entry = (sequence: number, content: Content): Entry => ({
    id: entryId(sequence),
    content,
    tokens: content.parts.map(() => 10),
    handles: []
  })
  const of = (...contents: ReadonlyArray<Content>) =>
    contents.map((content, index) => entry(index + 1, content)).reduce(append, empty)

  it("openclaw: sends no signatures of other providers' models (OpenClaw 2026.9; ours: for every strategy)", () => {
    const signed = model(
      { text: "hm", thought: true, thoughtSignature: "c2ln" },
      { text: "So.", thoughtSignature: "c2ln" }
    )
    const signatures = (by: string | undefined) => {
      const outgoing = new Outgoing()
      const answer = { ...entry(2, signed), ...(by === undefined ? {} : { model: by }) }
      follow(outgoing, append(of(user(text("q"))), answer))
      return JSON.stringify(outgoing.request().contents).split("thoughtSignature").length - 1
    }
    assert.deepStrictEqual([signatures("claude-opus-4"), signatures("gemini-3-pro"), signatures(undefined)], [0, 2, 2])
  })

  it("sends signatures to the maker of the model that wrote them, also when the model is switched", () => {
    const by = (name: string, id: number) => ({
      ...entry(id, model({ text: name, thoughtSignature: "c2ln" })),
      model: name
    })
    const { view } = append(
      append(append(of(user(text("q"))), by("claude-opus-4-5", 2)), by("gpt-5", 3)),
      by("llama3", 4)
    )
    const outgoing = new Outgoing()
    const signed = (asked: string) => {
      Work.runSync(outgoing.follow(view, asked))
      return outgoing
        .request()
        .contents.flatMap(({ parts }) =>
          parts.flatMap((part) => (part.thoughtSignature === undefined ? [] : [part.text]))
        )
    }
    assert.deepStrictEqual(signed("anthropic/claude-sonnet-5"), ["claude-opus-4-5"])
    assert.deepStrictEqual(signed("gpt-5.1"), ["gpt-5"])
    assert.deepStrictEqual(signed("llama3"), ["llama3"])
    assert.deepStrictEqual(signed("gemini-3-pro"), [])
    // Nobody knows who made these two.
    assert.deepStrictEqual(signed("qwen3"), [])
  })

  it("is the same however it was followed before: another model, and with and without environment and signatures", () => {
    const signed = (name: string, id: number) => ({
      ...entry(id, model({ text: name, thoughtSignature: "c2ln" })),
      model: name
    })
    const opened = append(empty, { ...entry(1, user(text("It is Sunday."))), author: "environment" as const })
    const one = [entry(2, user(text("q"))), signed("gpt-5", 3)].reduce(append, opened)
    const views = [one, append(one, signed("gemini-3-pro", 4)), append(one, signed("llama3", 4))]
    const ways = views.flatMap(({ view }) =>
      ["gpt-5", "gemini-3-pro"].flatMap((name) =>
        [false, true].flatMap((isBare) => [false, true].map((isUnsigned) => [view, name, isBare, isUnsigned] as const))
      )
    )
    const followed = (outgoing: Outgoing, way: (typeof ways)[number]) => {
      Work.runSync(outgoing.follow(...way))
      return shown(outgoing.request())
    }
    const fresh = new Map(ways.map((way) => [way, followed(new Outgoing(), way)]))
    assert.isAbove(new Set([...fresh.values()].map(({ contents }) => contents)).size, 12)
    const outgoing = new Outgoing()
    for (const before of ways) {
      for (const way of ways) {
        followed(outgoing, before)
        assert.deepStrictEqual(followed(outgoing, way), fresh.get(way))
      }
    }
  })

  it("returns the same objects for what was sent before, with the conversation's parts", () => {
    const outgoing = new Outgoing()
    const contents = [user(text("q")), model(call("f", {}, "1")), user(response("f", { output: "x" }, "1"))]
    let conversation = of(...contents)
    follow(outgoing, conversation)
    const before = outgoing.request()
    conversation = append(append(conversation, entry(4, model(text("a")))), entry(5, user(text("q2"))))
    follow(outgoing, conversation)
    const after = outgoing.request()
    assert.strictEqual(after.contents[0], before.contents[0])
    assert.strictEqual(after.contents[1], before.contents[1])
    assert.strictEqual(after.parts()[1], contents[1]?.parts[0])
    assert.lengthOf(before.parts(), 3, "a request that was made before stays what it was")
  })

  it("after an interruption, the next call reads the rest", () => {
    const contents = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? user(text(`q${n}`)) : model(text(`a${n}`))))
    const conversation = of(...contents)
    for (let steps = 0; steps < 60; steps += 1) {
      const outgoing = new Outgoing()
      const work = outgoing.follow(conversation.view, "gemini-2.5-pro")
      for (let at = 0; at < steps; at += 1) work.next()
      follow(outgoing, conversation)
      assert.deepStrictEqual(shown(outgoing.request()), expected(conversation, []))
    }
  })

  it("after an interruption, another view is read whole", () => {
    const one = of(...Array.from({ length: 9 }, (_, n) => user(text(`one ${n}`))))
    const other = of(...Array.from({ length: 12 }, (_, n) => model(text(`other ${n}`))))
    for (let steps = 0; steps < 30; steps += 1) {
      const outgoing = new Outgoing()
      follow(outgoing, one)
      const work = outgoing.follow(other.view, "gemini-2.5-pro")
      for (let at = 0; at < steps; at += 1) work.next()
      follow(outgoing, one)
      assert.deepStrictEqual(shown(outgoing.request()), expected(one, []))
    }
  })
})
