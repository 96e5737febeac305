/** Read and write the transcripts of other agents. */
export { Transcripts, load } from "../services/transcripts/Transcripts.ts"
export { importTranscript } from "../services/transcripts/ImportTranscript.ts"
export { type LoadOptions, type Loaded } from "../services/transcripts/LoadedTranscript.ts"
export { TranscriptError } from "../services/transcripts/TranscriptError.ts"
export { FormatName, type Transcript } from "../domain/transcripts/Transcript.ts"
