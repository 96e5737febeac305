import { Effect, Layer } from "effect"
import { Calibrations, empty, make } from "../services/Calibrations.ts"

/** Calibrations for as long as the layer lives: every program begins cold. */
export const layer: Layer.Layer<Calibrations> = Layer.effect(
  Calibrations,
  make(empty, () => Effect.void)
)
