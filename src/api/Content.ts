/** Messages and their parts, as the Gemini API has them, and handles to parts. */

/** @category Functions @since 0.1.0 */
export { call, model, outputText, plainText, response, text, user, withOutput } from "../domain/content/Content.ts"
/** @category Functions @since 0.1.0 */
export { handleOf, matches, mentions } from "../domain/content/Handle.ts"
/** @category Functions @since 0.1.0 */
export { encode as encodeText } from "../domain/text/Bytes.ts"
/** @category Guards @since 0.1.0 */
export {
  hasResponses,
  isCall,
  isErrorResponse,
  isMedia,
  isResponse,
  isText,
  isThought
} from "../domain/content/Content.ts"
/** @category Models @since 0.1.0 */
export {
  Content,
  FileData,
  FunctionCall,
  FunctionResponse,
  InlineData,
  Part,
  Role,
  type Payload
} from "../domain/content/Content.ts"
/** @category Models @since 0.1.0 */
export { Handle, Hash, isHandle } from "../domain/content/Handle.ts"
