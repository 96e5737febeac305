import { Effect, Layer } from "effect"
import { Calibrations, noCalibrations, make } from "../../services/tokens/Calibrations.ts"

/** Calibrations in memory, for the lifetime of the layer: every program starts without any. */
export const layer: Layer.Layer<Calibrations> = Layer.effect(
  Calibrations,
  make(noCalibrations, () => Effect.void)
)
