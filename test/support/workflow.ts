import { cpSync, existsSync, readFileSync } from "node:fs"
import path from "node:path"
import * as FakeGemini from "../../src/layers/testing/FakeGemini.ts"
import type { Body } from "../cli/scene.ts"

/**
 * A workflow with hooks at every step of one run, as Gemini CLI documents them, and their effects, measured in the same way for
 * each program that runs them.
 */

const folder = path.join(import.meta.dirname, "..", "fixtures", "workflow")

/** The user's prompt. Its words name three tools (`narrow.cjs`). */
export const prompt = "Take a note, list what is here, and have a look at it"

/** The hooks, as in settings. */
export const settings = (): { readonly hooks: object } =>
  JSON.parse(readFileSync(path.join(folder, "settings.json"), "utf8"))

/** Puts the scripts into a working folder. */
export const install = (cwd: string): void => cpSync(folder, path.join(cwd, "hooks"), { recursive: true })

const noted = (id: string, file: string, content: string) => ({
  functionCall: { id, name: "write_file", args: { file_path: file, content } }
})

/** The model's answers: two notes, one of which is refused; an answer that is rejected; one that is not. */
export const answers: ReadonlyArray<FakeGemini.Answer> = [
  FakeGemini.sse(
    FakeGemini.response([{ text: "I take two." }, noted("c1", "a.txt", "PASSWORD"), noted("c2", "b.txt", "bread")])
  ),
  FakeGemini.sse(FakeGemini.response([{ text: "Noted." }])),
  FakeGemini.sse(
    FakeGemini.response([{ text: "Noted. " }], { finishReason: null }),
    FakeGemini.response([{ text: "Checked: b.txt." }])
  )
]

/** The records of a run. */
export interface Ran {
  readonly cwd: string
  readonly stderr: string
  /** The requests of the turns. */
  readonly requests: ReadonlyArray<FakeGemini.FakeRequest>
}

/** The input of a hook. */
interface Heard {
  readonly hook_event_name: string
  readonly session_id: string
  readonly transcript_path: string
  readonly cwd: string
  readonly prompt?: string
  readonly reason?: string
  readonly prompt_response?: string
  readonly stop_hook_active?: boolean
  readonly llm_request?: {
    readonly config?: unknown
    readonly messages: ReadonlyArray<{ readonly role: string; readonly content: string }>
  }
  readonly llm_response?: { readonly candidates?: unknown; readonly usageMetadata?: unknown }
}

/** A request, with its tools. */
interface Sent extends Body {
  readonly toolConfig?: {
    readonly functionCallingConfig?: { readonly mode?: string; readonly allowedFunctionNames?: ReadonlyArray<string> }
  }
}

/** The inputs of all hooks of a run. */
export const heard = (cwd: string): ReadonlyArray<Heard> => {
  const file = path.join(cwd, "hooks", "heard.jsonl")
  if (!existsSync(file)) return []
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Heard => JSON.parse(line))
}

/** The texts of the user's last message with text, joined. */
const lastWords = ({ contents }: Sent): string =>
  contents
    .filter(({ parts, role }) => role === "user" && parts.some(({ text }) => text !== undefined))
    .at(-1)
    ?.parts.map(({ text = "" }) => text)
    .join("\n") ?? ""

/** The tool results at the end of a request. */
const resultsOf = ({ contents }: Sent) =>
  (contents.at(-1)?.parts ?? []).flatMap(({ functionResponse }) =>
    functionResponse === undefined ? [] : [functionResponse.response]
  )

const declaredIn = ({ tools = [] }: Sent): ReadonlyArray<string> =>
  tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name))

/** The tools that a request lets the model call ("all" for all of them), and whether it must call one. */
const choiceOf = (body: Sent, all: number): unknown => {
  const { allowedFunctionNames: names = [], mode = "AUTO" } = body.toolConfig?.functionCallingConfig ?? {}
  const may = declaredIn(body).filter((name) => names.length === 0 || names.includes(name))
  return { tools: may.length === all ? "all" : [...may].sort(), must: mode === "ANY" }
}

const house = "<hook_context>House rule: &lt;dates&gt; are written as in 2026-03-04.</hook_context>"
const reason = "Say what you checked."

/** The `<hook_context>` elements, trimmed. */
const contexts = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/<hook_context>([^<]*)<\/hook_context>/g)].map(
    ([, words = ""]) => `<hook_context>${words.trim()}</hook_context>`
  )

/** Removes consecutive duplicates: a model's answer may arrive in any number of pieces. */
const once = (names: ReadonlyArray<string>): ReadonlyArray<string> => names.filter((name, at) => name !== names[at - 1])

/** The effects of the hooks, by the purpose of each. */
export const effects = ({ cwd, requests, stderr }: Ran): Readonly<Record<string, unknown>> => {
  const all = heard(cwd)
  const of = (name: string) => all.filter((input) => input.hook_event_name === name)
  const bodies = requests.map(({ body }): Sent => JSON.parse(JSON.stringify(body)))
  const none: Sent = { contents: [] }
  const [first = none, second = none, third = none] = bodies
  // The last request is not narrowed.
  const tools = declaredIn(third).length
  const seen = of("BeforeToolSelection").map(
    ({ llm_request: request }) => request?.messages.findLast(({ role }) => role === "user")?.content ?? ""
  )
  const [refused = {}, taken = {}] = resultsOf(second)
  return {
    "SessionStart speaks to the user": stderr.includes("the workshop is open"),
    "SessionStart adds to the prompt's own message": [
      lastWords(first).includes(prompt),
      contexts(lastWords(first)).includes("<hook_context>This workshop keeps its notes in plain text.</hook_context>")
    ],
    "BeforeAgent is told of the prompt": of("BeforeAgent")[0]?.prompt?.endsWith(prompt),
    "BeforeAgent adds behind the prompt, in its own message": [
      contexts(lastWords(first)).includes(house),
      lastWords(first).indexOf("House rule") > lastWords(first).indexOf(prompt)
    ],
    "BeforeToolSelection sees the prompt, with what was added": seen.map((text) => [
      text.includes(prompt),
      contexts(text).includes(house)
    ]),
    "BeforeToolSelection narrows the tools": bodies.map((body) => choiceOf(body, tools)),
    "BeforeTool keeps a call from being run, and says why to the model": [
      existsSync(path.join(cwd, "a.txt")),
      existsSync(path.join(cwd, "b.txt")),
      String(refused["error"]).includes("a PASSWORD belongs into no note")
    ],
    "BeforeTool speaks to the user": stderr.includes("a password was kept out of a note"),
    "AfterTool adds to the result": contexts(Object.values(taken).join("\n")),
    "AfterModel is told of the request": of("AfterModel").map(({ llm_request: request = { messages: [] } }) => [
      ["model", "messages", "config"].every((key) => key in request),
      typeof request.config,
      request.messages.some(({ content, role }) => role === "user" && content.includes(prompt))
    ]),
    "AfterModel is told of the answer, piece by piece, with what it costs": of("AfterModel").map(
      ({ llm_response: response }) => [response?.candidates, response?.usageMetadata]
    ),
    "AfterAgent sends the answer back with its reason": [
      bodies.length,
      lastWords(third).includes(reason),
      stderr.includes("the answer goes back for a check"),
      of("AfterAgent").map(({ prompt_response: answer = "", stop_hook_active: isAgain }) => [
        answer.split("\n").at(-1)?.startsWith("Noted."),
        isAgain
      ])
    ],
    "BeforeAgent is told of the reason as of any prompt": [
      of("BeforeAgent")
        .slice(1)
        .map((input) => input.prompt),
      contexts(lastWords(third)).includes(house)
    ],
    "SessionEnd is told why, and all of one session": [
      of("SessionEnd").map((input) => input.reason),
      new Set(all.map((input) => input.session_id)).size,
      all.every((input) => input.session_id !== "" && input.cwd === cwd),
      once(all.map((input) => input.hook_event_name))
    ]
  }
}

const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }

const piece = (text: string, finishReason?: string): unknown => [
  [{ content: { role: "model", parts: [text] }, ...(finishReason === undefined ? {} : { finishReason }), index: 0 }],
  usageMetadata
]

const narrowed = { tools: ["list_directory", "read_file", "write_file"], must: true }
const turn = ["BeforeModel", "BeforeToolSelection", "AfterModel"]

/** The expected effects. */
export const expected: Readonly<Record<string, unknown>> = {
  "SessionStart speaks to the user": true,
  "SessionStart adds to the prompt's own message": [true, true],
  "BeforeAgent is told of the prompt": true,
  "BeforeAgent adds behind the prompt, in its own message": [true, true],
  "BeforeToolSelection sees the prompt, with what was added": [
    [true, true],
    [true, true],
    [false, true]
  ],
  "BeforeToolSelection narrows the tools": [narrowed, narrowed, { tools: "all", must: false }],
  "BeforeTool keeps a call from being run, and says why to the model": [false, true, true],
  "BeforeTool speaks to the user": true,
  "AfterTool adds to the result": ["<hook_context>The note is on the shelf.</hook_context>"],
  "AfterModel is told of the request": Array.from({ length: 4 }, () => [true, "object", true]),
  "AfterModel is told of the answer, piece by piece, with what it costs": [
    piece("I take two.", "STOP"),
    piece("Noted.", "STOP"),
    piece("Noted. "),
    piece("Checked: b.txt.", "STOP")
  ],
  "AfterAgent sends the answer back with its reason": [
    3,
    true,
    true,
    [
      [true, false],
      [true, true]
    ]
  ],
  "BeforeAgent is told of the reason as of any prompt": [[reason], true],
  "SessionEnd is told why, and all of one session": [
    ["exit"],
    1,
    true,
    [
      "SessionStart",
      "BeforeAgent",
      ...turn,
      "BeforeTool",
      "AfterTool",
      ...turn,
      "AfterAgent",
      "BeforeAgent",
      ...turn,
      "AfterAgent",
      "SessionEnd"
    ]
  ]
}
