/** Memory files: what an agent should always know. */
export { Memory, MemoryError } from "../services/memory/Memory.ts"
