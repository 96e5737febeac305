import { Effect, Layer, Match } from "effect"
import type { SqlClient } from "effect/sql"
import {
  type Chats,
  type Compress,
  Compression,
  ContextWindow,
  Models,
  Palimpsest,
  type Session,
  Tokens
} from "../../src/index.ts"
import { SqlSessionStore } from "../../src/sql.ts"
import { ScriptedModel } from "../../src/testing.ts"
import { assert, describe, it } from "../support/vitest.ts"

/** Types as a program writes them. The compiler decides; what runs here only shows that the values are what their types say. */

type Equals<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false
const isTrue = <T extends true>(value: T): T => value

const decided = (): boolean => process.argv.length > 0

describe("parts that are there only sometimes", () => {
  it("keep their errors and requirements, in every spelling", () => {
    const store = SqlSessionStore.layer()
    const either = Palimpsest.layer({ store: decided() ? store : undefined })
    const spread = Palimpsest.layer({ chat: { window: 8_000 }, ...(decided() ? { store } : {}) })
    const chosen = Palimpsest.layer({ model: decided() ? ScriptedModel.layer([]) : Models.layerFromLanguageModel({}) })
    const window = ContextWindow.layer({ window: 8_000, store: decided() ? store : undefined })
    isTrue<Equals<Layer.Services<typeof either>, SqlClient.SqlClient>>(true)
    isTrue<Equals<Layer.Error<typeof either>, Session.SessionStoreError>>(true)
    isTrue<Equals<Layer.Services<typeof spread>, SqlClient.SqlClient>>(true)
    isTrue<Equals<Layer.Error<typeof spread>, Session.SessionStoreError>>(true)
    isTrue<SqlClient.SqlClient extends Layer.Services<typeof window> ? true : false>(true)
    isTrue<Equals<Layer.Error<typeof window>, Session.SessionStoreError>>(true)
    // What is not there for certain is not promised.
    isTrue<ScriptedModel.Script extends Layer.Success<typeof chosen> ? false : true>(true)
    isTrue<[Layer.Services<typeof chosen>] extends [never] ? false : true>(true)
  })

  it("are what a function says that takes options", () => {
    const plain = (options: Palimpsest.Options) => Palimpsest.layer(options)
    const over = (options: Palimpsest.Options<Session.SessionStoreError, SqlClient.SqlClient>) =>
      Palimpsest.layer(options)
    isTrue<Equals<Layer.Services<ReturnType<typeof plain>>, never>>(true)
    isTrue<Equals<Layer.Error<ReturnType<typeof plain>>, never>>(true)
    isTrue<Equals<Layer.Services<ReturnType<typeof over>>, SqlClient.SqlClient>>(true)
    isTrue<Equals<Layer.Error<ReturnType<typeof over>>, Session.SessionStoreError>>(true)
    // A store that needs a client of SQL is no option of the plain kind.
    type Stored = { readonly store: ReturnType<typeof SqlSessionStore.layer> }
    isTrue<Stored extends Palimpsest.Options ? false : true>(true)
  })

  it("need what they say, but for a summarizer, which gets the parts of the whole", () => {
    const counting = Layer.effect(
      Tokens.TokenCounter,
      Effect.map(Models.Model, () => ({ count: (parts) => Effect.succeed(parts.map(() => 1)) }))
    )
    const counter = Palimpsest.layer({ counter: counting })
    isTrue<Equals<Layer.Services<typeof counter>, Models.Model>>(true)
    const summarizer = Palimpsest.layer({ summarizer: Compression.layerModelSummarizer })
    isTrue<Equals<Layer.Services<typeof summarizer>, never>>(true)
  })
})

describe("names", () => {
  it("of a strategy are the built-in ones, or are made", () => {
    const options: Compress.CompressMessagesOptions = { strategy: "openclaw" }
    const own: Partial<Chats.ChatSettings> = { policy: { strategy: Compression.OwnStrategyName.make("mine") } }
    // @ts-expect-error: no strategy is called palimsest.
    const typo: Compress.CompressMessagesOptions = { strategy: "palimsest" }
    // @ts-expect-error: no strategy is called palimsest.
    const chat: Partial<Chats.ChatSettings> = { policy: { strategy: "palimsest" } }
    assert.deepStrictEqual(
      [options.strategy, own.policy?.strategy, typo.strategy, chat.policy?.strategy],
      ["openclaw", "mine", "palimsest", "palimsest"]
    )
  })

  it("of a status are matched exhaustively", () => {
    const words = Match.type<Compression.CompressionStatus>().pipe(
      Match.when("COMPRESSED", () => "compressed"),
      Match.when("CONTENT_TRUNCATED", () => "shortened"),
      Match.when("NOOP", () => "as it was"),
      Match.whenOr(
        "COMPRESSION_FAILED_INFLATED_TOKEN_COUNT",
        "COMPRESSION_FAILED_TOKEN_COUNT_ERROR",
        "COMPRESSION_FAILED_EMPTY_SUMMARY",
        "FAILED_SUMMARIZER",
        () => "failed"
      ),
      Match.when("CANCELLED", () => "cancelled"),
      Match.exhaustive
    )
    assert.strictEqual(words(Compression.statusOf(Compression.Outcome.cases.Cancelled.make({}))), "cancelled")
    assert.deepStrictEqual(
      Compression.CompressionStatus.literals.map(words).filter((word) => word === "failed").length,
      4
    )
  })
})
