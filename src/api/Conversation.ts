/** A conversation as a value: entries, the view of the model, recall. */
export {
  Author,
  type Conversation,
  Draft,
  Entry,
  EntryId,
  Pin,
  type ViewItem,
  append,
  beginsTurn,
  canRedo,
  canUndo,
  empty,
  entries,
  environmentTokens,
  isFromUser,
  view,
  viewTokens
} from "../domain/conversation/Conversation.ts"
export { projectMessages, type SentMessage } from "../domain/conversation/Projection.ts"
export { type FoundParts, type RecallSearch } from "../domain/conversation/RecallSearch.ts"
export { type Recallable, recall, recallable } from "../domain/conversation/Recall.ts"
export type {
  Layer as AppliedPatch,
  Moment,
  Patch,
  ShortenedPart,
  Stretch as ViewStretch
} from "../domain/conversation/Conversation.ts"
export type { Excerpt, Selection } from "../domain/conversation/Excerpt.ts"
export type { FailureMemory, TriedRange } from "../domain/conversation/FailureMemory.ts"
export type { MaskLimits } from "../domain/conversation/Masking.ts"
export type { DroppedRange } from "../domain/conversation/Recall.ts"
export type { OutputBound } from "../domain/conversation/ToolOutputBound.ts"
export type { OutputForm } from "../domain/conversation/ToolOutputShortening.ts"
export type { Node as PersistentListNode, PersistentList } from "../domain/text/PersistentList.ts"
export type { SlicedWork } from "../domain/text/SlicedWork.ts"
