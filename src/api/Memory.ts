/** Memory files, whose text is part of every request of an agent. */
export { Memory, MemoryError } from "../services/memory/Memory.ts"
