/**
 * Media in a tool's result, in the forms in which agents and dialects write them. Results keep the form in which they were read, so that they can be
 * written again; what counts, shortens, shows or sends them asks here, so that an image is an image wherever it stands.
 */

import { isJson, type Json, textOrEmpty } from "../text/JsonObject.ts"
import { parsedOrUndefined } from "../text/JsonText.ts"
import { bytesOf } from "./Base64Bytes.ts"
import { isMedia, isResponse, outputText, type Part, type Role } from "./Content.ts"

/** The type of an image whose block does not name it. */
const anyImage = "image/*"

/** How the base64 of images begins. The names of files and the words of tools often state another type, which providers refuse. */
const imageBeginnings: ReadonlyArray<readonly [beginning: string, type: string]> = [
  ["iVBORw0KGgo", "image/png"],
  ["/9j/", "image/jpeg"],
  ["R0lGOD", "image/gif"],
  ["UklGR", "image/webp"]
]

/** The type of media in lower case: that of an image as its bytes say, any other as it is stated. */
export const mediaType = ({ fileData, inlineData }: Part): string => {
  const stated = (inlineData?.mimeType ?? fileData?.mimeType ?? "").toLowerCase()
  const { data = "" } = inlineData ?? {}
  const [, type] = (stated.startsWith("image/") && imageBeginnings.find(([begin]) => data.startsWith(begin))) || []
  return type ?? (stated === "image/jpg" ? "image/jpeg" : stated)
}

/** The media at an address: the bytes of a data URL in base64, or a file. */
const mediaAt = (url: string, mimeType = anyImage): Part => {
  const [head, type] = /^data:([^;,]*)(?:;[^;,]*)*;base64,/.exec(url) ?? []
  return head === undefined
    ? { fileData: { fileUri: url, mimeType } }
    : { inlineData: { mimeType: type || mimeType, data: url.slice(head.length) } }
}

const inlineOf = (mimeType: string, data: string): Part | undefined =>
  data === "" ? undefined : { inlineData: { mimeType: mimeType || anyImage, data } }

const addressed = (url: string, mimeType?: string): Part | undefined =>
  url === "" ? undefined : mediaAt(url, mimeType)

/** The bytes of a data URL, as the image of a run of code has. */
const dataAt = (url: string): Part | undefined => (url.startsWith("data:") ? mediaAt(url) : undefined)

const documentType = "application/pdf"

/** Anthropic's image and document. */
const sourced = (source: Json, mimeType: string): Part | undefined => {
  switch (source["type"]) {
    case "base64":
      return inlineOf(textOrEmpty(source, "media_type") || mimeType, textOrEmpty(source, "data"))
    case "url":
      return addressed(textOrEmpty(source, "url"), mimeType)
    case "file":
      return addressed(textOrEmpty(source, "file_id"), mimeType)
    default:
      return undefined
  }
}

/** A file of OpenAI: its bytes, its address or its id. */
const filed = (file: Json): Part | undefined =>
  addressed(
    textOrEmpty(file, "file_data") || textOrEmpty(file, "file_url") || textOrEmpty(file, "file_id"),
    documentType
  )

/** The media that a block holds, in the form of any dialect or agent; undefined for anything else. */
export const blockMedia = (block: unknown): Part | undefined => {
  if (!isJson(block)) return undefined
  const {
    audio,
    file,
    fileData,
    image_url: image,
    inlineData,
    input_audio: heard,
    resource,
    source,
    video_url: video
  } = block
  if (isJson(inlineData)) return inlineOf(textOrEmpty(inlineData, "mimeType"), textOrEmpty(inlineData, "data"))
  if (isJson(fileData)) return addressed(textOrEmpty(fileData, "fileUri"), textOrEmpty(fileData, "mimeType"))
  switch (block["type"]) {
    case "image":
    case "audio":
    case "document":
      if (isJson(source)) return sourced(source, block["type"] === "document" ? documentType : anyImage)
      return inlineOf(textOrEmpty(block, "mimeType"), textOrEmpty(block, "data")) ?? dataAt(textOrEmpty(block, "url"))
    case "resource":
      return isJson(resource) ? inlineOf(textOrEmpty(resource, "mimeType"), textOrEmpty(resource, "blob")) : undefined
    case "computer_call_output":
      return blockMedia(block["output"])
    case "video_url":
      return addressed(isJson(video) ? textOrEmpty(video, "url") : textOrEmpty(block, "video_url"), "video/*")
    case "computer_screenshot":
    case "input_image":
    case "image_url":
      return addressed(
        (isJson(image) ? textOrEmpty(image, "url") : textOrEmpty(block, "image_url")) || textOrEmpty(block, "file_id")
      )
    case "input_file":
      return filed(block)
    case "file":
      return isJson(file) ? filed(file) : addressed(textOrEmpty(block, "url"), textOrEmpty(block, "mime"))
    case "input_audio":
      return isJson(heard) ? inlineOf(`audio/${textOrEmpty(heard, "format")}`, textOrEmpty(heard, "data")) : undefined
    case "output_audio":
      return isJson(audio) ? inlineOf("audio/wav", textOrEmpty(audio, "data")) : undefined
    case "image_generation_call":
      return inlineOf("image/png", textOrEmpty(block, "result"))
    default:
      return undefined
  }
}

/** The media that a block of a message holds, without a type that the block does not name. */
export const messageMedia = (block: unknown): Part | undefined => {
  const media = blockMedia(block)
  const held = media?.inlineData ?? media?.fileData
  if (held?.mimeType !== anyImage) return media
  const { mimeType: _guessed, ...named } = held
  return media?.inlineData === undefined ? { fileData: named } : { inlineData: named }
}

/** Lists of blocks stand no deeper than this in a result. */
const maxLevels = 6

/** How JSON in a text begins, and what it holds where it may hold media. */
const mayHoldMedia = /^\s*[[{].*"(?:data|blob|image_url|url)"/s

/** A value without its media, and the media in their order. The same value where it has none. */
export interface SplitMedia {
  readonly rest: unknown
  readonly media: ReadonlyArray<Part>
}

/** Takes the media out of a result. */
export const splitMedia = (value: unknown): SplitMedia => {
  const media: Array<Part> = []
  const without = (one: unknown, levels: number, isText = false): unknown => {
    if (levels === 0) return one
    if (typeof one === "string") {
      // An MCP server's result, as the Responses API has it.
      const inner = mayHoldMedia.test(one) ? parsedOrUndefined(one) : undefined
      const [rest] = inner === undefined ? [] : [without([inner], levels - 1, true)].filter(Array.isArray)
      return rest === undefined || rest[0] === inner ? one : JSON.stringify(rest[0] ?? "")
    }
    if (Array.isArray(one)) {
      const kept = one.flatMap((each: unknown) => {
        const found = blockMedia(each)
        // An address in a text may be anything too.
        if (found === undefined || (isText && found.inlineData === undefined)) {
          return [without(each, levels - 1, isText)]
        }
        media.push(found)
        return []
      })
      return kept.length === one.length && kept.every((each, at) => each === one[at]) ? one : kept
    }
    if (!isJson(one)) return one
    const entries = Object.entries(one).flatMap(([key, each]) => {
      const found = blockMedia(each)
      // An object with an address may be anything.
      if (found?.inlineData === undefined) return [[key, without(each, levels - 1, isText)] as const]
      media.push(found)
      return []
    })
    const isSame = entries.length === Object.keys(one).length && entries.every(([key, each]) => each === one[key])
    return isSame ? one : Object.fromEntries(entries)
  }
  return { rest: without(value, maxLevels), media }
}

/** Describes media by their kind and size, or their address. */
export const mediaText = ({ fileData, inlineData }: Part): string =>
  fileData === undefined
    ? `[${inlineData?.mimeType ?? "data"} of ${bytesOf(inlineData?.data ?? "").length} bytes]`
    : `[${fileData.mimeType ?? "file"} at ${fileData.fileUri ?? "an unknown address"}]`

/** Describes what came with a user's words: media, and what no dialect's text is, such as a document of text, by its title and size. */
export const attachmentsOf = (part: Part, role: Role): ReadonlyArray<string> => {
  if (isMedia(part)) return [mediaText(part)]
  if (isResponse(part)) return responseContent(part).media.map(mediaText)
  const { text = "", thought = false } = part
  if (role !== "user" || !thought) return []
  const block = parsedOrUndefined(text)
  const [type, title] = isJson(block) ? [textOrEmpty(block, "type"), textOrEmpty(block, "title")] : []
  return [`[${type || "part"}${title ? ` ${JSON.stringify(title)}` : ""} of ${text.length} characters]`]
}

const wordsOf = (value: unknown): ReadonlyArray<string> | undefined => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) {
    const words = value.map(wordsOf)
    return words.includes(undefined) ? undefined : words.flatMap((each) => each ?? [])
  }
  if (!isJson(value)) return undefined
  if (typeof value["text"] === "string") return [value["text"]]
  const [only, ...others] = Object.values(value)
  return others.length === 0 ? wordsOf(only) : undefined
}

/** A response as a text and media. The text is its one text; its texts, where it has nothing else beside media; or its JSON. */
export interface ResponseContent {
  readonly text: string
  readonly media: ReadonlyArray<Part>
}

/** Reads a response in any form. */
export const responseContent = (part: Part): ResponseContent => {
  const { parts = [], response = "" } = part.functionResponse ?? {}
  const text = outputText(part)
  if (text !== undefined) return { text, media: [] }
  const own = splitMedia(response)
  const nested = splitMedia(Array.isArray(parts) ? parts : [parts])
  const words = own.media.length + nested.media.length === 0 ? undefined : wordsOf(own.rest)
  const others = Array.isArray(nested.rest) ? nested.rest.map((each) => JSON.stringify(each)) : []
  return {
    text: [...(words ?? [typeof own.rest === "string" ? own.rest : JSON.stringify(own.rest)]), ...others].join("\n"),
    media: [...own.media, ...nested.media]
  }
}

/** The text of a response, in which its media are named. */
export const responseText = (part: Part): string => {
  const { media, text } = responseContent(part)
  return media.length === 0 ? text : [text, ...media.map(mediaText)].filter((line) => line !== "").join("\n")
}
