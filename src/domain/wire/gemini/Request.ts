/** Contents in the dialect of the Gemini API, from conversations that models of other providers took part in. */

import { type Content, isCall, isResponse, type Part, withOutput, withSignature } from "../../content/Content.ts"
import { mediaType, responseContent, splitMedia } from "../../content/MediaBlocks.ts"
import { wireContent } from "../../content/WireContent.ts"
import { isJson } from "../../text/JsonObject.ts"
import { objectArguments } from "../AnswerForm.ts"
import { noWords } from "../Dialogue.ts"
import { isCarried, stateFor, type Target } from "../ModelState.ts"

const isBlank = (part: Part): boolean => part.text === "" && Object.keys(part).length === 1

/** A call with an object of arguments, as the API requires. */
const withObject = (part: Part): Part =>
  isCall(part) && part.functionCall.args !== undefined && !isJson(part.functionCall.args)
    ? { ...part, functionCall: { ...part.functionCall, args: objectArguments(part.functionCall.args) } }
    : part

/** A part with the signature of this model, or without any. Signatures that are not carried are from before models were noted, and are kept. */
const ownPart = (part: Part, target: Target): Part => {
  const { thoughtSignature = "", ...rest } = part
  if (!isCarried(thoughtSignature)) return part
  const signature = stateFor(thoughtSignature, target)
  return typeof signature === "string" ? { ...rest, thoughtSignature: signature } : rest
}

/** A response whose media stand in it in another dialect's form. The API would read their bytes as text. */
const isForeignResponse = (part: Part): boolean =>
  isResponse(part) &&
  part.functionResponse.parts === undefined &&
  splitMedia(part.functionResponse.response).media.length > 0

/** A part of a user's message as the API takes it: a response that is an object, and an image with the type that its bytes say. */
const userPart = (part: Part): Part => {
  const { functionResponse, inlineData } = part
  if (functionResponse !== undefined && !isJson(functionResponse.response))
    return { ...part, functionResponse: { ...functionResponse, response: { output: functionResponse.response ?? "" } } }
  const mimeType = mediaType(part)
  return inlineData === undefined || mimeType === (inlineData.mimeType ?? "")
    ? part
    : { ...part, inlineData: { ...inlineData, mimeType } }
}

/** A content with such media beside their responses, as Gemini CLI sends them. */
const withMediaBeside = (given: Content): Content => {
  const own = given.parts.map(userPart)
  const content = own.every((part, at) => part === given.parts[at]) ? given : { ...given, parts: own }
  if (!content.parts.some(isForeignResponse)) return content
  const contents = content.parts.map((part) => (isForeignResponse(part) ? responseContent(part) : undefined))
  const parts = content.parts.map((part, at) => {
    const read = contents[at]
    return read === undefined ? part : withOutput(part, read.text)
  })
  return { ...content, parts: [...parts, ...contents.flatMap((read) => read?.media ?? []).map(userPart)] }
}

/** Whether a model takes a schema for its answer. Those before Gemini 3 refuse one beside tools. */
export const takesSchema = (model: string, hasTools: boolean): boolean => !hasTools || !/gemini-[12]\b/.test(model)

/** A content as a model of the Gemini API takes it: without the states of other models, and with a signature at its first call. */
export const geminiContent = (content: Content, target: Target): Content => {
  const wire = wireContent(content)
  if (wire.role !== "model") return withMediaBeside(wire)
  const own = wire.parts.map((part) => withObject(ownPart(part, target)))
  const parts = own.filter((part) => !isBlank(part))
  if (own.length === parts.length && own.every((part, at) => part === wire.parts[at])) return withSignature(wire)
  return withSignature({ ...wire, parts: parts.length === 0 ? [{ text: noWords.model }] : parts })
}
