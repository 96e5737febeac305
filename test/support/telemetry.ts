import { Effect, Layer, Stream } from "effect"
import { model, text, user } from "../../src/domain/content/Content.ts"
import * as Fake from "../../src/layers/testing/FakeGemini.ts"
import { HookSystem } from "../../src/services/hooks/HookSystem.ts"
import type { Telemetry } from "../../src/services/telemetry/Telemetry.ts"
import { begin, google, said } from "./sending.ts"

/** What telemetry without prompts must not contain. */
export const secret = "the words of a person"

/** A turn of one conversation and a compression of it, watched. */
export const watched = (telemetry: Telemetry["Service"]) =>
  Effect.gen(function* () {
    const fake = yield* Fake.make(({ method }) =>
      method === "countTokens" ? Fake.tokens(9) : said(`An answer: ${secret}`)
    )
    const services = yield* Layer.build(google(fake.url))
    return yield* Effect.gen(function* () {
      yield* telemetry.compressions
      const { chat } = yield* begin()
      yield* Stream.runDrain(telemetry.watch("s1", secret, chat.send(secret)))
      for (let at = 0; at < 6; at += 1) {
        const words = Array.from({ length: 400 }, (_, n) => `${secret} ${at * n}.`).join(" ")
        yield* chat.append([{ content: user(text(`What of ${at}?`)) }, { content: model(text(words)) }])
      }
      yield* chat.compress()
      return yield* HookSystem
    }).pipe(Effect.provide(services), Effect.scoped)
  })
