/** Read and write the transcripts of other agents. */

/** @category Services @since 0.1.0 */
export { Transcripts } from "../services/transcripts/Transcripts.ts"
/** @category Functions @since 0.1.0 */
export { load } from "../services/transcripts/Transcripts.ts"
/** @category Functions @since 0.1.0 */
export { importTranscript } from "../services/transcripts/ImportTranscript.ts"
/** @category Models @since 0.1.0 */
export type {
  LoadOptions,
  Loaded,
  LoadRequirements,
  MemoryNeed,
  ReadRequirements
} from "../services/transcripts/LoadedTranscript.ts"
/** @category Models @since 0.1.0 */
export {
  FormatName,
  type Transcript,
  type SourceFormat,
  type Step as TranscriptStep,
  type UnknownKinds
} from "../domain/transcripts/Transcript.ts"
/** @category Models @since 0.1.0 */
export type { Inspection, InspectionContext } from "../domain/evaluation/Inspection.ts"
/** @category Models @since 0.1.0 */
export type { LongLog } from "../domain/session/LongLog.ts"
/** @category Errors @since 0.1.0 */
export { TranscriptError } from "../services/transcripts/TranscriptError.ts"
