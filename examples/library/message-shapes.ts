/**
 * Messages in the shapes of four APIs, compressed again and again: what a call returns is the input of the next one, and every
 * handle that the messages show reads back what left, however many compressions ago.
 *
 *   node message-shapes.ts
 *
 * It needs no key and no network, because code writes the snapshots. It prints:
 *
 *   Chat Completions   180 messages, now …; 0 of … handles read nothing
 *   Responses          180 messages, now …; 0 of … handles read nothing
 *   Anthropic          180 messages, now …; 0 of … handles read nothing
 *   Gemini             180 messages, now …; 0 of … handles read nothing
 */
import { Console, Effect } from "effect"
import { Compress, Content, Palimpsest } from "palimpsest"

/** A turn in which the model calls a tool. The program keeps its messages as its provider's API takes them. */
const question = (n: number) => `What does invoice ${n} say?`
const found = (n: number) => `Invoice ${n} is about oak. ${"A plank of oak, sawn and planed. ".repeat(30)}`
const call = (n: number) => ({ id: `call-${n}`, name: "find_invoice", args: { n } })

const turns = {
  "Chat Completions": (n: number) => [
    { role: "user", content: question(n) },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: call(n).id, type: "function", function: { name: call(n).name, arguments: `{"n":${n}}` } }]
    },
    { role: "tool", tool_call_id: call(n).id, content: found(n) }
  ],
  Responses: (n: number) => [
    { type: "message", role: "user", content: question(n) },
    { type: "function_call", call_id: call(n).id, name: call(n).name, arguments: `{"n":${n}}` },
    { type: "function_call_output", call_id: call(n).id, output: found(n) }
  ],
  Anthropic: (n: number) => [
    { role: "user", content: question(n) },
    { role: "assistant", content: [{ type: "tool_use", id: call(n).id, name: call(n).name, input: call(n).args }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: call(n).id, content: found(n) }] }
  ],
  Gemini: (n: number) => [
    { role: "user", parts: [{ text: question(n) }] },
    { role: "model", parts: [{ functionCall: call(n) }] },
    { role: "user", parts: [{ functionResponse: { id: call(n).id, name: call(n).name, response: { output: found(n) } } }] }
  ]
}

const compress = {
  "Chat Completions": Compress.openAi<object>,
  Responses: Compress.responses<object>,
  Anthropic: Compress.anthropic<object>,
  Gemini: Compress.gemini<object>
}

const program = Effect.gen(function* () {
  for (const shape of ["Chat Completions", "Responses", "Anthropic", "Gemini"] as const) {
    let kept: ReadonlyArray<object> = []
    let recall = (_handle: string): string | undefined => undefined
    for (let n = 0; n < 60; n += 1) {
      const next = yield* compress[shape]([...kept, ...turns[shape](n)], { limit: 4_000 })
      kept = next.messages
      recall = next.recall
    }
    const handles = Content.mentions(JSON.stringify(kept))
    const dead = handles.filter((handle) => recall(handle) === undefined)
    yield* Console.log(`${shape.padEnd(18)} 180 messages, now ${kept.length}; ${dead.length} of ${handles.length} handles read nothing`)
  }
})

await Effect.runPromise(program.pipe(Effect.provide(Palimpsest.layer())))
