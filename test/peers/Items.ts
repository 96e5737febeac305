import { isJson, type Json } from "./FakeProviders.ts"

/** What a request says, item by item, in whichever API's words: a text, a thought, a call, a result, a file. */

/** One thing that a request says. */
export interface Item {
  readonly role: "user" | "model"
  readonly kind: "text" | "thought" | "call" | "result" | "file"
  /** The text, or the JSON of what is no text. */
  readonly says: string
  readonly name?: string
  readonly id?: string
  /** Of a thought: the signature that only the API it comes from takes. */
  readonly signature?: string
}

type Role = Item["role"]

const list = (value: unknown): ReadonlyArray<Json> => (Array.isArray(value) ? value.filter(isJson) : [])

const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value ?? ""))

/** JSON with its keys in order, so that two spellings of one value are the same. */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, one: unknown) =>
    isJson(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one
  )

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** A file by its bytes or its address, whatever a block calls them. */
const fileOf = (block: Json): string | undefined => {
  const source = isJson(block["source"]) ? block["source"] : isJson(block["inlineData"]) ? block["inlineData"] : block
  const url = block["image_url"] ?? source["url"]
  if (typeof url === "string") return url.replace(/^data:[^,]*,/, "")
  return typeof source["data"] === "string" ? source["data"] : undefined
}

/** What a result says: its texts and files in order. */
const resultSays = (value: unknown): string => {
  if (typeof value === "string") return value
  if (!Array.isArray(value)) return canonical(value ?? "")
  const blocks = value.map((block: unknown) =>
    isJson(block)
      ? typeof block["text"] === "string"
        ? block["text"]
        : (fileOf(block) ?? canonical(block))
      : textOf(block)
  )
  return blocks.join("\n")
}

const ofResponse = (response: unknown): string => {
  if (!isJson(response)) return resultSays(response)
  const [only, ...others] = Object.entries(response)
  return only !== undefined && others.length === 0 && ["output", "error", "content"].includes(only[0])
    ? resultSays(only[1])
    : canonical(response)
}

const identified = (id: unknown): { readonly id?: string } => (typeof id === "string" ? { id } : {})

const signed = (signature: unknown): { readonly signature?: string } =>
  typeof signature === "string" ? { signature } : {}

const ofPart = (role: Role, part: Json): ReadonlyArray<Item> => {
  const { fileData, functionCall: call, functionResponse: answer, inlineData, text, thought } = part
  if (isJson(call)) {
    return [
      { role, kind: "call", says: canonical(call["args"] ?? {}), name: textOf(call["name"]), ...identified(call["id"]) }
    ]
  }
  if (isJson(answer)) {
    return [{ role, kind: "result", says: ofResponse(answer["response"]), ...identified(answer["id"]) }]
  }
  if (isJson(inlineData)) return [{ role, kind: "file", says: textOf(inlineData["data"]) }]
  if (isJson(fileData)) return [{ role, kind: "file", says: textOf(fileData["fileUri"]) }]
  if (thought === true) return [{ role, kind: "thought", says: textOf(text), ...signed(part["thoughtSignature"]) }]
  return [{ role, kind: "text", says: textOf(text) }]
}

/** The contents of the Gemini API. */
export const ofContents = (contents: unknown): ReadonlyArray<Item> =>
  list(contents).flatMap(({ parts, role }) =>
    list(parts).flatMap((part) => ofPart(role === "model" ? "model" : "user", part))
  )

const ofBlock = (role: Role, block: Json): Item => {
  switch (block["type"]) {
    case "thinking":
      return { role, kind: "thought", says: textOf(block["thinking"]), ...signed(block["signature"]) }
    case "tool_use":
      return {
        role,
        kind: "call",
        says: canonical(block["input"] ?? {}),
        name: textOf(block["name"]),
        ...identified(block["id"])
      }
    case "tool_result":
      return { role, kind: "result", says: resultSays(block["content"]), ...identified(block["tool_use_id"]) }
    case "image":
    case "document":
      return { role, kind: "file", says: fileOf(block) ?? "" }
    default:
      return { role, kind: "text", says: textOf(block["text"]) }
  }
}

/** The messages of the Anthropic API. */
export const ofMessages = (messages: unknown): ReadonlyArray<Item> =>
  list(messages).flatMap(({ content, role: said }) => {
    const role = said === "assistant" ? "model" : "user"
    return typeof content === "string"
      ? [{ role, kind: "text" as const, says: content }]
      : list(content).map((block) => ofBlock(role, block))
  })

const ofResponseItem = (item: Json): ReadonlyArray<Item> => {
  const id = identified(item["call_id"])
  switch (item["type"]) {
    case "message": {
      const role = item["role"] === "assistant" ? "model" : "user"
      // What the developer says is Codex's own.
      if (item["role"] === "developer") return []
      return list(item["content"]).map((block) =>
        typeof block["text"] === "string"
          ? { role, kind: "text" as const, says: block["text"] }
          : { role, kind: "file" as const, says: fileOf(block) ?? "" }
      )
    }
    case "reasoning": {
      const texts = list(item["summary"]).map(({ text }) => textOf(text))
      // One signature is for all of them: it stands with the last.
      return (texts.length === 0 ? [""] : texts).map((says, index, all) => ({
        role: "model",
        kind: "thought",
        says,
        ...(index < all.length - 1 ? {} : signed(item["encrypted_content"]))
      }))
    }
    case "function_call": {
      const text = textOf(item["arguments"])
      const args = text === "" ? {} : parsed(text)
      // Arguments that are no object are the one argument `arguments`, as our reader has it.
      const says = canonical(isJson(args) ? args : { arguments: text })
      return [{ role: "model", kind: "call", says, name: textOf(item["name"]), ...id }]
    }
    case "custom_tool_call":
      return [
        { role: "model", kind: "call", says: canonical({ input: item["input"] }), name: textOf(item["name"]), ...id }
      ]
    case "function_call_output":
    case "custom_tool_call_output":
      return [{ role: "user", kind: "result", says: resultSays(item["output"]), ...id }]
    default:
      return [{ role: "model", kind: "text", says: `${textOf(item["type"])}: ${canonical(item)}` }]
  }
}

/** The input of the OpenAI Responses API. */
export const ofInput = (input: unknown): ReadonlyArray<Item> => list(input).flatMap(ofResponseItem)
