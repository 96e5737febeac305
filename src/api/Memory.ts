/** Memory files, whose text is part of every request of an agent. */
export { Memory, MemoryError } from "../services/memory/Memory.ts"
export type { MemoryFault, MemoryProblem } from "../domain/memory/MemoryProblem.ts"
export type { LoadedMemory, MemoryBlock, MemoryScope } from "../domain/memory/MemoryText.ts"
export type { MemoryChange, SavedFact } from "../services/memory/Memory.ts"
