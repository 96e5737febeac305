import { Layer } from "effect"
import { Chats } from "../services/Chats.ts"
import { Compression } from "../services/Compression.ts"
import { HookSystem } from "../services/HookSystem.ts"
import { Summarizer } from "../services/Summarizer.ts"
import { TokenCounter } from "../services/TokenCounter.ts"
import * as MemorySessionStore from "./MemorySessionStore.ts"
import * as MemoryTempStore from "./MemoryTempStore.ts"

/** The whole runtime without disk, network or chance: the same calls give the same bytes every time. */
export const layer = Chats.layer.pipe(
  Layer.provideMerge(Compression.layer),
  Layer.provideMerge(
    Layer.mergeAll(
      TokenCounter.layerEstimate,
      Summarizer.layerExtractive,
      HookSystem.layer,
      MemorySessionStore.layer,
      MemoryTempStore.layer
    )
  )
)
