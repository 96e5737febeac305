/** Snapshots that a model writes, with every fact checked against the conversation. */
export { layer } from "../services/compression/summary/ModelSummarizer.ts"
