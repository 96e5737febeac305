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
