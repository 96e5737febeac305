/** Messages and their parts, as the Gemini API has them, and handles to parts. */
export {
  Content,
  FileData,
  FunctionCall,
  FunctionResponse,
  InlineData,
  Part,
  Role,
  call,
  hasResponses,
  isCall,
  isErrorResponse,
  isMedia,
  isResponse,
  isText,
  isThought,
  model,
  outputText,
  plainText,
  response,
  text,
  user,
  withOutput
} from "../domain/content/Content.ts"
export { Handle, Hash, handleOf, isHandle, matches, mentions } from "../domain/content/Handle.ts"
export { encode as encodeText } from "../domain/text/Bytes.ts"
export type { Payload } from "../domain/content/Content.ts"
