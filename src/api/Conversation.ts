/** A conversation as a value: entries, the view of the model, recall. */

/** @category Functions @since 0.1.0 */
export {
  append,
  beginsTurn,
  entries,
  environmentTokens,
  view,
  viewTokens
} from "../domain/conversation/Conversation.ts"
/** @category Functions @since 0.1.0 */
export { projectMessages } from "../domain/conversation/Projection.ts"
/** @category Functions @since 0.1.0 */
export { recall, recallable } from "../domain/conversation/Recall.ts"
/** @category Constants @since 0.1.0 */
export { empty } from "../domain/conversation/Conversation.ts"
/** @category Guards @since 0.1.0 */
export { canRedo, canUndo, isFromUser } from "../domain/conversation/Conversation.ts"
/** @category Models @since 0.1.0 */
export {
  Author,
  type Conversation,
  Draft,
  Entry,
  EntryId,
  Pin,
  type ViewItem,
  type AppliedPatch,
  type Moment,
  type Patch,
  type ShortenedPart,
  type PastSegment
} from "../domain/conversation/Conversation.ts"
/** @category Models @since 0.1.0 */
export type { SentMessage } from "../domain/conversation/Projection.ts"
/** @category Models @since 0.1.0 */
export type { FoundParts, RecallSearch } from "../domain/conversation/RecallSearch.ts"
/** @category Models @since 0.1.0 */
export type { Recallable, DroppedRange } from "../domain/conversation/Recall.ts"
/** @category Models @since 0.1.0 */
export type { Excerpt, Selection } from "../domain/conversation/Excerpt.ts"
/** @category Models @since 0.1.0 */
export type { FailureMemory, TriedRange } from "../domain/conversation/FailureMemory.ts"
/** @category Models @since 0.1.0 */
export type { MaskLimits } from "../domain/conversation/Masking.ts"
/** @category Models @since 0.1.0 */
export type { OutputBound } from "../domain/conversation/ToolOutputBound.ts"
/** @category Models @since 0.1.0 */
export type { OutputForm } from "../domain/conversation/ToolOutputShortening.ts"
/** @category Models @since 0.1.0 */
export type { Node as PersistentListNode, PersistentList } from "../domain/text/PersistentList.ts"
/** @category Models @since 0.1.0 */
export type { SlicedWork } from "../domain/text/SlicedWork.ts"
