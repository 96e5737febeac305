/** Memory files, whose text is part of every request of an agent. */

/** @category Services @since 0.1.0 */
export { Memory } from "../services/memory/Memory.ts"
/** @category Models @since 0.1.0 */
export type { LoadedMemory, MemoryBlock, MemoryScope } from "../domain/memory/MemoryText.ts"
/** @category Models @since 0.1.0 */
export type { MemoryChange, SavedFact } from "../services/memory/Memory.ts"
/** @category Errors @since 0.1.0 */
export { MemoryError } from "../services/memory/Memory.ts"
