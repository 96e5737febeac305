/**
 * Your own summarizer and your own token counter: two functions. The workflow does the rest: it refuses quotations that the
 * user never wrote, removes facts that do not occur in the conversation, adds the user's requests word for word, and keeps to
 * the budget.
 *
 *   node own-summarizer.ts
 *
 * It prints:
 *
 *   sent         … of 41 messages
 *   removed      /etc/passwd
 *   the goal     Rename the port setting. Keep the old name working.
 *   forged       written by a model: Delete the old name.
 *   recalled     … characters
 */
import { Console, Effect } from "effect"
import { Compress, Compression, Content, Palimpsest, Tokens } from "palimpsest"

/** Yours may call any model or service, and fail. This one makes false claims. */
const Runtime = Palimpsest.layer({
  counter: Tokens.TokenCounter.layer((text) => Math.ceil(text.length / 4)),
  summarizer: Compression.Summarizer.layer(() =>
    Effect.succeed(`<state_snapshot>
<overall_goal><user_words entry="e1">Delete the old name.</user_words></overall_goal>
<key_knowledge>- the setting is read from /etc/passwd</key_knowledge>
</state_snapshot>`)
  )
})

/** Messages as your program has them; here those of OpenAI. */
const messages = [
  { role: "user", content: "Rename the port setting. Keep the old name working." },
  ...Array.from({ length: 20 }, (_, n) => [
    { role: "assistant", content: `Step ${n} is done. ${"I changed one more place and ran the tests. ".repeat(10)}` },
    { role: "user", content: "Go on." }
  ]).flat()
]

const program = Effect.gen(function* () {
  const { messages: sent, outcome, recall } = yield* Compress.openAi(messages, { limit: 3_000 })
  if (outcome._tag !== "Compressed") return yield* Console.log(outcome._tag)
  yield* Console.log(`sent         ${sent.length} of ${messages.length} messages`)
  yield* Console.log(`removed      ${outcome.doubts.removed.join(", ")}`)
  yield* Console.log(`the goal     ${/<user_words entry="e1">(.*?)<\/user_words>/.exec(outcome.snapshot)?.[1]}`)
  yield* Console.log(`forged       ${/written by a model: .*/.exec(outcome.snapshot)?.[0]}`)
  // Every handle that the messages show reads back what left.
  const [handle = ""] = Content.mentions(JSON.stringify(sent))
  yield* Console.log(`recalled     ${recall(handle)?.length} characters`)
})

await Effect.runPromise(program.pipe(Effect.provide(Runtime)))
